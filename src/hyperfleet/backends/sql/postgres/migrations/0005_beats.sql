-- A heartbeat of a resource is one row, of the events, which no index leads to: it names the heartbeat before it. What
-- it says of its report stands with it and not in the log of reports.

alter table resources
    add column last_beat bigint, -- where that is among the events
    add column beats_passed smallint not null default 0; -- since the last milestone

alter table events
    add column previous bigint, -- the last heartbeat of the resource before this event
    add column adapter text, -- this and the next three: of the report, if the event is a heartbeat
    add column observed_generation bigint,
    add column effective_time timestamptz,
    add column report_id text,
    add column pulse bytea; -- of the resource, with every so many heartbeats: that one is a milestone
alter table events
    alter column adapter set storage main,
    alter column report_id set storage main,
    alter column pulse set storage main;

-- All but the heartbeats that are no milestones.
drop index events_by_resource;
create index events_by_resource on events (resource_id, position) where report_id is null or pulse is not null;

insert into forgotten (log, position, time, walked) select 'beats', 0, to_timestamp(0), position from head;

-- Nearly all reports of the log have words of their own now, so the index of all of them does for those.
drop index report_log_in_words;
