"""What a person may set, where it is read from, and what is wrong with it.

In the order a newcomer meets it: `Settings` in `tree` is all that can be set, with its defaults; `resolve` puts a file,
the environment and flags on top of these; `Address` and `Database` are what two of the texts stand for. Only what
starts a server and the command line use this: everything below gets values as arguments.
"""

from hyperfleet.settings.endpoints import (
    Address,
    Database,
    conceal,
    parse_address,
    parse_collector,
    parse_database,
    parse_networks,
)
from hyperfleet.settings.layers import Named
from hyperfleet.settings.resolution import CONFIG_VARIABLE, Resolution, find_strangers, resolve
from hyperfleet.settings.tree import (
    AUDIT_WORDS,
    SETTINGS,
    AuthSettings,
    LimitSettings,
    RetentionSettings,
    Setting,
    Settings,
    TlsSettings,
    settings_schema,
)

__all__ = [
    "AUDIT_WORDS",
    "CONFIG_VARIABLE",
    "SETTINGS",
    "Address",
    "AuthSettings",
    "Database",
    "LimitSettings",
    "Named",
    "Resolution",
    "RetentionSettings",
    "Setting",
    "Settings",
    "TlsSettings",
    "conceal",
    "find_strangers",
    "parse_address",
    "parse_collector",
    "parse_database",
    "parse_networks",
    "resolve",
    "settings_schema",
]
