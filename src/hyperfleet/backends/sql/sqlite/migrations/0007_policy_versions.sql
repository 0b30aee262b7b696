-- Where each version of the policy came from. Servers of the version before know files and what is built in only, so what
-- they add while they are being replaced has come from a file.

alter table policies add column source text not null default 'file'; -- or 'api' or 'built-in'
alter table policies add column author text not null default ''; -- the caller who asked for it
alter table policies add column restores integer; -- the version that a rollback went back to
alter table policies add column in_file integer not null default 1; -- a server found this in its file

update policies set source = 'built-in', in_file = 0 where file = 'built in';
