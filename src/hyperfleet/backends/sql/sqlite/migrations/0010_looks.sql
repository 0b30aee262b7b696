-- When the sentinel looks at each resource next. Those that exist are spread over ten minutes.

alter table resources add column look_at integer;
alter table resources add column look_history text;
update resources set look_at = (strftime('%s', 'now') + abs(random() % 600)) * 1000000;

create index resources_by_look on resources (kind, look_at, id, tenant) where look_at is not null;

create table look_rules (digest text not null); -- of the rules with which all looks were scheduled
insert into look_rules (digest) values ('');
