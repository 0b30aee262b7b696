-- A heartbeat writes one row of a resource, so that row shall be small: what it leaves alone stands elsewhere, and the
-- times that it moves, of the status and of reports, are the pulse.

create table records (
    number integer primary key,
    status text not null,
    resource text not null
);
insert into records select number, status, resource from resources;

alter table resources drop column status;
alter table resources drop column resource;
alter table resources add column pulse blob; -- null: neither the status nor a report is behind

-- Rows of tables without rowids that are longer than a quarter of a page are torn in two.
create table whole_reports (
    number integer primary key,
    resource_id text not null,
    adapter text not null,
    generation integer not null,
    body text not null
);
insert into whole_reports (resource_id, adapter, generation, body)
select resource_id, adapter, generation, body from reports;
drop table reports;
alter table whole_reports rename to reports;
create unique index reports_of_resource on reports (resource_id, adapter);
