"""What every handler works with, put together once by the composition root."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from msgspec import Struct

from hyperfleet.model.kind import Kinds
from hyperfleet.ports import Clock, Store
from hyperfleet.services.callers import Doorkeeper
from hyperfleet.services.committer import Committer
from hyperfleet.services.policies import PolicyBook
from hyperfleet.services.resources import CheckSpec
from hyperfleet.services.tail import Tail


class Limits(Struct, frozen=True):
    """How much one request may ask for."""

    body_bytes: int = 1024 * 1024
    batch_bytes: int = 8 * 1024 * 1024
    depth: int = 32  # of nested JSON
    batch: int = 1_000  # reports in one request
    time: timedelta = timedelta(seconds=30)


class Context(Struct, frozen=True):
    """The services behind the API."""

    store: Store
    committer: Committer
    policies: PolicyBook
    kinds: Kinds
    check_spec: CheckSpec
    new_id: Callable[[str], str]  # prefix → id
    clock: Clock
    tail: Tail
    limits: Limits = Limits()
    doorkeeper: Doorkeeper | None = None  # None: nobody is asked who they are
