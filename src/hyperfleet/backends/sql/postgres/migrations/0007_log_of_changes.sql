-- Both logs hold changes only. When a report was last heard is kept with the report that replaced it.

alter table report_log
    add column replaced_effective timestamptz, -- null: it replaced none
    add column replaced_heard timestamptz;
update report_log l set replaced_effective = b.effective, replaced_heard = b.heard
from (
    select sequence, lag(effective_time) over adapters as effective, lag(received_time) over adapters as heard
    from report_log
    window adapters as (partition by resource_id, adapter order by sequence)
) as b
where b.sequence = l.sequence and l.body is not null;
delete from report_log where body is null;
-- A report that was written again as a heartbeat had another id than its first words: it has one from now on.
update report_log l set report_id = r.report_id from reports r
where l.sequence = (
    select max(sequence) from report_log where resource_id = r.resource_id and adapter = r.adapter
) and l.report_id <> r.report_id;

-- Reports of the log with the times that they had before the adapter's next report or, if there is none, now.
create view past_reports as
select l.sequence, l.resource_id, l.adapter, l.generation, l.received_time,
    coalesce(n.replaced_effective, r.effective_time, l.effective_time) as effective_time,
    coalesce(n.replaced_heard, r.last_heard, l.received_time) as last_heard, l.body
from report_log l
left join report_log n on n.sequence = (
    select min(sequence) from report_log
    where resource_id = l.resource_id and adapter = l.adapter and sequence > l.sequence
)
left join reports r on r.resource_id = l.resource_id and r.adapter = l.adapter and r.report_id = l.report_id;

-- A resource has the revision of its last change, as its history does.
update resources r set revision = last.position
from (
    select resource_id, max(position) as position from events where type <> 'Reported' group by resource_id
) as last
where last.resource_id = r.id;
drop index events_in_full;
drop index events_by_resource;
delete from events where type = 'Reported';
create index events_by_resource on events (resource_id, position);

alter table events
    drop column previous,
    drop column adapter,
    drop column observed_generation,
    drop column effective_time,
    drop column report_id,
    drop column pulse;
alter table resources
    drop column pulse,
    drop column last_beat,
    drop column beats_passed;
delete from forgotten where log = 'beats';

-- Answers have another form now: each resource is computed again, as after a new policy.
update resources set policy_version = 0;
