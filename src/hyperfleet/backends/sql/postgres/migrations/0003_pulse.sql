-- The times that a heartbeat moves, of the status and of reports: with them it writes the answer, and nothing else of
-- the resource. Null: neither the status nor a report is behind.
alter table resources add column pulse bytea;
