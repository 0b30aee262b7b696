-- All statements of the PostgreSQL store, except lists with filters. Each costs a round trip, so there are few.

-- ── a transaction: lock, load, write ────────────────────────────────────────────────────────────────────────────────

-- name: lock_resources
-- Parents before children, then by id: every writer locks in this order, so no two wait for each other. The ids are put
-- together first, because an OR of two conditions would read the whole table.
select id from resources
where id = any (array(
    select unnest($1::text[])
    union
    select parent_id from resources where id = any ($1::text[])
))
order by parent_id is not null, id
for update;

-- name: lock_children
select id from resources where parent_id = any ($1::text[]) order by id for update;

-- name: lock_reports
-- After the resources are locked, in a statement of its own: only a snapshot taken then sees every row there is. From
-- here on heartbeats of these adapters wait.
select from reports p join unnest($1::text[], $2::text[]) as mine (resource_id, adapter) using (resource_id, adapter)
order by resource_id, adapter
for update of p;

-- name: load_records
-- A statement of its own after the locks, for the same reason. At least one row, for the head and the clock.
select h.position, h.policy_version as head_policy_version, clock_timestamp() as now, w.*
from head h left join whole_records w on w.id = any ($1::text[]);

-- name: read_names
select wanted.tenant, wanted.kind, wanted.parent_id, wanted.name, r.id
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as wanted (tenant, kind, parent_id, name)
join resources r on r.kind = wanted.kind and r.name = wanted.name and not r.is_deleting
    and coalesce(r.parent_id, '') = wanted.parent_id and (r.parent_id is not null or r.tenant = wanted.tenant);

-- name: read_idempotency_records
select key, digest, resource_id, answer, time
from idempotency where key = any ($1::text[]);

-- ── what a transaction writes, in one statement made of the parts that have rows (`postgres_writing`) ──────────────────
-- Every part selects from `raised`, so nothing is written if another policy came into force since this one was read.
-- Parameters are counted from 1 in each part.

-- name: raise_head
-- One notification for all events of the transaction wakes the relays and watches of other replicas.
raised as (
    update head set position = position + $1 where policy_version = $2
    returning position - $1 as base, pg_notify('hyperfleet', '')
)

-- name: check_head
-- Without events the head stays unchanged, and other writers need not wait for it.
raised as (
    select position + $1 as base from head where policy_version = $2
)

-- name: save_statuses
saved_statuses as (
    update resources r
    set answer = new.answer, severity = new.severity, wake_at = new.wake_at, look_at = new.look_at,
        look_history = new.look_history, policy_version = new.policy_version,
        revision = coalesce(raised.base + 1 + new.event, r.revision)
    from raised, unnest(
        $1::text[], $2::text[], $3::bytea[], $4::smallint[], $5::timestamptz[], $6::bigint[], $7::integer[],
        $8::timestamptz[], $9::text[]
    ) as new (id, status, answer, severity, wake_at, policy_version, event, look_at, look_history)
    where r.id = new.id
    returning r.number, new.status
), recorded_statuses as (
    update records set status = saved_statuses.status
    from saved_statuses where records.number = saved_statuses.number
)

-- name: reschedule
rescheduled as (
    update resources r
    set wake_at = new.wake_at, policy_version = new.policy_version, look_at = new.look_at, look_history = new.look_history
    from raised, unnest($1::text[], $2::timestamptz[], $3::bigint[], $4::timestamptz[], $5::text[])
        as new (id, wake_at, policy_version, look_at, look_history)
    where r.id = new.id
)

-- name: save_reports
saved_reports as (
    insert into reports (resource_id, adapter, generation, digest, report_id, effective_time, last_heard, is_calm)
    select new.* from raised, unnest(
        $1::text[], $2::text[], $3::bigint[], $4::bytea[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::boolean[]
    ) as new (resource_id, adapter, generation, digest, report_id, effective_time, last_heard, is_calm)
    on conflict (resource_id, adapter) do update set
        generation = excluded.generation, digest = excluded.digest, report_id = excluded.report_id,
        effective_time = excluded.effective_time, last_heard = excluded.last_heard, is_calm = excluded.is_calm
)

-- name: save_bodies
saved_bodies as (
    insert into report_bodies (resource_id, adapter, body)
    select new.* from raised, unnest($1::text[], $2::text[], $3::text[]) as new (resource_id, adapter, body)
    on conflict (resource_id, adapter) do update set body = excluded.body
)

-- name: set_calm
-- These rows are not locked: a heartbeat may have updated one since it was read, and then it must not be cleared.
calmed as (
    update reports p set is_calm = new.is_calm
    from raised, unnest(
        $1::text[], $2::text[], $3::boolean[], $4::timestamptz[], $5::timestamptz[]
    ) as new (resource_id, adapter, is_calm, effective_time, last_heard)
    where p.resource_id = new.resource_id and p.adapter = new.adapter
        and (new.is_calm or (p.effective_time = new.effective_time and p.last_heard = new.last_heard))
    returning p.adapter
)

-- name: log_reports
logged_reports as (
    insert into report_log (
        resource_id, adapter, generation, position, received_time, effective_time, report_id, body, replaced_effective,
        replaced_heard
    )
    select new.resource_id, new.adapter, new.generation, raised.base + 1 + new.event,
        new.received_time, new.effective_time, new.report_id, new.body, new.replaced_effective, new.replaced_heard
    from raised, unnest(
        $1::text[], $2::text[], $3::bigint[], $4::integer[], $5::timestamptz[], $6::timestamptz[], $7::text[], $8::text[],
        $9::timestamptz[], $10::timestamptz[]
    ) as new (
        resource_id, adapter, generation, event, received_time, effective_time, report_id, body, replaced_effective,
        replaced_heard
    )
)

-- name: insert_events
inserted_events as (
    insert into events (position, type, resource_id, kind, parent_id, tenant, generation, time, answer, facets)
    select raised.base + 1 + new.event, new.type, new.resource_id, new.kind, new.parent_id, new.tenant,
        new.generation, new.time, new.answer, new.facets
    from raised, unnest(
        $1::integer[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[],
        $9::bytea[], $10::text[]
    ) as new (event, type, resource_id, kind, parent_id, tenant, generation, time, answer, facets)
)

-- name: record_transitions
recorded_transitions as (
    insert into transitions
        (position, ordinal, resource_id, subject, before, after, time, reason, message, cause, ref, policy)
    select raised.base + 1 + new.event, new.ordinal, new.resource_id, new.subject, new.before, new.after,
        new.time, new.reason, new.message, new.cause, new.ref, new.policy
    from raised, unnest(
        $1::integer[], $2::integer[], $3::text[], $4::text[], $5::text[], $6::text[],
        $7::timestamptz[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[]
    ) as new (event, ordinal, resource_id, subject, before, after, time, reason, message, cause, ref, policy)
)

-- name: remove_facets
removed_facets as (
    delete from facets using raised, unnest($1::text[], $2::text[]) as gone (id, token), resources r
    where r.id = gone.id and facets.token = gone.token and facets.number = r.number
)

-- name: add_facets
added_facets as (
    insert into facets (token, number)
    select new.token, r.number from raised, unnest($1::text[], $2::text[]) as new (id, token), resources r
    where r.id = new.id
    on conflict do nothing
)

-- name: add_counts
tallied as (
    insert into adapters as known
    select new.* from raised, unnest(
        $1::text[], $2::text[], $3::timestamptz[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::text[]
    ) as new
    on conflict (tenant, adapter) do update set
        skew_us = case when excluded.last_seen >= known.last_seen then excluded.skew_us else known.skew_us end,
        last_seen = greatest(known.last_seen, excluded.last_seen),
        aggregated = known.aggregated + excluded.aggregated,
        stored = known.stored + excluded.stored,
        replayed = known.replayed + excluded.replayed,
        stale_generation = known.stale_generation + excluded.stale_generation,
        out_of_order = known.out_of_order + excluded.out_of_order,
        unknown_after_first = known.unknown_after_first + excluded.unknown_after_first,
        generation_ahead = known.generation_ahead + excluded.generation_ahead,
        last_discard = case when excluded.last_discard = '' then known.last_discard else excluded.last_discard end
)

-- name: add_accepted_counts
-- The usual case: no report was discarded or only stored.
tallied_accepted as (
    insert into adapters as known
    select new.tenant, new.adapter, new.last_seen, new.skew_us, new.aggregated, 0, 0, 0, 0, 0, 0, ''
    from raised, unnest(
        $1::text[], $2::text[], $3::timestamptz[], $4::bigint[], $5::bigint[]
    ) as new (tenant, adapter, last_seen, skew_us, aggregated)
    on conflict (tenant, adapter) do update set
        skew_us = case when excluded.last_seen >= known.last_seen then excluded.skew_us else known.skew_us end,
        last_seen = greatest(known.last_seen, excluded.last_seen),
        aggregated = known.aggregated + excluded.aggregated
)

-- name: read_base
select base from raised

-- name: read_base_and_calm
select base, (select count(*) from calmed) as calmed from raised

-- The rest is rare. It comes later, so that the head's lock keeps writers from waiting for each other's
-- unique keys in a circle.

-- name: remove_reports
with gone as (
    delete from reports using unnest($1::text[], $2::text[]) as gone (resource_id, adapter)
    where reports.resource_id = gone.resource_id and reports.adapter = gone.adapter
    returning reports.resource_id, reports.adapter
)
delete from report_bodies using gone
where report_bodies.resource_id = gone.resource_id and report_bodies.adapter = gone.adapter;

-- name: remove_resources
with gone as (
    delete from resources where id = any ($1::text[]) returning number
), gone_records as (
    delete from records using gone where records.number = gone.number
), gone_bodies as (
    delete from report_bodies where resource_id = any ($1::text[])
)
delete from reports where resource_id = any ($1::text[]);

-- name: edit_resources
with edited as (
    update resources r set tenant = new.tenant, name = new.name, is_deleting = new.is_deleting
    from unnest($1::text[], $2::text[], $3::text[], $4::boolean[], $5::text[])
        as new (id, tenant, name, is_deleting, resource)
    where r.id = new.id
    returning r.number, new.resource
)
update records set resource = edited.resource from edited where records.number = edited.number;

-- name: insert_resources
with inserted as (
    insert into resources
        (id, kind, parent_id, tenant, name, created_time, is_deleting, severity, revision, wake_at, policy_version,
        answer, look_at, look_history)
    select * from unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::boolean[], $8::smallint[],
        $9::bigint[], $10::timestamptz[], $11::bigint[], $12::bytea[], $15::timestamptz[], $16::text[]
    )
    returning number, id
)
insert into records (number, resource, status)
select inserted.number, new.resource, new.status
from inserted join unnest($1::text[], $13::text[], $14::text[]) as new (id, resource, status) using (id);

-- name: insert_facets
-- For resources that the statement before has inserted.
insert into facets (token, number)
select new.token, r.number from unnest($1::text[], $2::text[]) as new (id, token) join resources r on r.id = new.id
on conflict do nothing;

-- name: insert_idempotency_records
insert into idempotency (key, digest, resource_id, answer, time)
select * from unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::timestamptz[]);

-- ── heartbeats ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: record_heartbeats
-- Heartbeats, sorted by resource and adapter so that two batches lock rows in the same order. The only write that does
-- not touch a resource: it reads the tenant of that, and updates two times of a small row. See docs/adr/0022.
with sent as (
    select *, least(coalesce(observed_time, statement_timestamp()), statement_timestamp()) as effective_time
    from unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bytea[], $8::timestamptz[],
        $9::boolean[]
    ) with ordinality as sent (
        resource_id, adapter, kind, parent_id, tenants, generation, digest, observed_time, wants_body, place
    )
), recorded as (
    update reports p
    set effective_time = sent.effective_time, last_heard = greatest(p.last_heard, statement_timestamp())
    from sent join resources r on r.id = sent.resource_id and r.kind = sent.kind
        and (sent.parent_id is null or r.parent_id = sent.parent_id)
        and (sent.tenants is null or sent.tenants::jsonb ? r.tenant)
    left join report_bodies b
        on sent.wants_body and b.resource_id = sent.resource_id and b.adapter = sent.adapter
    where p.resource_id = sent.resource_id and p.adapter = sent.adapter
        and p.is_calm and p.digest = sent.digest and p.generation = sent.generation
        and p.effective_time < sent.effective_time
    returning sent.place, r.name, r.parent_id, r.tenant, r.revision, r.severity, p.report_id, p.adapter,
        p.effective_time, p.last_heard, b.body,
        coalesce(sent.observed_time - statement_timestamp(), interval '0') as skew
), tallied as (
    insert into adapters as known
    select tenant, adapter, statement_timestamp(),
        (extract(epoch from (array_agg(skew order by place desc))[1]) * 1000000)::bigint, count(*), 0, 0, 0, 0, 0, 0, ''
    from recorded group by tenant, adapter order by tenant, adapter
    on conflict (tenant, adapter) do update set
        skew_us = case when excluded.last_seen >= known.last_seen then excluded.skew_us else known.skew_us end,
        last_seen = greatest(known.last_seen, excluded.last_seen),
        aggregated = known.aggregated + excluded.aggregated
)
select place, name, parent_id, tenant, revision, severity, report_id, skew, effective_time, last_heard, body
from recorded;

-- ── reads ───────────────────────────────────────────────────────────────────────────────────────────────────────────
-- A list of tenants is null for callers who may see all. Rows of logs have no tenant: the newest event of the resource
-- has it, and that of an existing resource is never pruned. It is looked up once per statement.

-- name: read_answers
select id, kind, tenant, parent_id, answer, revision from resources where id = any ($1::text[]);

-- name: read_point_records
-- One statement is one snapshot: the reports are those the status was made from.
select * from whole_records where id = any ($1::text[]);

-- name: read_records
select * from whole_records
where id = any ($1::text[]) and ($2::text[] is null or tenant = any ($2))
order by id;

-- name: read_children
select * from whole_records
where parent_id = $1 and ($2::text[] is null or tenant = any ($2))
order by id;

-- name: read_adapters
select adapter, last_seen, skew_us, aggregated, stored, replayed, stale_generation, out_of_order,
    unknown_after_first, generation_ahead, last_discard
from adapters where $1::text[] is null or tenant = any ($1);

-- name: read_transitions
-- After its time: when the state before it began, if there was one.
select t.position, t.subject, t.before, t.after, t.time,
    case when t.before is not null then (
        select began.time from transitions began
        where began.resource_id = t.resource_id and began.subject = t.subject
            and (began.position, began.ordinal) < (t.position, t.ordinal)
        order by began.position desc, began.ordinal desc limit 1
    ) end,
    t.reason, t.message, t.cause, t.ref, t.policy, t.ordinal
from transitions t
where t.resource_id = $1 and ($2::text[] is null or t.subject = any ($2))
    and ($3::timestamptz is null or t.time >= $3) and ($4::timestamptz is null or t.time < $4)
    and (t.position, t.ordinal) < ($5::bigint, $6::integer)
    and ($8::text[] is null or (
        select tenant from events where resource_id = $1 order by position desc limit 1
    ) = any ($8))
order by t.position desc, t.ordinal desc limit $7;

-- name: existed
-- The newest event with an answer decides; that of an existing resource is never pruned.
select true
from (
    select kind, parent_id, tenant from events
    where resource_id = $1 order by position desc limit 1
) as newest
where kind = $2 and ($3::text[] is null or tenant = any ($3)) and ($4::text is null or parent_id = $4);

-- ── time and policy ─────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_due
-- At least one row, for the clock; one resource more than needed shows when the next one is due.
select statement_timestamp() as now, due.id, due.wake_at
from (values (true)) as always left join (
    select id, wake_at from resources where wake_at is not null order by wake_at, id limit $1
) as due on true
order by due.wake_at, due.id;

-- name: read_outdated
select id from resources where policy_version < $1 order by policy_version, id limit $2;

-- name: count_outdated
select count(*) from resources where policy_version < $1;

-- name: lock_head
select policy_version from head for update;

-- name: read_active_policy
select version, digest, text, file, time, source, author, restores from policies
where version = (select policy_version from head);

-- name: read_policy
select version, digest, text, file, time, source, author, restores from policies where version = $1;

-- name: list_policies
select version, digest, '', file, time, source, author, restores from policies
where $1::bigint is null or version < $1 order by version desc limit $2;

-- name: read_file_digest
select digest from policies where in_file order by version desc limit 1;

-- name: mark_policy
update policies set in_file = true where version = $1;

-- name: insert_policy
with raised as (update head set policy_version = policy_version + 1 returning policy_version)
insert into policies (version, digest, text, file, time, source, author, restores, in_file)
select policy_version, $1, $2, $3, clock_timestamp(), $4, $5, $6, $7 from raised
returning version, digest, text, file, time, source, author, restores;

-- name: try_claim
select pg_try_advisory_lock(1212566612, hashtext($1));

-- name: release_claim
select pg_advisory_unlock(1212566612, hashtext($1));

-- ── the past ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_position
select position from head;

-- name: read_horizon
select position, time, walked from forgotten where log = $1;

-- name: read_events
-- At least one row, for the head and the horizon. One statement is one snapshot, in which positions have no gap.
select h.position as head, f.position as forgotten, e.*
from head h join forgotten f on f.log = 'events' left join (
    select position, type, kind, resource_id, parent_id, tenant, generation, time, answer, facets
    from events where position > $1 order by position limit $2
) as e on true
order by e.position;

-- name: read_first_event
-- The first kept event of a resource.
select type, time from events where resource_id = $1 order by position limit 1;

-- name: read_event_at
-- Events of a resource are in order of time, so this skips only those after the given time.
select position, type, kind, resource_id, parent_id, tenant, generation, time, answer, facets
from events where resource_id = $1 and time <= $2 order by position desc limit 1;

-- name: read_events_since
select position, type, kind, resource_id, parent_id, tenant, generation, time, answer, facets
from events where resource_id = $1 and answer is not null
    and ($3::text[] is null or tenant = any ($3)) and position >= coalesce((
        select position from events
        where resource_id = $1 and answer is not null and time <= $2
        order by position desc limit 1
    ), 0)
order by position;

-- name: read_reports_at
-- The last report of each adapter at a generation, by adapter.
select received_time, effective_time, last_heard, body from past_reports
where sequence = any (array(
        select max(sequence) from report_log where resource_id = $1 and generation = $2 group by adapter
    ))
    and ($3::text[] is null or (
        select tenant from events where resource_id = $1 order by position desc limit 1
    ) = any ($3))
order by adapter;

-- name: read_reports_until
-- The last report of each adapter received until a time, by adapter.
select received_time, effective_time, last_heard, body from past_reports
where sequence = any (array(
        select max(sequence) from report_log where resource_id = $1 and received_time <= $2 group by adapter
    ))
    and ($3::text[] is null or (
        select tenant from events where resource_id = $1 order by position desc limit 1
    ) = any ($3))
order by adapter;

-- name: read_report_log
-- The same before a time, then all later reports, in order.
select received_time, effective_time, last_heard, body from past_reports
where resource_id = $1
    and (received_time >= $2 or sequence = any (array(
        select max(sequence) from report_log where resource_id = $1 and received_time < $2 group by adapter
    )))
    and ($3::text[] is null or (
        select tenant from events where resource_id = $1 order by position desc limit 1
    ) = any ($3))
order by sequence;

-- name: walk_resources
select * from whole_records
where id > $1 and ($2::text[] is null or tenant = any ($2))
order by id limit $3;

-- ── retention ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_cutoff
select statement_timestamp() - $1::interval;

-- name: walk_events
-- After each event: the one of its resource that it replaces.
select e.position, e.time, e.type, e.resource_id, (
    select p.position from events p where p.resource_id = e.resource_id and p.position < e.position
    order by p.position desc limit 1
)
from events e
where e.position > $1
    and e.position <= coalesce((select min(position) from readers where dropped_time is null), 9223372036854775807)
order by e.position limit $2;

-- name: delete_events
delete from events where position = any ($1::bigint[]);

-- name: walk_reports
-- After each report: the one of its adapter and generation that it replaces.
select l.sequence, l.received_time, (
    select p.sequence from report_log p
    where p.resource_id = l.resource_id and p.adapter = l.adapter and p.generation = l.generation
        and p.sequence < l.sequence
    order by p.sequence desc limit 1
)
from report_log l where l.sequence > $1 order by l.sequence limit $2;

-- name: find_orphans
select sequence as key from report_log where resource_id = any ($1::text[]) limit $2;

-- name: delete_reports
-- What a deleted report keeps about the one that it replaced moves to the next report that stays.
with gone as (
    delete from report_log where sequence = any ($1::bigint[])
    returning sequence, resource_id, adapter, replaced_effective, replaced_heard
)
update report_log l set replaced_effective = heirs.replaced_effective, replaced_heard = heirs.replaced_heard
from (
    select distinct on (next.sequence) next.sequence, gone.replaced_effective, gone.replaced_heard
    from gone cross join lateral (
        select n.sequence from report_log n
        where n.resource_id = gone.resource_id and n.adapter = gone.adapter and n.sequence > gone.sequence
            and n.sequence <> all ($1::bigint[])
        order by n.sequence limit 1
    ) as next
    order by next.sequence, gone.sequence
) as heirs
where l.sequence = heirs.sequence;

-- name: move_horizon
update forgotten
set position = greatest(position, $2), time = greatest(time, $3), walked = greatest(walked, $4)
where log = $1;

-- name: prune_transitions
-- The horizon moves with what is deleted.
with gone as (
    delete from transitions where ctid = any (array(
        select ctid from transitions
        where time < statement_timestamp() - $1::interval and position <= coalesce(
            (select min(position) from readers where dropped_time is null), 9223372036854775807)
        order by time limit $2
    ))
    returning position
), moved as (
    update forgotten
    set position = greatest(position, (select max(position) from gone)),
        time = greatest(time, statement_timestamp() - $1::interval)
    where log = 'transitions' and exists (select from gone)
)
select count(*) from gone;

-- name: prune_keys
-- And members of sentinels that have not renewed their lease for as long.
with gone_members as (
    delete from leases where starts_with(name, 'sentinel/') and expires < statement_timestamp() - $1::interval
)
delete from idempotency where key = any (array(
    select key from idempotency where time < statement_timestamp() - $1::interval order by time limit $2
));

-- ── following the log ───────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_log_state
-- The head, and how far events and transitions have been pruned.
select h.position, max(f.position), max(f.time)
from head h cross join forgotten f where f.log in ('events', 'transitions') group by h.position;

-- name: find_position
-- The last event before a time. Events are in order of time, except those of concurrent transactions, so a binary
-- search finds it.
with recursive search (low, high) as (
    select coalesce((select min(position) from events), 1) - 1, position from head
    union all
    select case when e.time < $1 then e.position else s.low end,
        case when e.time < $1 then s.high else (s.low + s.high + 1) / 2 - 1 end
    from search s left join lateral (
        select position, time from events where position >= (s.low + s.high + 1) / 2 order by position limit 1
    ) as e on true
    where s.low < s.high
)
select max(low) from search;

-- name: find_changes
-- Parameters: the range of positions, the span of time, kinds, tenants, whether a transition is required, its
-- subjects, values before and after, causes.
select e.position from events e
where e.position > $1 and e.position <= $2
    and ($3::timestamptz is null or e.time >= $3) and ($4::timestamptz is null or e.time < $4)
    and ($5::text[] is null or e.kind = any ($5)) and ($6::text[] is null or e.tenant = any ($6))
    and (not $7::boolean or exists (
        select from transitions t
        where t.position = e.position
            and ($8::text[] is null or t.subject = any ($8)) and ($9::text[] is null or t.before = any ($9))
            and ($10::text[] is null or t.after = any ($10)) and ($11::text[] is null or t.cause = any ($11))
    ))
order by e.position limit $12;

-- name: find_changes_back
select e.position from events e
where e.position > $1 and e.position <= $2
    and ($3::timestamptz is null or e.time >= $3) and ($4::timestamptz is null or e.time < $4)
    and ($5::text[] is null or e.kind = any ($5)) and ($6::text[] is null or e.tenant = any ($6))
    and (not $7::boolean or exists (
        select from transitions t
        where t.position = e.position
            and ($8::text[] is null or t.subject = any ($8)) and ($9::text[] is null or t.before = any ($9))
            and ($10::text[] is null or t.after = any ($10)) and ($11::text[] is null or t.cause = any ($11))
    ))
order by e.position desc limit $12;

-- name: read_changes
-- The name of a removed resource is in the last answer before the event, or in the event's own.
select e.position, e.type, e.kind, e.resource_id, e.parent_id, e.tenant, r.name, e.generation, e.time, e.facets,
    case when r.id is null then coalesce(e.answer, (
        select p.answer from events p
        where p.resource_id = e.resource_id and p.position < e.position
        order by p.position desc limit 1
    )) end
from events e left join resources r on r.id = e.resource_id
where e.position = any ($1::bigint[]);

-- name: read_transitions_of
select t.position, t.subject, t.before, t.after, t.time,
    case when t.before is not null then (
        select began.time from transitions began
        where began.resource_id = t.resource_id and began.subject = t.subject
            and (began.position, began.ordinal) < (t.position, t.ordinal)
        order by began.position desc, began.ordinal desc limit 1
    ) end,
    t.reason, t.message, t.cause, t.ref, t.policy, t.ordinal
from transitions t where t.position = any ($1::bigint[])
order by t.position, t.ordinal;

-- name: read_token_moves
-- Kept tokens are ignored: those gained and lost come after the first list.
select position, time, type, facets from events
where position > $1 and position <= $2 and time > $3 and kind = $4
    and ($5::text is null or parent_id = $5) and ($6::text[] is null or tenant = any ($6))
    and (type in ('Created', 'Removed') or facets is null or exists (
        select from unnest($7::text[]) as wanted where strpos(substr(facets, strpos(facets, '],[')), wanted) > 0
    ))
order by position;

-- ── named readers ───────────────────────────────────────────────────────────────────────────────────────────────────

-- name: open_reader
insert into readers (name, position, opened_time, moved_time)
select $1, position, clock_timestamp(), clock_timestamp() from head
on conflict (name) do update set dropped_time = null;

-- name: read_readers
select name, position, opened_time, moved_time, dropped_time,
    (select time from events e where e.position > readers.position order by e.position limit 1)
from readers where $1::text is null or name = $1 order by name;

-- name: advance_reader
update readers set position = $3, moved_time = clock_timestamp(), dropped_time = null
where name = $1 and position = $2 and position < $3 and $3 <= (select position from head)
    and ($4::text is null or exists (
        select from leases where name = $4 and epoch = $5::bigint and holder = $6::text));

-- name: close_reader
delete from readers where name = $1;

-- name: drop_readers
update readers set dropped_time = clock_timestamp()
where dropped_time is null and (
    select time from events e where e.position > readers.position order by e.position limit 1
) < statement_timestamp() - $1::interval
returning name;

-- ── leases and the queues of the in-process broker ──────────────────────────────────────────────────────────────────

-- name: read_store_id
select id from identity;

-- name: take_lease
-- A lease that lasts twice as long as it is taken for is free too: the clock was set back since.
insert into leases as held (name, holder, epoch, expires) values ($1, $2, 1, clock_timestamp() + $3::interval)
on conflict (name) do update
set holder = excluded.holder, expires = excluded.expires,
    epoch = held.epoch + case when held.holder = excluded.holder then 0 else 1 end
where held.holder = excluded.holder or held.expires <= clock_timestamp()
    or held.expires > clock_timestamp() + 2 * $3::interval
returning epoch;

-- name: release_lease
-- The notification wakes the replica that takes it over.
with released as (
    update leases set expires = to_timestamp(0) where name = $1 and holder = $2 and epoch = $3 returning name
)
select pg_notify('hyperfleet', '') from released;

-- name: read_leases
-- No lease lasts two minutes. One that does was taken before the clock was set back, and its holder may be dead.
select name, holder, epoch from leases
where starts_with(name, $1) and expires > clock_timestamp() and expires < clock_timestamp() + interval '2 minutes'
order by name;

-- name: read_webhooks
select name, state from webhooks order by name;

-- name: save_webhook
insert into webhooks (name, state)
select $1, $2 where $3::text is null or exists (select from leases where name = $3 and epoch = $4::bigint)
on conflict (name) do update set state = excluded.state;

-- name: delete_webhook
delete from webhooks where name = $1;

-- name: subscribe
insert into subscriptions (name, topic, tenants, created_time) values ($1, $2, $3::text[], clock_timestamp())
on conflict (name) do nothing;

-- name: unsubscribe
delete from subscriptions where name = $1;

-- name: read_subscription
select topic, tenants from subscriptions where name = $1;

-- name: read_subscriptions
select s.name, s.topic, s.tenants,
    counts.waiting, counts.alive - counts.waiting, counts.dead,
    (select m.body from messages m
        where m.subscription = s.name and m.dead_time is null order by m.sequence limit 1)
from subscriptions s cross join lateral (
    select count(*) filter (where m.dead_time is null) as alive,
        count(*) filter (where m.dead_time is null and (m.visible_at <= statement_timestamp() or m.attempts = 0))
            as waiting,
        count(*) filter (where m.dead_time is not null) as dead
    from messages m where m.subscription = s.name
) as counts
where $1::text is null or s.name = $1 order by s.name;

-- name: enqueue
-- One notification for all of them wakes the consumers at other replicas. Other than the rest of what is done to queues
-- they are flushed: a relay that outlives a crash of this server does not publish them again.
with added as (
    insert into messages (subscription, body, visible_at)
    select s.name, new.body, clock_timestamp()
    from unnest($1::text[], $2::text[], $3::boolean[], $4::bytea[])
        with ordinality as new (topic, tenant, is_for_all, body, place)
    join subscriptions s on s.topic = new.topic
        and (s.tenants is null or new.is_for_all or new.tenant = any (s.tenants))
        and ($5::text is null or s.name = $5)
    order by new.place
    returning sequence
)
select pg_notify('hyperfleet_messages', ''), set_config('synchronous_commit', 'on', true)
where exists (select from added);

-- name: find_overdue
select s.name, s.topic, s.tenants, oldest.body, (
    select max(sequence) from messages m where m.subscription = s.name and m.dead_time is null
)
from subscriptions s cross join lateral (
    select m.body, m.visible_at from messages m
    where m.subscription = s.name and m.dead_time is null order by m.sequence limit 1
) as oldest
where oldest.visible_at < clock_timestamp() - $1::interval order by s.name;

-- name: discard_messages
delete from messages where ctid = any (array(
    select ctid from messages where subscription = $1 and dead_time is null and sequence <= $2
    order by sequence limit $3
));

-- name: take_messages
-- What was never taken may be taken at any time: the clock may have been set back since it was added. What was delivered
-- as often as allowed, and never answered, becomes a dead letter.
update messages m set
    visible_at = clock_timestamp() + $3::interval,
    attempts = m.attempts + case when m.attempts > $4 then 0 else 1 end,
    dead_time = case when m.attempts > $4 then clock_timestamp() end,
    error = case when m.attempts > $4 and m.error = '' then $5 else m.error end
from subscriptions s
where s.name = $1 and m.ctid = any (array(
    select ctid from messages
    where subscription = $1 and dead_time is null and (visible_at <= clock_timestamp() or attempts = 0)
    order by sequence limit $2 for update skip locked
))
returning m.sequence, m.body, m.attempts, s.topic, m.dead_time is not null as is_spent;

-- name: ack_messages
-- Each message is looked up by its key: a join might read the whole queue instead.
delete from messages where ctid = any (array(
    select found.id from unnest($2::bigint[], $3::integer[]) as done (sequence, attempts)
    cross join lateral (
        select ctid as id from messages
        where subscription = $1 and sequence = done.sequence and attempts = done.attempts and dead_time is null
        offset 0
    ) as found
));

-- name: nack_messages
update messages
set error = $4, visible_at = clock_timestamp() + coalesce($5::interval, interval '0'),
    dead_time = case when $5::interval is null then clock_timestamp() end
where ctid = any (array(
    select found.id from unnest($2::bigint[], $3::integer[]) as given (sequence, attempts)
    cross join lateral (
        select ctid as id from messages
        where subscription = $1 and sequence = given.sequence and attempts = given.attempts and dead_time is null
        offset 0
    ) as found
));

-- name: read_dead_letters
select m.sequence, m.body, m.error, m.attempts, m.dead_time, s.topic
from messages m join subscriptions s on s.name = m.subscription
where m.subscription = $1 and m.dead_time is not null order by m.sequence limit $2;

-- name: replay_dead_letters
update messages set dead_time = null, attempts = 0, error = '', visible_at = clock_timestamp()
where ctid = any (array(
    select ctid from messages where subscription = $1 and dead_time is not null order by sequence limit $2
));

-- ── when the sentinel looks at which resource ───────────────────────────────────────────────────────────────────────

-- name: read_due_looks
-- At least one row, for the clock.
select statement_timestamp() as now, due.*
from (select) as one left join lateral (
    select r.answer, r.look_at, r.look_history, c.resource, c.status
    from resources r join records c using (number)
    where r.kind = $1 and r.look_at <= statement_timestamp() and (r.look_at, r.id) > ($2::timestamptz, $3::text)
        and ($4::text[] is null or r.tenant = any ($4))
    order by r.look_at, r.id limit $5
) as due on true
order by due.look_at;

-- name: read_looks
select statement_timestamp() as now, r.answer, r.look_at, r.look_history, c.resource, c.status
from (select) as one left join (resources r join records c using (number))
    on r.id = any ($2::text[]) and r.kind = $1 and ($3::text[] is null or r.tenant = any ($3))
order by r.id;

-- name: count_looks
-- The next one of a tenant is looked for among the first thousand of all.
select statement_timestamp() as now, due.count, due.oldest, (
    select later.look_at from (
        select look_at, tenant from resources
        where kind = $1 and look_at > statement_timestamp() order by look_at, id limit 1000
    ) as later where $2::text[] is null or later.tenant = any ($2) order by later.look_at limit 1
) as next
from (
    select count(*), min(look_at) as oldest from (
        select look_at from resources
        where kind = $1 and look_at <= statement_timestamp() and ($2::text[] is null or tenant = any ($2))
        order by look_at, id limit $3
    ) as first
) as due;

-- name: advance_looks
-- Rows are locked in the order in which every writer locks them.
with locked as (
    select r.number, moved.at, moved.history
    from resources r join unnest($1::text[], $2::timestamptz[], $3::text[], $4::timestamptz[], $5::text[])
        as moved (id, was_at, was_history, at, history) on r.id = moved.id
    where r.look_at = moved.was_at and r.look_history is not distinct from moved.was_history
    order by r.parent_id is not null, r.id
    for update of r
)
update resources r set look_at = locked.at, look_history = locked.history
from locked where r.number = locked.number
returning r.id;

-- name: spread_looks
with batch as materialized (
    select id from resources where id > $1 order by id limit $2
), locked as (
    select number from resources
    where id = any (array(select id from batch))
        and (look_at is null or look_at > statement_timestamp() + $3::interval or ($4 and look_history is not null))
    order by parent_id is not null, id
    for update
), moved as (
    update resources r
    set look_at = least(r.look_at, statement_timestamp() + random() * $3::interval),
        look_history = case when $4::boolean then null else r.look_history end
    from locked where r.number = locked.number
)
select max(id), count(*) from batch;

-- name: read_look_rules
select digest from look_rules;

-- name: save_look_rules
update look_rules set digest = $1;

-- ── the schema ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_server
select current_setting('server_version_num')::integer as version, current_setting('server_version') as full_version,
    current_setting('server_encoding') as encoding, current_setting('fsync') as fsync;

-- name: is_read_only
select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean;

-- name: has_migrations_table
select to_regclass('schema_migrations') is not null;

-- name: read_versions
select version from schema_migrations;

-- name: lock_migrations
-- Held until the transaction ends.
select pg_advisory_xact_lock(1212566612, 0);

-- name: create_migrations_table
create table if not exists schema_migrations (
    version integer primary key,
    name text not null,
    applied_time timestamptz not null default clock_timestamp()
);

-- name: record_migration
insert into schema_migrations (version, name) values ($1, $2);
