"""The options that every command has, as given on the command line."""

from __future__ import annotations

from datetime import timedelta


class Flags:
    """Options for all commands; None: not given."""

    server: str | None = None
    context: str | None = None
    token: str | None = None
    request_timeout: timedelta | None = None
    debug: bool = False
