-- Everything the PostgreSQL store runs, apart from lists with filters. A statement costs a round trip, so there are few.

-- ── a transaction: lock, load, write ────────────────────────────────────────────────────────────────────────────────

-- name: lock_resources
-- Parents before children, then by id: everybody locks in this order, so nobody waits in a circle. The ids are put
-- together first, because an OR of two conditions would read the whole table.
select id, xmin as version, number, answer, pulse, revision, wake_at, policy_version, last_beat, beats_passed
from resources
where id = any (array(
    select unnest($1::text[])
    union
    select parent_id from resources where id = any ($1::text[])
))
order by parent_id is not null, id
for update;

-- name: peek
-- The same without locks, with the reports: one snapshot. Whoever writes compares the versions.
select r.id, r.xmin as version, resource, status, r.answer, r.pulse, r.revision, r.wake_at, r.policy_version,
    r.last_beat, r.beats_passed,
    coalesce(known.adapters, '{}') as adapters, coalesce(known.reports, '{}') as reports
from resources r join records using (number) cross join lateral (
    select array_agg(adapter order by adapter) as adapters, array_agg(body order by adapter) as reports
    from reports where resource_id = r.id
) as known
where r.id = any (array(
    select unnest($1::text[])
    union
    select parent_id from resources where id = any ($1::text[])
));

-- name: peek_sketches
select xmin as version, id, kind, parent_id, tenant, answer, revision, wake_at, policy_version, pulse, last_beat,
    beats_passed
from resources where id = any ($1::text[]);

-- name: lock_children
select id, xmin as version, number, answer, pulse, revision, wake_at, policy_version, last_beat, beats_passed
from resources
where parent_id = any ($1::text[])
order by id
for update;

-- name: read_bodies
-- A statement of its own after the locks: only a snapshot taken then sees what the last holder of the locks wrote.
select number, resource, status from records where number = any ($1::bigint[]);

-- name: read_head_and_reports
-- The same is true of this one.
-- The head has a row to itself: joined to every report it would cost the driver half as much again.
select position, policy_version, clock_timestamp() as now, null as resource_id, null as adapter, null as body
from head
union all (
    select null, null, null, resource_id, adapter, body
    from reports where resource_id = any ($1::text[])
    order by resource_id, adapter
);

-- name: read_names
select wanted.tenant, wanted.kind, wanted.parent_id, wanted.name, r.id
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as wanted (tenant, kind, parent_id, name)
join resources r on r.kind = wanted.kind and r.name = wanted.name and not r.is_deleting
    and coalesce(r.parent_id, '') = wanted.parent_id and (r.parent_id is not null or r.tenant = wanted.tenant);

-- name: read_remembered
select key, digest, resource_id, answer, time
from idempotency where key = any ($1::text[]);

-- ── what a transaction writes, in one statement made of the parts that have rows (`postgres_writing`) ──────────────────
-- Every part selects from `raised`, so the head is locked before any row that is not locked yet; and nothing is written
-- if another policy came into force since this one was read. Parameters are counted anew in each part.

-- name: raise_head
raised as (
    update head set position = position + $1 where policy_version = $2 returning position - $1 as base
)

-- name: find_unchanged
-- For what was computed on records that we remember: they are locked now, in the usual order …
unchanged as materialized (
    select from resources r join unnest($1::text[], $2::xid[]) as known (id, version)
        on r.id = known.id and r.xmin = known.version
    order by r.parent_id is not null, r.id
    for update of r
)

-- name: raise_head_if_unchanged
-- … and if one of them is no longer the version that we know, nothing is written.
raised as (
    update head set position = position + $1
    where policy_version = $2 and (select count(*) from unchanged) = $3
    returning position - $1 as base
)

-- name: save_statuses
saved_statuses as (
    update resources r
    set answer = new.answer, pulse = new.pulse, severity = new.severity, wake_at = new.wake_at,
        policy_version = new.policy_version, revision = coalesce(raised.base + 1 + new.event, r.revision)
    from raised, unnest(
        $1::text[], $2::text[], $3::bytea[], $4::bytea[], $5::smallint[], $6::timestamptz[], $7::bigint[], $8::integer[]
    ) as new (id, status, answer, pulse, severity, wake_at, policy_version, event)
    where r.id = new.id
    returning r.number, new.status
), recorded_statuses as (
    update records set status = saved_statuses.status
    from saved_statuses where records.number = saved_statuses.number
)

-- name: beat
-- Heartbeats, which are nearly all reports: what the resource and the event have of one is sent once.
beats as materialized (
    select raised.base + 1 + new.event as position, new.*
    from raised, unnest(
        $1::text[], $2::bytea[], $3::bytea[], $4::integer[], $5::bigint[], $6::text[], $7::bigint[],
        $8::timestamptz[], $9::timestamptz[], $10::text[], $11::bigint[], $12::smallint[]
    ) as new (
        id, answer, pulse, event, generation, adapter, observed_generation, time, effective_time, report_id, previous,
        passed
    )
), beating as (
    update resources r
    set answer = beats.answer, pulse = beats.pulse, revision = beats.position, last_beat = beats.position,
        beats_passed = beats.passed
    from beats where r.id = beats.id
    returning r.id, r.kind, r.parent_id, r.tenant
), told_beats as (
    insert into events (
        position, type, resource_id, kind, parent_id, tenant, generation, time, previous, adapter, observed_generation,
        effective_time, report_id, pulse
    )
    select position, 'Reported', id, kind, parent_id, tenant, generation, time, previous, adapter, observed_generation,
        effective_time, report_id, case when passed = 0 then pulse end
    from beats join beating using (id)
)

-- name: save_times
saved_times as (
    update resources r
    set answer = new.answer, pulse = new.pulse, revision = coalesce(raised.base + 1 + new.event, r.revision)
    from raised, unnest($1::text[], $2::bytea[], $3::bytea[], $4::integer[]) as new (id, answer, pulse, event)
    where r.id = new.id
)

-- name: save_reports
saved_reports as (
    insert into reports (resource_id, adapter, generation, body)
    select new.* from raised, unnest(
        $1::text[], $2::text[], $3::bigint[], $4::text[]
    ) as new (resource_id, adapter, generation, body)
    on conflict (resource_id, adapter) do update set generation = excluded.generation, body = excluded.body
)

-- name: log_reports
logged_reports as (
    insert into report_log (resource_id, adapter, generation, position, received_time, effective_time, report_id, body)
    select new.resource_id, new.adapter, new.generation,
        case when new.event < 0 then 0 else raised.base + 1 + new.event end,
        new.received_time, new.effective_time, new.report_id, new.body
    from raised, unnest(
        $1::text[], $2::text[], $3::bigint[], $4::integer[], $5::timestamptz[], $6::timestamptz[], $7::text[], $8::text[]
    ) as new (resource_id, adapter, generation, event, received_time, effective_time, report_id, body)
)

-- name: tell_events
told_events as (
    insert into events (position, type, resource_id, kind, parent_id, tenant, generation, time, answer, facets, previous)
    select raised.base + 1 + new.event, new.type, new.resource_id, new.kind, new.parent_id, new.tenant,
        new.generation, new.time, new.answer, new.facets, new.previous
    from raised, unnest(
        $1::integer[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[],
        $9::bytea[], $10::text[], $11::bigint[]
    ) as new (event, type, resource_id, kind, parent_id, tenant, generation, time, answer, facets, previous)
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

-- name: tally
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

-- name: tally_accepted
-- Nothing was discarded, nor only stored: what is nearly always so.
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

-- name: tell_outcome
-- What the rows that were written are known by from now on, and the time.
select base, pg_current_xact_id()::xid as version, clock_timestamp() as now from raised

-- What follows is rare. It comes after that, so that the head's lock keeps writers from waiting for one another's
-- unique keys in a circle.

-- name: remove_reports
delete from reports using unnest($1::text[], $2::text[]) as gone (resource_id, adapter)
where reports.resource_id = gone.resource_id and reports.adapter = gone.adapter;

-- name: remove_resources
with gone as (
    delete from resources where id = any ($1::text[]) returning number
), gone_records as (
    delete from records using gone where records.number = gone.number
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
        (id, kind, parent_id, tenant, name, created_time, is_deleting, severity, revision, wake_at, policy_version, answer)
    select * from unnest(
        $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::boolean[], $8::smallint[],
        $9::bigint[], $10::timestamptz[], $11::bigint[], $12::bytea[]
    )
    returning number, id
)
insert into records (number, resource, status)
select inserted.number, new.resource, new.status
from inserted join unnest($1::text[], $13::text[], $14::text[]) as new (id, resource, status) using (id);

-- name: insert_facets
-- Of resources that are there only since the statement before.
insert into facets (token, number)
select new.token, r.number from unnest($1::text[], $2::text[]) as new (id, token) join resources r on r.id = new.id
on conflict do nothing;

-- name: insert_remembered
insert into idempotency (key, digest, resource_id, answer, time)
select * from unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::timestamptz[]);

-- ── reads ───────────────────────────────────────────────────────────────────────────────────────────────────────────
-- Those with a list of tenants, which is null for whoever may see everything. Logs do not say whose their rows are: the
-- newest event of the resource with an answer does, and that of a living resource is never pruned. It is looked up once
-- a statement.

-- name: read_answers
select id, kind, tenant, parent_id, answer, revision from resources where id = any ($1::text[]);

-- name: read_record
-- One statement is one snapshot: the reports are those the status was made from.
select resource, status, answer, pulse, revision, wake_at, policy_version,
    array(select adapter from reports where resource_id = id order by adapter) as adapters,
    array(select body from reports where resource_id = id order by adapter) as reports
from resources join records using (number)
where id = $1 and kind = $2
    and ($3::text[] is null or tenant = any ($3)) and ($4::text is null or parent_id = $4);

-- name: read_records
select resource, status, answer, pulse, revision, wake_at, policy_version,
    array(select adapter from reports where resource_id = id order by adapter) as adapters,
    array(select body from reports where resource_id = id order by adapter) as reports
from resources join records using (number)
where id = any ($1::text[]) and ($2::text[] is null or tenant = any ($2))
order by id;

-- name: read_children
select resource, status, answer, pulse, revision, wake_at, policy_version,
    array(select adapter from reports where resource_id = id order by adapter) as adapters,
    array(select body from reports where resource_id = id order by adapter) as reports
from resources join records using (number)
where parent_id = $1 and ($2::text[] is null or tenant = any ($2))
order by id;

-- name: read_reports_now
select adapter, body, (select pulse from resources where id = $1) from reports
where resource_id = $1 and generation = $2 and ($3::text[] is null or (
        select tenant from events where resource_id = $1 and type <> 'Reported' order by position desc limit 1
    ) = any ($3));

-- name: read_reports_then
-- The last logged of each adapter. One without a body said what the nearest before it said that has one.
select distinct on (adapter) adapter, report_id, effective_time, received_time, coalesce(body, (
    select said.body from report_log said
    where said.resource_id = last.resource_id and said.adapter = last.adapter
        and said.generation = last.generation and said.sequence < last.sequence and said.body is not null
    order by said.sequence desc limit 1
)) as body
from report_log last
where resource_id = $1 and generation = $2 and ($3::text[] is null or (
        select tenant from events where resource_id = $1 and type <> 'Reported' order by position desc limit 1
    ) = any ($3))
order by adapter, sequence desc;

-- name: read_adapters
select adapter, last_seen, skew_us, aggregated, stored, replayed, stale_generation, out_of_order,
    unknown_after_first, generation_ahead, last_discard
from adapters where $1::text[] is null or tenant = any ($1);

-- name: read_transitions
-- After its time: when the state before it began. What was not there before has no such time.
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
        select tenant from events where resource_id = $1 and type <> 'Reported' order by position desc limit 1
    ) = any ($8))
order by t.position desc, t.ordinal desc limit $7;

-- name: remembers
-- The newest event with an answer tells; that of a living resource is never pruned.
select true
from (
    select kind, parent_id, tenant from events
    where resource_id = $1 and type <> 'Reported' order by position desc limit 1
) as newest
where kind = $2 and ($3::text[] is null or tenant = any ($3)) and ($4::text is null or parent_id = $4);

-- ── time and policy ─────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_due
-- At least one row, for the clock; ask for one resource more than wanted to learn when the next one is due.
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

-- Heartbeats are found by walking back from the event after them, or else from the last one, from each to the one before
-- it. The other events and every 32nd heartbeat, the milestones, are found by their resource.

-- name: read_span
-- The first of these and the last one until a time, and where to walk back from to the heartbeats around it. They are in
-- the order of time, so the last one is searched for by halves, for there may be many.
with recursive first as (
    select position, type, time from events
    where resource_id = $1 and (report_id is null or pulse is not null) order by position limit 1
), search (low, high) as (
    select first.position, head.position from first, head
    union all
    select case when e.time <= $2 then e.position else s.low end,
        case when e.time <= $2 then s.high else (s.low + s.high + 1) / 2 - 1 end
    from search s left join lateral (
        select position, time from events
        where resource_id = $1 and (report_id is null or pulse is not null) and position >= (s.low + s.high + 1) / 2
        order by position limit 1
    ) as e on true
    where s.low < s.high
), last as (
    select position, time, previous from events where position = (select low from search where low = high)
)
select first.type, first.time, last.position, last.time, coalesce(
    (
        select e.previous from events e
        where e.resource_id = $1 and (e.report_id is null or e.pulse is not null) and e.position > last.position
            and e.previous is not null -- an event of a version that knows no heartbeats names none
        order by e.position limit 1
    ),
    (select last_beat from resources where id = $1),
    last.previous
)
from first cross join last;

-- name: read_beats
-- The heartbeats until a time, from one on and back to the last milestone until then.
with recursive walk as (
    select position, time, adapter, observed_generation, effective_time, report_id, pulse, previous
    from events where position = $1
    union all
    select e.position, e.time, e.adapter, e.observed_generation, e.effective_time, e.report_id, e.pulse, e.previous
    from walk w join events e on e.position = w.previous
    where w.time > $2 or w.pulse is null
)
select 0::bigint, adapter, observed_generation, position, report_id, effective_time, time, null, pulse from walk
where time <= $2 order by position;

-- name: read_beats_since
-- All heartbeats since a time, from the last one of the resource on.
with recursive walk as (
    select position, time, adapter, observed_generation, effective_time, report_id, previous
    from events where position = $1
    union all
    select e.position, e.time, e.adapter, e.observed_generation, e.effective_time, e.report_id, e.previous
    from walk w join events e on e.position = w.previous
    where w.time >= $2
)
select 0::bigint, adapter, observed_generation, position, report_id, effective_time, time, null from walk
where time >= $2;

-- name: read_full_event
select position, type, kind, resource_id, parent_id, tenant, generation, time, answer, facets
from events where resource_id = $1 and position <= $2 and type <> 'Reported' order by position desc limit 1;

-- name: read_full_events
select position, type, kind, resource_id, parent_id, tenant, generation, time, answer, facets
from events where resource_id = $1 and type <> 'Reported' and answer is not null
    and ($3::text[] is null or tenant = any ($3)) and position >= coalesce((
        select position from events
        where resource_id = $1 and type <> 'Reported' and answer is not null and time <= $2
        order by position desc limit 1
    ), 0)
order by position;

-- name: read_last_reports
-- The last row of each adapter and generation that was received until a time and whose event came until a position,
-- with the body of the row that it repeats. The index is walked from key to key, for most rows are heartbeats.
with recursive keys (adapter, generation) as (
    (
        select adapter, generation from report_log
        where resource_id = $1 and ($4::text[] is null or (
            select tenant from events where resource_id = $1 and type <> 'Reported' order by position desc limit 1
        ) = any ($4))
        order by adapter, generation limit 1
    )
    union all
    select n.adapter, n.generation from keys k cross join lateral (
        select adapter, generation from report_log
        where resource_id = $1 and (adapter, generation) > (k.adapter, k.generation)
        order by adapter, generation limit 1
    ) as n
)
select l.sequence, k.adapter, k.generation, l.position, l.report_id, l.effective_time, l.received_time,
    coalesce(l.body, (
        select said.body from report_log said
        where said.resource_id = $1 and said.adapter = k.adapter and said.generation = k.generation
            and said.sequence < l.sequence and said.body is not null
        order by said.sequence desc limit 1
    ))
from keys k cross join lateral (
    select sequence, position, report_id, effective_time, received_time, body from report_log
    where resource_id = $1 and adapter = k.adapter and generation = k.generation
        and received_time <= $2 and ($3::bigint is null or position <= $3)
    order by sequence desc limit 1
) as l;

-- name: read_reports_since
select sequence, adapter, generation, position, report_id, effective_time, received_time, body
from report_log
where resource_id = $1 and received_time >= $2 and ($3::text[] is null or (
        select tenant from events where resource_id = $1 and type <> 'Reported' order by position desc limit 1
    ) = any ($3));

-- name: walk_resources
select resource, status, answer, pulse, revision, wake_at, policy_version,
    array(select adapter from reports where resource_id = id order by adapter) as adapters,
    array(select body from reports where resource_id = id order by adapter) as reports
from resources join records using (number)
where id > $1 and ($2::text[] is null or tenant = any ($2))
order by id limit $3;

-- ── retention ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_cutoff
select statement_timestamp() - $1::interval;

-- name: walk_events
-- After each event: one right before it that only moved times, and if it is none itself, the event that it takes the
-- place of. Heartbeats that stand in this log alone go with the reports.
select e.position, e.time, e.type, e.resource_id,
    case when e.report_id is null or e.pulse is not null then (
        select case when p.type = 'Reported' and p.report_id is null then p.position end from events p
        where p.resource_id = e.resource_id and (p.report_id is null or p.pulse is not null)
            and p.position < e.position
        order by p.position desc limit 1
    ) end,
    case when e.type <> 'Reported' then (
        select p.position from events p
        where p.resource_id = e.resource_id and p.position < e.position and p.type <> 'Reported'
        order by p.position desc limit 1
    ) end
from events e
where e.position > $1
    and e.position <= coalesce((select min(position) from readers where dropped_time is null), 9223372036854775807)
order by e.position limit $2;

-- name: walk_beats
-- After each milestone: the heartbeats before it, back to the milestone before it, that one included.
with recursive passed as (
    select position, time, previous, pulse is not null as is_milestone
    from events where position > $1 and position <= (select walked from forgotten where log = 'events')
    order by position limit $2
), walk as (
    select passed.position as milestone, e.position, e.previous, e.pulse is not null as is_milestone
    from passed join events e on e.position = passed.previous where passed.is_milestone
    union all
    select w.milestone, e.position, e.previous, e.pulse is not null
    from walk w join events e on e.position = w.previous where not w.is_milestone
)
select passed.position, passed.time, walk.position from passed left join walk on walk.milestone = passed.position
order by passed.position, walk.position;

-- name: find_orphan_beats
-- The heartbeats of resources before their removal or a milestone, the oldest first.
with recursive passed as (
    select e.previous from events e join events beat on beat.position = e.previous
    where e.resource_id = any ($1::text[]) and (e.report_id is null or e.pulse is not null)
        and (e.type = 'Removed' or e.pulse is not null)
    order by e.position limit $2
), walk as (
    select e.position, e.previous, e.pulse is not null as is_milestone
    from passed join events e on e.position = passed.previous
    union
    select e.position, e.previous, e.pulse is not null
    from walk w join events e on e.position = w.previous where not w.is_milestone
)
select position as key from walk order by position limit $2;

-- name: delete_events
delete from events where position = any ($1::bigint[]);

-- name: walk_reports
-- After each report: a repetition right before it, and if it has words of its own, the one whose words it replaces.
select l.sequence, l.received_time,
    (
        select case when p.body is null then p.sequence end from report_log p
        where p.resource_id = l.resource_id and p.adapter = l.adapter and p.generation = l.generation
            and p.sequence < l.sequence
        order by p.sequence desc limit 1
    ),
    case when l.body is not null then (
        select p.sequence from report_log p
        where p.resource_id = l.resource_id and p.adapter = l.adapter and p.generation = l.generation
            and p.sequence < l.sequence and p.body is not null
        order by p.sequence desc limit 1
    ) end
from report_log l where l.sequence > $1 order by l.sequence limit $2;

-- name: find_orphans
select sequence as key from report_log where resource_id = any ($1::text[]) limit $2;

-- name: delete_reports
delete from report_log where sequence = any ($1::bigint[]);

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
delete from idempotency where key = any (array(
    select key from idempotency where time < statement_timestamp() - $1::interval order by time limit $2
));

-- ── following the log ───────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_log_state
-- The head, and how far the log is whole: of events, and of transitions.
select h.position, max(f.position), max(f.time)
from head h cross join forgotten f where f.log in ('events', 'transitions') group by h.position;

-- name: find_position
-- The last event before a time. Events are in the order of time but for what was written at once, so it is searched for
-- by halves.
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
-- Parameters: the range of positions, the span of time, kinds, tenants, whether there must be a transition, its
-- subjects, values before and after, causes.
select e.position from events e
where e.position > $1 and e.position <= $2 and e.type <> 'Reported'
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
where e.position > $1 and e.position <= $2 and e.type <> 'Reported'
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
-- A resource that is gone is named by the last answer before the event, or by the event's own.
select e.position, e.type, e.kind, e.resource_id, e.parent_id, e.tenant, r.name, e.generation, e.time, e.facets,
    case when r.id is null then coalesce(e.answer, (
        select p.answer from events p
        where p.resource_id = e.resource_id and p.type <> 'Reported' and p.position < e.position
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
-- Tokens that an event kept are not looked at: what it gained and lost comes after the first list.
select position, time, type, facets from events
where position > $1 and position <= $2 and time > $3 and kind = $4 and type <> 'Reported'
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
where name = $1 and position = $2 and position < $3 and $3 <= (select position from head);

-- name: close_reader
delete from readers where name = $1;

-- name: drop_readers
update readers set dropped_time = clock_timestamp()
where dropped_time is null and (
    select time from events e where e.position > readers.position order by e.position limit 1
) < statement_timestamp() - $1::interval
returning name;

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
