-- What webhooks have sent: their open problems and how deliveries went, as JSON.

create table webhooks (
    name text collate "C" primary key,
    state bytea not null
) with (fillfactor = 50);
