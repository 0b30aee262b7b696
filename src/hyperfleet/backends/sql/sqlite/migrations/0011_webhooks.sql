-- What webhooks have sent: their open problems and how deliveries went, as JSON.

create table webhooks (
    name text primary key,
    state blob not null
) without rowid;
