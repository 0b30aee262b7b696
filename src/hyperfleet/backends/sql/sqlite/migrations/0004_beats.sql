-- A heartbeat of a resource is one row, of the events, which no index leads to: it names the heartbeat before it. What
-- it says of its report stands with it and not in the log of reports.

alter table resources add column last_beat integer; -- where that is among the events
alter table resources add column beats_passed integer not null default 0; -- since the last milestone

alter table events add column previous integer; -- the last heartbeat of the resource before this event
alter table events add column adapter text; -- this and the next three: of the report, if the event is a heartbeat
alter table events add column observed_generation integer;
alter table events add column effective_time integer;
alter table events add column report_id text;
alter table events add column pulse blob; -- of the resource, with every so many heartbeats: that one is a milestone

-- All but the heartbeats that are no milestones.
drop index events_by_resource;
create index events_by_resource on events (resource_id, position) where report_id is null or pulse is not null;

insert into forgotten (log, position, time, walked) select 'beats', 0, 0, position from head;

-- Nearly all reports of the log have words of their own now, so the index of all of them does for those.
drop index report_log_in_words;
