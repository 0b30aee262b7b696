-- Both logs hold changes only. When a report was last heard is kept with the report that replaced it.

alter table report_log add column replaced_effective integer; -- null: it replaced none
alter table report_log add column replaced_heard integer;

create table report_log_before (sequence integer primary key, effective integer, heard integer);
insert into report_log_before
select sequence, lag(effective_time) over adapters, lag(received_time) over adapters
from report_log
window adapters as (partition by resource_id, adapter order by sequence);
update report_log set (replaced_effective, replaced_heard) = (
    select effective, heard from report_log_before b where b.sequence = report_log.sequence
);
drop table report_log_before;
delete from report_log where body is null;
-- A report that was written again as a heartbeat had another id than its first words: it has one from now on.
update report_log set report_id = r.report_id from reports r
where report_log.sequence = (
    select max(sequence) from report_log where resource_id = r.resource_id and adapter = r.adapter
) and report_log.report_id <> r.report_id;

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
update resources set revision = coalesce((
    select max(position) from events where resource_id = resources.id and type <> 'Reported'
), revision);
drop index events_in_full;
drop index events_by_resource;
delete from events where type = 'Reported';
create index events_by_resource on events (resource_id, position);

alter table events drop column previous;
alter table events drop column adapter;
alter table events drop column observed_generation;
alter table events drop column effective_time;
alter table events drop column report_id;
alter table events drop column pulse;
alter table resources drop column pulse;
alter table resources drop column last_beat;
alter table resources drop column beats_passed;
delete from forgotten where log = 'beats';

-- Answers have another form now: each resource is computed again, as after a new policy.
update resources set policy_version = 0;
