-- Lists of values are one JSON text: then a statement is the same for any number of values, and stays prepared.

-- ── the schema ───────────────────────────────────────────────────────────────────────────────────────────────────

-- name: create_schema_migrations
create table if not exists schema_migrations (
    version integer primary key,
    name text not null,
    applied_time integer not null
);

-- name: count_tables
select count(*), count(*) filter (where name = 'schema_migrations') from sqlite_master where type = 'table';

-- name: read_versions
select version from schema_migrations;

-- name: record_migration
insert into schema_migrations (version, name, applied_time) values (?, ?, ?);

-- ── loading ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_head
select position, policy_version from head;

-- name: read_records
select number, id, revision, wake_at, policy_version, answer, cast(status as blob), cast(resource as blob)
from resources join records using (number) where id in (select value from json_each(?));

-- name: read_reports
select resource_id, adapter, cast(body as blob), effective_time, last_heard, digest, is_calm
from reports join report_bodies using (resource_id, adapter)
where resource_id in (select value from json_each(?))
order by resource_id, adapter;

-- name: read_child_ids
select parent_id, id from resources
where parent_id in (select value from json_each(?))
order by parent_id, id;

-- name: read_name
select id from resources
where kind = ?2 and name = ?4 and not is_deleting
    and coalesce(parent_id, '') = ?3 and (parent_id is not null or tenant = ?1);

-- name: read_idempotency_records
select key, digest, resource_id, answer, time from idempotency
where key in (select value from json_each(?));

-- name: read_last_number
select coalesce(max(number), 0) from resources;

-- ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: raise_head
update head set position = ?;

-- name: insert_resource
insert into resources (number, id, kind, parent_id, tenant, name, created_time, is_deleting, severity, revision,
                       wake_at, policy_version, answer)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_record
insert into records (number, status, resource) values (?, ?, ?);

-- SQLite updates every index with a column named here, changed or not: hence so many statements.
-- name: update_answer
update resources set revision = coalesce(?, revision), answer = ? where number = ?;

-- name: update_place
update resources set severity = ?, wake_at = ?, policy_version = ? where number = ?;

-- name: update_resource
update resources set tenant = ?, name = ?, is_deleting = ? where number = ?;

-- name: update_status
update records set status = ? where number = ?;

-- name: update_spec
update records set resource = ? where number = ?;

-- name: delete_record
delete from records where number = (select number from resources where id = ?);

-- name: delete_resource
delete from resources where id = ?;

-- name: delete_reports
delete from reports where resource_id = ?;

-- name: delete_bodies
delete from report_bodies where resource_id = ?;

-- name: save_report
replace into reports (resource_id, adapter, generation, digest, report_id, effective_time, last_heard, is_calm)
values (?, ?, ?, ?, ?, ?, ?, ?);

-- name: save_body
insert into report_bodies (resource_id, adapter, body) values (?, ?, ?)
on conflict (resource_id, adapter) do update set body = excluded.body;

-- name: set_calm
update reports set is_calm = ? where resource_id = ? and adapter = ?;

-- name: retire_report
delete from reports where resource_id = ? and adapter = ?;

-- name: retire_body
delete from report_bodies where resource_id = ? and adapter = ?;

-- name: log_report
insert into report_log (resource_id, adapter, generation, position, received_time, effective_time, report_id, body,
                        replaced_effective, replaced_heard)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- A heartbeat: the only write that does not touch the resource. See docs/adr/0022.
-- name: record_heartbeat
update reports
set effective_time = ?1, last_heard = max(last_heard, ?2)
where resource_id = ?3 and adapter = ?4 and is_calm and digest = ?5 and generation = ?6 and effective_time < ?1
  and exists (select 1 from resources where id = ?3 and kind = ?7 and (?8 is null or parent_id = ?8)
              and (?9 is null or tenant in (select value from json_each(?9))))
returning report_id, last_heard;

-- name: read_heard
select name, parent_id, tenant, revision, severity from resources where id = ?;

-- name: read_body
select cast(body as blob) from report_bodies where resource_id = ? and adapter = ?;

-- name: insert_event
insert into events (position, type, resource_id, kind, parent_id, tenant, generation, time, answer, facets)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_transition
insert into transitions (position, ordinal, resource_id, subject, before, after, time, reason, message, cause, ref,
                         policy)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_facet
insert into facets (token, number) values (?, ?) on conflict do nothing;

-- name: remove_facet
delete from facets where token = ? and number = ?;

-- name: add_counts
insert into adapters (tenant, adapter, last_seen, skew_us, last_discard, aggregated, stored, replayed,
                      stale_generation, out_of_order, unknown_after_first, generation_ahead)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (tenant, adapter) do update set
    last_seen = max(last_seen, excluded.last_seen),
    skew_us = case when excluded.last_seen >= last_seen then excluded.skew_us else skew_us end,
    last_discard = case excluded.last_discard when '' then last_discard else excluded.last_discard end,
    aggregated = aggregated + excluded.aggregated,
    stored = stored + excluded.stored,
    replayed = replayed + excluded.replayed,
    stale_generation = stale_generation + excluded.stale_generation,
    out_of_order = out_of_order + excluded.out_of_order,
    unknown_after_first = unknown_after_first + excluded.unknown_after_first,
    generation_ahead = generation_ahead + excluded.generation_ahead;

-- name: insert_idempotency_record
insert into idempotency (key, digest, resource_id, answer, time) values (?, ?, ?, ?, ?);

-- ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────
-- A list of tenants is null for callers who may see all. Rows of logs have no tenant: the newest event of the resource
-- with an answer has it, and that of an existing resource is never pruned. It is looked up once per statement.

-- name: read_answer
select answer, revision from resources where id = ? and kind = ?;

-- name: read_answer_below
select answer, revision from resources where id = ? and kind = ? and parent_id = ?;

-- name: read_answer_of_tenants
select answer, revision from resources where id = ? and kind = ?
and tenant in (select value from json_each(?));

-- name: read_answer_below_of_tenants
select answer, revision from resources where id = ? and kind = ? and parent_id = ?
and tenant in (select value from json_each(?));

-- One statement is one snapshot. A row for each report, the first with the record too.
-- name: read_record
select revision, wake_at, policy_version, answer, cast(status as blob), cast(resource as blob),
       adapter, cast(body as blob), effective_time, last_heard, digest, is_calm
from resources join records using (number)
left join reports on reports.resource_id = id
left join report_bodies using (resource_id, adapter)
where id = ?1 and kind = ?2 and (?3 is null or parent_id = ?3)
and (?4 is null or tenant in (select value from json_each(?4)))
order by adapter;

-- name: find_children
select id from resources
where parent_id = ?1 and (?2 is null or tenant in (select value from json_each(?2)));

-- The last report of each adapter at a generation, by adapter.
-- name: read_reports_at
select received_time, effective_time, last_heard, cast(body as blob) from past_reports
where sequence in (select max(sequence) from report_log where resource_id = ?1 and generation = ?2 group by adapter)
  and (?3 is null or (select tenant from events where resource_id = ?1 order by position desc limit 1)
      in (select value from json_each(?3)))
order by adapter;

-- name: read_adapters
select adapter, last_seen, skew_us, last_discard, aggregated, stored, replayed, stale_generation, out_of_order,
       unknown_after_first, generation_ahead
from adapters
where ?1 is null or tenant in (select value from json_each(?1));

-- After its time: when the state before it began, if there was one.
-- name: read_transitions
select t.position, t.subject, t.before, t.after, t.time,
       case when t.before is not null then
           (select began.time from transitions began
            where began.resource_id = t.resource_id and began.subject = t.subject
              and (began.position, began.ordinal) < (t.position, t.ordinal)
            order by began.position desc, began.ordinal desc limit 1)
       end,
       t.reason, t.message, t.cause, t.ref, t.policy, t.ordinal
from transitions t
where t.resource_id = ?1 and (?2 is null or t.subject in (select value from json_each(?2)))
  and (?3 is null or t.time >= ?3) and (?4 is null or t.time < ?4)
  and (t.position, t.ordinal) < (?5, ?6)
  and (?8 is null or (select tenant from events where resource_id = ?1 order by position desc limit 1)
      in (select value from json_each(?8)))
order by t.position desc, t.ordinal desc limit ?7;

-- The newest event with an answer decides; that of an existing resource is never pruned.
-- name: existed
select 1 from (select kind, parent_id, tenant from events
               where resource_id = ?1 order by position desc limit 1)
where kind = ?2 and (?3 is null or parent_id = ?3)
and (?4 is null or tenant in (select value from json_each(?4)));

-- name: read_time_at
select time from events where position <= ? order by position desc limit 1;

-- name: read_wakes
select id, wake_at from resources where wake_at is not null order by wake_at, id limit ?;

-- name: read_outdated
select id from resources where policy_version < ? order by policy_version, id limit ?;

-- name: count_outdated
select count(*) from resources where policy_version < ?;

-- ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_active_policy
select version, digest, text, file, time, source, author, restores from policies
where version = (select policy_version from head);

-- name: read_policy
select version, digest, text, file, time, source, author, restores from policies where version = ?;

-- name: list_policies
select version, digest, '', file, time, source, author, restores from policies
where ?1 is null or version < ?1 order by version desc limit ?2;

-- name: read_file_digest
select digest from policies where in_file order by version desc limit 1;

-- name: mark_policy
update policies set in_file = 1 where version = ?;

-- name: insert_policy
insert into policies (version, digest, text, file, time, source, author, restores, in_file)
values (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: use_policy
update head set policy_version = ?;

-- ── the past ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_position
select position from head;

-- name: read_horizon
select position, time, walked from forgotten where log = ?;

-- name: read_events
select position, type, kind, resource_id, parent_id, tenant, generation, time, answer, facets
from events where position > ? order by position limit ?;

-- The first kept event of a resource.
-- name: read_first_event
select type, time from events where resource_id = ? order by position limit 1;

-- Events of a resource are in order of time, so this skips only those after the given time.
-- name: read_event_at
select position, type, kind, resource_id, parent_id, tenant, generation, time, answer, facets
from events where resource_id = ? and time <= ? order by position desc limit 1;

-- name: read_events_since
select position, type, kind, resource_id, parent_id, tenant, generation, time, answer, facets
from events where resource_id = ?1 and answer is not null
  and (?3 is null or tenant in (select value from json_each(?3)))
  and position >= coalesce((select position from events
                            where resource_id = ?1 and answer is not null and time <= ?2
                            order by position desc limit 1), 0)
order by position;

-- The last report of each adapter received until a time, by adapter.
-- name: read_reports_until
select received_time, effective_time, last_heard, cast(body as blob) from past_reports
where sequence in (select max(sequence) from report_log where resource_id = ?1 and received_time <= ?2 group by adapter)
  and (?3 is null or (select tenant from events where resource_id = ?1 order by position desc limit 1)
      in (select value from json_each(?3)))
order by adapter;

-- The same before a time, then all later reports, in order.
-- name: read_report_log
select received_time, effective_time, last_heard, cast(body as blob) from past_reports
where resource_id = ?1
  and (received_time >= ?2 or sequence in (
      select max(sequence) from report_log where resource_id = ?1 and received_time < ?2 group by adapter))
  and (?3 is null or (select tenant from events where resource_id = ?1 order by position desc limit 1)
      in (select value from json_each(?3)))
order by sequence;

-- name: walk_resources
select id from resources
where id > ?1 and (?2 is null or tenant in (select value from json_each(?2)))
order by id limit ?3;

-- ── pruning: a reader finds what may be deleted; the writer then deletes it ──────────────────────────────────────

-- After each event: the one of its resource that it replaces.
-- name: walk_events
select e.position, e.time, e.type, e.resource_id,
       (select p.position from events p where p.resource_id = e.resource_id and p.position < e.position
        order by p.position desc limit 1)
from events e
where e.position > ?
  and e.position <= coalesce((select min(position) from readers where dropped_time is null), 9223372036854775807)
order by e.position limit ?;

-- name: delete_event
delete from events where position = ?;

-- After each report: the one of its adapter and generation that it replaces.
-- name: walk_reports
select l.sequence, l.received_time,
       (select p.sequence from report_log p
        where p.resource_id = l.resource_id and p.adapter = l.adapter and p.generation = l.generation
          and p.sequence < l.sequence
        order by p.sequence desc limit 1)
from report_log l where l.sequence > ? order by l.sequence limit ?;

-- name: find_orphans
select sequence from report_log where resource_id in (select value from json_each(?)) limit ?;

-- name: hand_over_report
-- Before a report is deleted, in order of sequences: what it keeps about the one that it replaced moves to the next one.
update report_log set (replaced_effective, replaced_heard) = (
    select replaced_effective, replaced_heard from report_log where sequence = ?1
)
where sequence = (
    select min(n.sequence) from report_log n, report_log gone
    where gone.sequence = ?1 and n.resource_id = gone.resource_id and n.adapter = gone.adapter and n.sequence > ?1
);

-- name: delete_report
delete from report_log where sequence = ?;

-- SQLite reuses the numbers of deleted last rows: the new rows have not been visited by pruning.
-- name: step_back
update forgotten set walked = min(walked, (select coalesce(max(sequence), 0) from report_log)) where log = 'reports';

-- name: move_horizon
update forgotten set position = max(position, ?2), time = max(time, ?3), walked = max(walked, ?4) where log = ?1;

-- name: prunable_transitions
select rowid, position from transitions
where time < ?
  and position <= coalesce((select min(position) from readers where dropped_time is null), 9223372036854775807)
order by time limit ?;

-- name: prune_transitions
delete from transitions where rowid = ?;

-- name: prunable_keys
select key from idempotency where time < ? order by time limit ?;

-- name: prune_keys
delete from idempotency where key = ?;

-- ── following the log ────────────────────────────────────────────────────────────────────────────────────────────

-- The head, and how far events and transitions have been pruned.
-- name: read_log_state
select h.position, max(f.position), max(f.time)
from head h cross join forgotten f where f.log in ('events', 'transitions');

-- The last event before a time. Events are in order of time, except those of concurrent transactions, so a binary
-- search finds it.
-- name: find_position
with recursive search (low, high) as (
    select (select coalesce(min(position), 1) - 1 from events), (select position from head)
    union all
    select case when e.time < ?1 then e.position else s.low end,
           case when e.time < ?1 then s.high else (s.low + s.high + 1) / 2 - 1 end
    from search s left join events e on e.position = (
        select position from events where position >= (s.low + s.high + 1) / 2 order by position limit 1)
    where s.low < s.high
)
select max(low) from search;

-- Parameters: the range of positions, the span of time, kinds, tenants, whether a transition is required, its
-- subjects, values before and after, causes.
-- name: find_changes
select e.position from events e
where e.position > ?1 and e.position <= ?2
  and (?3 is null or e.time >= ?3) and (?4 is null or e.time < ?4)
  and (?5 is null or e.kind in (select value from json_each(?5)))
  and (?6 is null or e.tenant in (select value from json_each(?6)))
  and (not ?7 or exists (
      select 1 from transitions t
      where t.position = e.position
        and (?8 is null or t.subject in (select value from json_each(?8)))
        and (?9 is null or t.before in (select value from json_each(?9)))
        and (?10 is null or t.after in (select value from json_each(?10)))
        and (?11 is null or t.cause in (select value from json_each(?11)))))
order by e.position limit ?12;

-- name: find_changes_back
select e.position from events e
where e.position > ?1 and e.position <= ?2
  and (?3 is null or e.time >= ?3) and (?4 is null or e.time < ?4)
  and (?5 is null or e.kind in (select value from json_each(?5)))
  and (?6 is null or e.tenant in (select value from json_each(?6)))
  and (not ?7 or exists (
      select 1 from transitions t
      where t.position = e.position
        and (?8 is null or t.subject in (select value from json_each(?8)))
        and (?9 is null or t.before in (select value from json_each(?9)))
        and (?10 is null or t.after in (select value from json_each(?10)))
        and (?11 is null or t.cause in (select value from json_each(?11)))))
order by e.position desc limit ?12;

-- The name of a removed resource is in the last answer before the event, or in the event's own.
-- name: read_changes
select e.position, e.type, e.kind, e.resource_id, e.parent_id, e.tenant, r.name, e.generation, e.time, e.facets,
       case when r.id is null then coalesce(e.answer, (
           select p.answer from events p
           where p.resource_id = e.resource_id and p.position < e.position
           order by p.position desc limit 1)) end
from json_each(?) as wanted cross join events e on e.position = wanted.value
left join resources r on r.id = e.resource_id;

-- name: read_transitions_of
select t.position, t.subject, t.before, t.after, t.time,
       case when t.before is not null then
           (select began.time from transitions began
            where began.resource_id = t.resource_id and began.subject = t.subject
              and (began.position, began.ordinal) < (t.position, t.ordinal)
            order by began.position desc, began.ordinal desc limit 1)
       end,
       t.reason, t.message, t.cause, t.ref, t.policy, t.ordinal
from json_each(?) as wanted cross join transitions t on t.position = wanted.value
order by t.position, t.ordinal;

-- Kept tokens are ignored: those gained and lost come after the first list.
-- name: read_token_moves
select position, time, type, facets from events
where position > ?1 and position <= ?2 and time > ?3 and kind = ?4
  and (?5 is null or parent_id = ?5)
  and (?6 is null or tenant in (select value from json_each(?6)))
  and (type in ('Created', 'Removed') or facets is null or exists (
      select 1 from json_each(?7) where instr(substr(facets, instr(facets, '],[')), value) > 0))
order by position;

-- ── named readers ────────────────────────────────────────────────────────────────────────────────────────────────

-- name: open_reader
insert into readers (name, position, opened_time, moved_time)
select ?1, position, ?2, ?2 from head where true
on conflict (name) do update set dropped_time = null;

-- name: read_readers
select name, position, opened_time, moved_time, dropped_time,
       (select time from events e where e.position > readers.position order by e.position limit 1)
from readers where ?1 is null or name = ?1 order by name;

-- name: advance_reader
update readers set position = ?3, moved_time = ?4, dropped_time = null
where name = ?1 and position = ?2 and position < ?3 and ?3 <= (select position from head);

-- name: close_reader
delete from readers where name = ?;

-- name: drop_reader
update readers set dropped_time = ?2 where name = ?1 and dropped_time is null;
