-- A heartbeat writes a new version of one row of a resource, so that row shall be small: the more of them are on a page,
-- the surer is there room beside the old version, and then no index needs to be touched. What heartbeats leave alone
-- stands elsewhere.

create table records (
    number bigint primary key,
    resource text not null,
    status text not null
) with (fillfactor = 70);

-- PostgreSQL makes room in a long row by moving columns out of it, and begins with those that are not `main`, be they as
-- short as an id. Every look at one of these is then a look into another table, and every pulse is a row there.
do $$
declare
    each record;
begin
    for each in
        select attrelid::regclass as table_name, attname as column_name from pg_attribute
        where attrelid in (
            'resources'::regclass, 'records'::regclass, 'reports'::regclass, 'report_log'::regclass, 'events'::regclass
        ) and attnum > 0 and not attisdropped and attstorage = 'x'
    loop
        execute format('alter table %s alter column %I set storage main', each.table_name, each.column_name);
    end loop;
    begin
        alter table records alter column resource set compression lz4;
        alter table records alter column status set compression lz4;
    exception when feature_not_supported then
        null; -- this server was built without it
    end;
end
$$;

insert into records select number, resource, status from resources;
alter table resources drop column resource, drop column status;

-- Values that have been moved out come back when they are made anew.
update resources
set id = id || '', kind = kind || '', parent_id = parent_id || '', tenant = tenant || '', name = name || '',
    pulse = pulse || ''::bytea;
