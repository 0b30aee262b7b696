-- Named readers of the event log. Pruning keeps what is above the lowest position of those that were not dropped.
create table readers (
    name text collate "C" primary key,
    position bigint not null,
    opened_time timestamptz not null,
    moved_time timestamptz not null,
    dropped_time timestamptz
) with (fillfactor = 50);

-- Transitions are pruned by time, so those that are gone come before those that are left.
insert into forgotten (log, position, time, walked)
select 'transitions',
    coalesce((select min(position) - 1 from transitions), (select position from head)),
    case when exists (select from transitions where position = 1) or (select position from head) = 0 then to_timestamp(0)
        else coalesce((select min(time) from transitions), clock_timestamp()) end,
    0;
