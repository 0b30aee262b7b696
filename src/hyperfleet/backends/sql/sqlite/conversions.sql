-- What migrations read and write where rows are converted in Python (`conversions`). These fit the schema of their time.

-- name: read_report_rows
select b.resource_id, b.adapter, cast(b.body as blob), r.pulse
from report_bodies b join resources r on r.id = b.resource_id;

-- name: write_report_rows
insert into reports (resource_id, adapter, generation, digest, report_id, effective_time, last_heard, is_calm)
values (?, ?, ?, ?, ?, ?, ?, ?);
