-- Times are microseconds since 1970. What is read or skipped most stands first in a row, because SQLite reads rows from
-- their beginning and keeps the end of a long one on pages of its own.

create table head (
    only_row integer primary key check (only_row = 1),
    position integer not null,
    policy_version integer not null
);
insert into head values (1, 0, 0);

create table policies (
    version integer primary key,
    digest text not null,
    text text not null,
    file text not null,
    time integer not null
);

create table resources (
    number integer primary key,
    id text not null unique,
    kind text not null,
    parent_id text,
    tenant text not null,
    name text not null,
    created_time integer not null,
    is_deleting integer not null,
    severity integer not null,
    revision integer not null,
    wake_at integer,
    policy_version integer not null,
    answer blob not null,
    status text not null,
    resource text not null
);
-- Only on columns that a heartbeat leaves alone: it writes the status, the answer and the revision.
create unique index resources_living_name on resources (tenant, kind, coalesce(parent_id, ''), name) where not is_deleting;
-- The tenant comes last in those that lists walk along: whose a resource is can then be told without reading its row.
create index resources_by_name on resources (kind, name, id, tenant);
create index resources_by_created_time on resources (kind, created_time, id, tenant);
create index resources_by_severity on resources (kind, severity, id, tenant);
create index resources_by_parent on resources (parent_id, kind, name, id) where parent_id is not null;
create index resources_by_wake on resources (wake_at, id) where wake_at is not null;
create index resources_by_policy on resources (policy_version, id);

create table reports (
    resource_id text not null,
    adapter text not null,
    generation integer not null,
    body text not null,
    primary key (resource_id, adapter)
) without rowid;

create table report_log (
    sequence integer primary key,
    resource_id text not null,
    adapter text not null,
    generation integer not null,
    position integer,
    received_time integer not null,
    effective_time integer not null,
    report_id text not null,
    body text -- null: it said what the report before it said
);
create index report_log_by_generation on report_log (resource_id, adapter, generation, sequence);
create index report_log_by_time on report_log (received_time);

create table events (
    position integer primary key,
    type text not null,
    resource_id text not null,
    kind text not null,
    parent_id text,
    tenant text not null,
    generation integer not null,
    time integer not null,
    answer blob
);
create index events_by_resource on events (resource_id, position);
create index events_by_time on events (time);

create table transitions (
    position integer not null,
    ordinal integer not null,
    resource_id text not null,
    subject text not null,
    before text,
    after text,
    time integer not null,
    reason text not null,
    message text not null,
    cause text not null,
    ref text not null,
    policy text not null,
    primary key (position, ordinal)
);
create index transitions_by_resource on transitions (resource_id, position, ordinal);
create index transitions_by_time on transitions (time);

create table facets (
    token text not null,
    number integer not null,
    primary key (token, number)
) without rowid;

create table adapters (
    tenant text not null,
    adapter text not null,
    last_seen integer not null,
    skew_us integer not null,
    aggregated integer not null,
    stored integer not null,
    replayed integer not null,
    stale_generation integer not null,
    out_of_order integer not null,
    unknown_after_first integer not null,
    generation_ahead integer not null,
    last_discard text not null,
    primary key (tenant, adapter)
) without rowid;

create table idempotency (
    key text primary key,
    digest text not null,
    resource_id text not null,
    answer blob not null,
    time integer not null
) without rowid;
create index idempotency_by_time on idempotency (time);
