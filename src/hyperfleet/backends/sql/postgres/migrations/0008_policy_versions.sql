-- Where each version of the policy came from. Servers of the version before know files and what is built in only, so what
-- they add while they are being replaced has come from a file.

alter table policies
    add column source text not null default 'file', -- or 'api' or 'built-in'
    add column author text not null default '', -- the caller who asked for it
    add column restores bigint, -- the version that a rollback went back to
    add column in_file boolean not null default true; -- a server found this in its file

update policies set source = 'built-in', in_file = false where file = 'built in';
