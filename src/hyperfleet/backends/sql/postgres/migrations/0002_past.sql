-- What events did to the tokens of their resources, and how far the logs have been forgotten.

alter table events add column facets text; -- null: they did not change, or the event is older than this column
alter table events alter column facets set storage main; -- as the answer beside it
do $$
begin
    alter table events alter column facets set compression lz4;
exception when feature_not_supported then
    null;
end
$$;

-- Rows may be missing up to the position, and of what was before the time. Pruning walks through a log from its
-- oldest row on, once: `walked` is the last row that it is done with.
create table forgotten (
    log text primary key,
    position bigint not null,
    time timestamptz not null,
    walked bigint not null
) with (fillfactor = 50);

-- What was pruned before now is not known but by the gaps it left: then nothing before now can be relied on. (A
-- report's number may also be missing because a transaction failed; that is told from nothing.)
with kept as (
    select position from events union all select position + 1 from head
), gaps as (
    select coalesce(max(position - 1), 0) as position from kept
    where position > 1 and not exists (select from events e where e.position = kept.position - 1)
)
insert into forgotten
select 'events', position, case when position > 0 then clock_timestamp() else to_timestamp(0) end, 0 from gaps;

insert into forgotten
select 'reports', 0,
    case when count(*) < coalesce(max(sequence), 0) then clock_timestamp() else to_timestamp(0) end, 0
from report_log;

-- Both logs are in the order of time as they are, so nearly that what is old enough is found at their beginning.
drop index events_by_time;
drop index report_log_by_time;

-- The events with an answer, and removals; the reports with words of their own. Heartbeats, which are most, are in
-- neither, so they need not be passed over and cost nothing more.
create index events_in_full on events (resource_id, position) where type <> 'Reported';
create index report_log_in_words on report_log (resource_id, adapter, generation, sequence) where body is not null;
