-- Leases, the queues of the in-process broker, and what identifies this database.

create table identity (id text not null);
insert into identity (id) values (replace(gen_random_uuid()::text, '-', ''));

create table leases (
    name text collate "C" primary key,
    holder text not null,
    epoch bigint not null,
    expires timestamptz not null
) with (fillfactor = 50);

create table subscriptions (
    name text collate "C" primary key,
    topic text not null,
    tenants text[], -- null: all of them
    created_time timestamptz not null
);

create table messages (
    sequence bigint generated always as identity,
    subscription text collate "C" not null references subscriptions (name) on delete cascade,
    body bytea not null, -- a CloudEvent
    visible_at timestamptz not null, -- it may be taken from then on
    attempts integer not null default 0,
    error text not null default '',
    dead_time timestamptz, -- since then it is a dead letter
    -- Every index begins with the subscription, so no plan ever reads the messages of others.
    primary key (subscription, sequence)
);
create index messages_waiting on messages (subscription, sequence) where dead_time is null;
create index messages_dead on messages (subscription, sequence) where dead_time is not null;
