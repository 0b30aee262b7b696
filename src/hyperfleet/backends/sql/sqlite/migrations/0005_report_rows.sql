-- A heartbeat updates one small row, of `reports`: what it compares and the two times that it moves. What a report says
-- stands in `report_bodies`.

drop index reports_of_resource;
alter table reports rename to report_bodies;
alter table report_bodies drop column generation;
create unique index report_bodies_of_resource on report_bodies (resource_id, adapter);

create table reports (
    resource_id text not null,
    adapter text not null,
    generation integer not null,
    digest blob not null, -- of what the report says, whenever it says it
    report_id text not null,
    effective_time integer not null,
    last_heard integer not null,
    is_calm integer not null, -- being heard again changes nothing but the two times
    primary key (resource_id, adapter)
) without rowid;
