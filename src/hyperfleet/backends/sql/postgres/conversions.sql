-- What migrations read and write where rows are converted in Python (`conversions`). These fit the schema of their time.

-- name: read_report_rows
select b.resource_id, b.adapter, b.body, r.pulse from report_bodies b join resources r on r.id = b.resource_id

-- name: write_report_rows
insert into reports (resource_id, adapter, generation, digest, report_id, effective_time, last_heard, is_calm)
select * from unnest(
    $1::text[], $2::text[], $3::bigint[], $4::bytea[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::boolean[]
);
