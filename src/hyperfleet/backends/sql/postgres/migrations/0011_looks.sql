-- When the sentinel looks at each resource next. Those that exist are spread over ten minutes. Servers of the version
-- before do not know the column, so what they add while they are being replaced is looked at soon.

alter table resources add column look_at timestamptz, add column look_history text;
update resources set look_at = clock_timestamp() + random() * interval '10 minutes';
alter table resources alter column look_at set default clock_timestamp() + interval '1 minute';

create index resources_by_look on resources (kind, look_at, id) include (tenant) where look_at is not null;

create table look_rules (digest text not null); -- of the rules with which all looks were scheduled
insert into look_rules (digest) values ('');

create or replace view whole_records as
select r.id, r.kind, r.parent_id, r.tenant, r.revision, r.wake_at, r.policy_version, r.answer, c.resource, c.status,
    known.adapters, known.bodies, known.effective_times, known.last_heards, known.digests, known.calms,
    r.look_at, r.look_history
from resources r join records c using (number) cross join lateral (
    select array_agg(adapter) as adapters, array_agg(body) as bodies, array_agg(effective_time) as effective_times,
        array_agg(last_heard) as last_heards, array_agg(digest) as digests, array_agg(is_calm) as calms
    from (
        select p.adapter, b.body, p.effective_time, p.last_heard, p.digest, p.is_calm
        from reports p join report_bodies b using (resource_id, adapter)
        where p.resource_id = r.id order by p.adapter
    ) as ordered
) as known;
