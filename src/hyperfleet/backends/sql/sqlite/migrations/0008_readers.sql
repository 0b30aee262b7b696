-- Named readers of the event log. Pruning keeps what is above the lowest position of those that were not dropped.
create table readers (
    name text primary key,
    position integer not null,
    opened_time integer not null,
    moved_time integer not null,
    dropped_time integer
) without rowid;

-- Transitions are pruned by time, so those that are gone come before those that are left.
insert into forgotten (log, position, time, walked)
select 'transitions',
    coalesce((select min(position) - 1 from transitions), (select position from head)),
    case when exists (select 1 from transitions where position = 1) or (select position from head) = 0 then 0
        else coalesce((select min(time) from transitions), (strftime('%s', 'now') + 1) * 1000000) end,
    0;
