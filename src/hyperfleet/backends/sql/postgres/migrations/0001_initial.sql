-- The first schema. Text that is compared or ordered is compared bytewise, as SQLite does and as tokens need it.
-- Three tables are written with every report: head, resources and reports. Their rows are updated in place (HOT) as
-- long as no indexed column changes and the page has room, hence the fill factors and the choice of indexes.

create table head (
    position bigint not null,
    policy_version bigint not null
) with (fillfactor = 10);

insert into head (position, policy_version) values (0, 0);

create table policies (
    version bigint primary key,
    digest text not null,
    text text not null,
    file text not null,
    time timestamptz not null
);

create table resources (
    number bigint generated always as identity primary key,
    id text collate "C" not null unique,
    kind text collate "C" not null,
    parent_id text collate "C",
    tenant text collate "C" not null,
    name text collate "C" not null,
    created_time timestamptz not null,
    is_deleting boolean not null,
    severity smallint not null,
    revision bigint not null,
    wake_at timestamptz,
    policy_version bigint not null,
    resource text not null,
    status text not null,
    answer bytea not null
) with (fillfactor = 70);

create unique index resources_name on resources (tenant, kind, coalesce(parent_id, ''), name) where not is_deleting;
create index resources_by_name on resources (kind, name, id);
create index resources_by_tenant on resources (tenant, kind, name, id);
create index resources_by_creation on resources (kind, created_time, id);
create index resources_by_severity on resources (kind, severity, id);
create index resources_by_parent on resources (parent_id) where parent_id is not null;
create index resources_by_wake on resources (wake_at, id) where wake_at is not null;
create index resources_by_policy on resources (policy_version, id);

create table reports (
    resource_id text collate "C" not null,
    adapter text collate "C" not null,
    generation bigint not null,
    body text not null,
    primary key (resource_id, adapter)
) with (fillfactor = 70);

create table report_log (
    sequence bigint generated always as identity primary key,
    resource_id text collate "C" not null,
    adapter text collate "C" not null,
    generation bigint not null,
    position bigint,
    received_time timestamptz not null,
    effective_time timestamptz not null,
    report_id text not null,
    body text
);

create index report_log_by_adapter on report_log (resource_id, adapter, generation, sequence);
create index report_log_by_time on report_log (received_time);

create table events (
    position bigint primary key,
    type text not null,
    resource_id text collate "C" not null,
    kind text collate "C" not null,
    parent_id text collate "C",
    tenant text collate "C" not null,
    generation bigint not null,
    time timestamptz not null,
    answer bytea
);

create index events_by_resource on events (resource_id, position);
create index events_by_time on events (time);

create table transitions (
    position bigint not null,
    ordinal integer not null,
    resource_id text collate "C" not null,
    subject text not null,
    before text,
    after text,
    time timestamptz not null,
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
    token text collate "C" not null,
    number bigint not null,
    primary key (token, number)
);

-- Whether a resource has a token that begins so, while walking through resources in another order.
create index facets_by_number on facets (number, token);

create table adapters (
    tenant text collate "C" not null,
    adapter text collate "C" not null,
    last_seen timestamptz not null,
    skew_us bigint not null,
    aggregated bigint not null,
    stored bigint not null,
    replayed bigint not null,
    stale_generation bigint not null,
    out_of_order bigint not null,
    unknown_after_first bigint not null,
    generation_ahead bigint not null,
    last_discard text not null,
    primary key (tenant, adapter)
) with (fillfactor = 50);

create table idempotency (
    key text collate "C" primary key,
    digest text not null,
    resource_id text not null,
    answer bytea not null,
    time timestamptz not null
);

create index idempotency_by_time on idempotency (time);

-- Big values are compressed but stay in their row, where an update finds them; elsewhere they would cost a row and an
-- index entry of their own each time. A server without lz4 uses its default, which is slower.
do $$
declare
    big record;
begin
    for big in select * from (values
        ('resources', 'resource'), ('resources', 'status'), ('resources', 'answer'),
        ('reports', 'body'), ('report_log', 'body'), ('events', 'answer')
    ) as big (table_name, column_name)
    loop
        execute format('alter table %I alter column %I set storage main', big.table_name, big.column_name);
        begin
            execute format('alter table %I alter column %I set compression lz4', big.table_name, big.column_name);
        exception when feature_not_supported then
            null;
        end;
    end loop;
end
$$;
