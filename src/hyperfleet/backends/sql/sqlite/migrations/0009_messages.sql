-- Leases, the queues of the in-process broker, and what identifies this database.

create table identity (id text not null);
insert into identity (id) values (lower(hex(randomblob(16))));

create table leases (
    name text primary key,
    holder text not null,
    epoch integer not null,
    expires integer not null
) without rowid;

create table subscriptions (
    name text primary key,
    topic text not null,
    tenants text, -- a JSON list; null: all of them
    created_time integer not null
) without rowid;

create table messages (
    sequence integer primary key autoincrement,
    subscription text not null,
    body blob not null, -- a CloudEvent
    visible_at integer not null, -- it may be taken from then on
    attempts integer not null default 0,
    error text not null default '',
    dead_time integer -- since then it is a dead letter
);
create index messages_waiting on messages (subscription, sequence) where dead_time is null;
create index messages_dead on messages (subscription, sequence) where dead_time is not null;
