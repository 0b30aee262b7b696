-- A heartbeat updates one small row, of `reports`: what it compares and the two times that it moves. What a report says
-- stands in `report_bodies`. No column that a heartbeat moves has an index, so every such update stays in its page.

alter table reports rename to report_bodies;
alter index reports_pkey rename to report_bodies_pkey;
alter table report_bodies drop column generation;

create table reports (
    resource_id text collate "C" not null,
    adapter text collate "C" not null,
    generation bigint not null,
    digest bytea not null, -- of what the report says, whenever it says it
    report_id text not null,
    effective_time timestamptz not null,
    last_heard timestamptz not null,
    is_calm boolean not null, -- being heard again changes nothing but the two times
    primary key (resource_id, adapter)
) with (fillfactor = 50);

-- A resource with everything that stands in other tables, of which a write must know all; reports by adapter.
create view whole_records as
select r.id, r.kind, r.parent_id, r.tenant, r.revision, r.wake_at, r.policy_version, r.answer, c.resource, c.status,
    known.adapters, known.bodies, known.effective_times, known.last_heards, known.digests, known.calms
from resources r join records c using (number) cross join lateral (
    select array_agg(adapter) as adapters, array_agg(body) as bodies, array_agg(effective_time) as effective_times,
        array_agg(last_heard) as last_heards, array_agg(digest) as digests, array_agg(is_calm) as calms
    from (
        select p.adapter, b.body, p.effective_time, p.last_heard, p.digest, p.is_calm
        from reports p join report_bodies b using (resource_id, adapter)
        where p.resource_id = r.id order by p.adapter
    ) as ordered
) as known;
