"""The settings: what can be set, where it is read from, and what is wrong with it.

In the order a newcomer meets it: `Settings` in `tree` has all settings with their defaults; `resolve` applies a file,
the environment and flags on top of the defaults; `Address` and `Database` are parsed values of two of them. Only server
start-up and the command line use this package; everything below gets values as arguments.
"""

from hyperfleet.settings.endpoints import (
    Address,
    Database,
    conceal,
    parse_address,
    parse_collector,
    parse_database,
    parse_networks,
    parse_rabbit_url,
)
from hyperfleet.settings.layers import Named
from hyperfleet.settings.resolution import CONFIG_VARIABLE, Resolution, find_unknown_variables, resolve
from hyperfleet.settings.tree import (
    AUDIT_WORDS,
    SETTINGS,
    AuthSettings,
    LimitSettings,
    PubSubSettings,
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
    "PubSubSettings",
    "Resolution",
    "RetentionSettings",
    "Setting",
    "Settings",
    "TlsSettings",
    "conceal",
    "find_unknown_variables",
    "parse_address",
    "parse_collector",
    "parse_database",
    "parse_networks",
    "parse_rabbit_url",
    "resolve",
    "settings_schema",
]
