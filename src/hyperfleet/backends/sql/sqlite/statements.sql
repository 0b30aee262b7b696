-- Lists of values come as one JSON text: a statement is then the same however many there are, and stays prepared.

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
from resources where id in (select value from json_each(?));

-- name: read_reports
select resource_id, adapter, cast(body as blob) from reports
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

-- name: read_remembered
select key, digest, resource_id, answer, time from idempotency
where key in (select value from json_each(?));

-- name: read_last_number
select coalesce(max(number), 0) from resources;

-- ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: raise_head
update head set position = ?;

-- name: touch_head
update head set position = position;

-- name: insert_resource
insert into resources (number, id, kind, parent_id, tenant, name, created_time, is_deleting, severity, revision,
                       wake_at, policy_version, answer, status, resource)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- SQLite maintains every index that has a column named here, changed or not: hence three statements.
-- name: update_status
update resources set revision = coalesce(?, revision), answer = ?, status = ? where number = ?;

-- name: update_place
update resources set severity = ?, wake_at = ?, policy_version = ? where number = ?;

-- name: update_resource
update resources set tenant = ?, name = ?, is_deleting = ?, resource = ? where number = ?;

-- name: delete_resource
delete from resources where id = ?;

-- name: delete_reports
delete from reports where resource_id = ?;

-- name: save_report
insert into reports (resource_id, adapter, generation, body) values (?, ?, ?, ?)
on conflict (resource_id, adapter) do update set generation = excluded.generation, body = excluded.body;

-- name: retire_report
delete from reports where resource_id = ? and adapter = ?;

-- name: log_report
insert into report_log (resource_id, adapter, generation, position, received_time, effective_time, report_id, body)
values (?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_event
insert into events (position, type, resource_id, kind, parent_id, tenant, generation, time, answer)
values (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_transition
insert into transitions (position, ordinal, resource_id, subject, before, after, time, reason, message, cause, ref,
                         policy)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_facet
insert into facets (token, number) values (?, ?) on conflict do nothing;

-- name: remove_facet
delete from facets where token = ? and number = ?;

-- name: tally
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

-- name: remember
insert into idempotency (key, digest, resource_id, answer, time) values (?, ?, ?, ?, ?);

-- ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

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

-- name: find_record
select id from resources
where id = ?1 and kind = ?2 and (?3 is null or parent_id = ?3)
and (?4 is null or tenant in (select value from json_each(?4)));

-- name: find_children
select id from resources
where parent_id = ?1 and (?2 is null or tenant in (select value from json_each(?2)));

-- name: read_reports_now
select adapter, cast(body as blob) from reports where resource_id = ? and generation = ?;

-- The last report of each adapter at a generation; if it said what the one before said, that one's body.
-- name: read_reports_then
select l.adapter, l.report_id, l.effective_time, l.received_time,
       (select cast(said.body as blob) from report_log said
        where said.resource_id = l.resource_id and said.adapter = l.adapter and said.generation = l.generation
          and said.sequence <= l.sequence and said.body is not null
        order by said.sequence desc limit 1)
from report_log l
where l.sequence in (select max(sequence) from report_log where resource_id = ? and generation = ? group by adapter);

-- name: read_adapters
select adapter, last_seen, skew_us, last_discard, aggregated, stored, replayed, stale_generation, out_of_order,
       unknown_after_first, generation_ahead
from adapters
where ?1 is null or tenant in (select value from json_each(?1));

-- After its time: when the state before it began. What was not there before has no such time.
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
order by t.position desc, t.ordinal desc limit ?7;

-- The newest event tells; that of a living resource is never pruned.
-- name: remembers
select 1 from (select kind, parent_id, tenant from events where resource_id = ?1 order by position desc limit 1)
where kind = ?2 and (?3 is null or parent_id = ?3)
and (?4 is null or tenant in (select value from json_each(?4)));

-- name: read_wakes
select id, wake_at from resources where wake_at is not null order by wake_at, id limit ?;

-- name: read_outdated
select id from resources where policy_version < ? order by policy_version, id limit ?;

-- name: count_outdated
select count(*) from resources where policy_version < ?;

-- ── the policy ───────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_policy
select version, digest, text, file, time from policies where version = (select policy_version from head);

-- name: insert_policy
insert into policies (version, digest, text, file, time) values (?, ?, ?, ?, ?);

-- name: use_policy
update head set policy_version = ?;

-- ── pruning: what may go is looked for by a reader, from the youngest to the oldest, because older rows have been ──
-- ── looked at before; the writer then deletes what it is told ────────────────────────────────────────────────────

-- name: prunable_events
select position from events e
where time < ? and not exists (select 1 from resources r where r.id = e.resource_id and r.revision = e.position)
order by time desc limit ?;

-- name: prune_events
delete from events where position = ?;

-- A row may go if its resource is gone or a later one has taken its place, and if no row after it needs its body.
-- name: prunable_reports
select sequence from report_log l
where received_time < ?
  and (not exists (select 1 from resources r where r.id = l.resource_id)
       or exists (select 1 from report_log n
                  where n.resource_id = l.resource_id and n.adapter = l.adapter and n.generation = l.generation
                    and n.sequence > l.sequence))
  and (l.body is null
       or (select n.body is not null from report_log n
           where n.resource_id = l.resource_id and n.adapter = l.adapter and n.generation = l.generation
             and n.sequence > l.sequence
           order by n.sequence limit 1) is not 0)
order by received_time desc limit ?;

-- name: prune_reports
delete from report_log where sequence = ?;

-- name: prunable_transitions
select rowid from transitions where time < ? order by time desc limit ?;

-- name: prune_transitions
delete from transitions where rowid = ?;

-- name: prunable_keys
select key from idempotency where time < ? order by time desc limit ?;

-- name: prune_keys
delete from idempotency where key = ?;
