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
select number, id, revision, wake_at, policy_version, answer, cast(status as blob), cast(resource as blob),
       look_at, look_history
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
                       wake_at, policy_version, answer, look_at, look_history)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_record
insert into records (number, status, resource) values (?, ?, ?);

-- SQLite updates every index with a column named here, changed or not: hence so many statements.
-- name: update_answer
update resources set revision = coalesce(?, revision), answer = ? where number = ?;

-- name: update_place
update resources set severity = ?, wake_at = ?, policy_version = ? where number = ?;

-- name: update_look
update resources set look_at = ?, look_history = ? where number = ?;

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
       look_at, look_history, adapter, cast(body as blob), effective_time, last_heard, digest, is_calm
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

-- Members of sentinels that have not renewed their lease for long.
-- name: find_old_members
select name from leases where name >= 'sentinel/' and name < 'sentinel0' and expires < ?;

-- name: forget_member
delete from leases where name = ?;

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
where name = ?1 and position = ?2 and position < ?3 and ?3 <= (select position from head)
  and (?5 is null or exists (select 1 from leases where name = ?5 and epoch = ?6 and holder = ?7));

-- name: close_reader
delete from readers where name = ?;

-- name: drop_reader
update readers set dropped_time = ?2 where name = ?1 and dropped_time is null;

-- ── when the sentinel looks at which resource ────────────────────────────────────────────────────────────────────

-- name: read_due_looks
select answer, look_at, look_history, cast(resource as blob), cast(status as blob)
from resources join records using (number)
where kind = ?1 and look_at <= ?2 and (look_at, id) > (?3, ?4)
  and (?5 is null or tenant in (select value from json_each(?5)))
order by look_at, id limit ?6;

-- Without the +, it would read all resources of the kind.
-- name: read_looks
select answer, look_at, look_history, cast(resource as blob), cast(status as blob)
from resources join records using (number)
where id in (select value from json_each(?2)) and +kind = ?1
  and (?3 is null or +tenant in (select value from json_each(?3)))
order by id;

-- name: count_looks
select count(*), min(look_at) from (
    select look_at from resources
    where kind = ?1 and look_at <= ?2 and (?3 is null or tenant in (select value from json_each(?3)))
    order by look_at, id limit ?4
);

-- The next one of a tenant is looked for among the first thousand of all. To sort them again would read them all.
-- name: read_next_look
select look_at from (
    select look_at, tenant from resources where kind = ?1 and look_at > ?2 order by look_at, id limit 1000
) where ?3 is null or tenant in (select value from json_each(?3)) limit 1;

-- name: advance_look
update resources set look_at = ?4, look_history = ?5 where id = ?1 and look_at = ?2 and look_history is ?3;

-- name: read_ids_after
select id from resources where id > ? order by id limit ?;

-- name: spread_look
update resources
set look_at = min(coalesce(look_at, ?2 + ?3), ?2 + abs(random() % ?3)),
    look_history = case when ?4 then null else look_history end
where id = ?1 and (look_at is null or look_at > ?2 + ?3 or (?4 and look_history is not null));

-- name: read_look_rules
select digest from look_rules;

-- name: save_look_rules
update look_rules set digest = ?;

-- ── leases and the queues of the in-process broker ───────────────────────────────────────────────────────────────

-- name: read_store_id
select id from identity;

-- A lease that lasts twice as long as it is taken for is free too: the clock was set back since.
-- name: take_lease
insert into leases (name, holder, epoch, expires) values (?1, ?2, 1, ?4)
on conflict (name) do update
set holder = excluded.holder, expires = excluded.expires,
    epoch = leases.epoch + (leases.holder <> excluded.holder)
where leases.holder = excluded.holder or leases.expires <= ?3 or leases.expires > ?3 + 2 * (?4 - ?3)
returning epoch;

-- name: release_lease
update leases set expires = 0 where name = ? and holder = ? and epoch = ?;

-- No lease lasts two minutes. One that does was taken before the clock was set back, and its holder may be dead.
-- name: read_leases
select name, holder, epoch from leases
where name >= ?1 and name < ?2 and expires > ?3 and expires < ?3 + 120000000 order by name;

-- name: read_webhooks
select name, state from webhooks order by name;

-- name: save_webhook
insert into webhooks (name, state)
select ?1, ?2 where ?3 is null or exists (select 1 from leases where name = ?3 and epoch = ?4)
on conflict (name) do update set state = excluded.state;

-- name: delete_webhook
delete from webhooks where name = ?;

-- name: subscribe
insert into subscriptions (name, topic, tenants, created_time) values (?, ?, ?, ?) on conflict (name) do nothing;

-- name: unsubscribe
delete from subscriptions where name = ?;

-- name: delete_messages
delete from messages where subscription = ?;

-- name: read_subscription
select topic, tenants from subscriptions where name = ?;

-- name: read_subscriptions
select s.name, s.topic, s.tenants,
       (select count(*) from messages m where m.subscription = s.name and m.dead_time is null
          and (m.visible_at <= ?2 or m.attempts = 0)),
       (select count(*) from messages m where m.subscription = s.name and m.dead_time is null
          and m.visible_at > ?2 and m.attempts > 0),
       (select count(*) from messages m where m.subscription = s.name and m.dead_time is not null),
       (select m.body from messages m where m.subscription = s.name and m.dead_time is null order by m.sequence limit 1)
from subscriptions s where ?1 is null or s.name = ?1 order by s.name;

-- name: has_subscriptions
select 1 from subscriptions limit 1;

-- name: enqueue
insert into messages (subscription, body, visible_at)
select s.name, ?4, ?5 from subscriptions s
where s.topic = ?1
  and (s.tenants is null or ?3 or exists (select 1 from json_each(s.tenants) where value = ?2))
  and (?6 is null or s.name = ?6)
order by s.name;

-- name: find_overdue
select s.name, s.topic, s.tenants, m.body,
       (select max(sequence) from messages l where l.subscription = s.name and l.dead_time is null)
from subscriptions s join messages m on m.sequence = (
    select min(sequence) from messages f where f.subscription = s.name and f.dead_time is null)
where m.visible_at < ? order by s.name;

-- name: discard_messages
delete from messages where sequence in (
    select sequence from messages where subscription = ? and dead_time is null and sequence <= ?
    order by sequence limit ?
);

-- What was never taken may be taken at any time: the clock may have been set back since it was added.
-- name: find_waiting
select m.sequence, m.body, m.attempts + 1, s.topic from messages m join subscriptions s on s.name = m.subscription
where m.subscription = ? and m.dead_time is null and (m.visible_at <= ? or m.attempts = 0) order by m.sequence limit ?;

-- Delivered as often as allowed, and never answered.
-- name: bury_message
update messages set dead_time = ?, error = case when error = '' then ? else error end where sequence = ?;

-- name: take_message
update messages set visible_at = ?, attempts = attempts + 1 where sequence = ?;

-- name: ack_message
delete from messages where subscription = ? and sequence = ? and attempts = ? and dead_time is null;

-- name: nack_message
update messages set error = ?4, visible_at = ?5, dead_time = ?6
where subscription = ?1 and sequence = ?2 and attempts = ?3 and dead_time is null;

-- name: read_dead_letters
select m.sequence, m.body, m.error, m.attempts, m.dead_time, s.topic
from messages m join subscriptions s on s.name = m.subscription
where m.subscription = ? and m.dead_time is not null order by m.sequence limit ?;

-- name: replay_dead_letters
update messages set dead_time = null, attempts = 0, error = '', visible_at = ?3
where sequence in (
    select sequence from messages where subscription = ?1 and dead_time is not null order by sequence limit ?2
);
