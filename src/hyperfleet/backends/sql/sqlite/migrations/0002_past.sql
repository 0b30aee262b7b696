-- What events did to the tokens of their resources, and how far the logs have been forgotten.

alter table events add column facets text; -- null: they did not change, or the event is older than this column

-- Rows may be missing up to the position, and of what was before the time. Pruning walks through a log from its
-- oldest row on, once: `walked` is the last row that it is done with.
create table forgotten (
    log text primary key,
    position integer not null,
    time integer not null,
    walked integer not null
) without rowid;

-- What was pruned before now is not known but by the gaps it left: then nothing before now can be relied on.
with kept as (
    select position from events union all select position + 1 from head
), gaps as (
    select coalesce(max(position - 1), 0) as position from kept
    where position > 1 and position - 1 not in (select position from events)
)
insert into forgotten
select 'events', position, case when position > 0 then (strftime('%s', 'now') + 1) * 1000000 else 0 end, 0 from gaps;

insert into forgotten
select 'reports', 0,
    case when count(*) < coalesce(max(sequence), 0) then (strftime('%s', 'now') + 1) * 1000000 else 0 end, 0
from report_log;

-- Both logs are in the order of time as they are, so nearly that what is old enough is found at their beginning.
drop index events_by_time;
drop index report_log_by_time;

-- The events with an answer, and removals; the reports with words of their own. Heartbeats, which are most, are in
-- neither, so they need not be passed over and cost nothing more.
create index events_in_full on events (resource_id, position) where type <> 'Reported';
create index report_log_in_words on report_log (resource_id, adapter, generation, sequence) where body is not null;
