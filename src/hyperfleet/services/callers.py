"""Who asks, and what they may do. A caller is known once, at the gate; every service then takes it as a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, Protocol

from msgspec import Struct

from hyperfleet.ports import EVERYTHING, Scope

# A reader sees. A reporter also reports, an editor also creates, changes and deletes what people ask for; an admin may
# do everything. Nobody but an admin is two of these without being told so.
Role = Literal["reader", "reporter", "editor", "admin"]


class Caller(Struct, frozen=True):
    """Who asks, whose resources they may see, and whose the ones are that they create."""

    name: str = ""
    scope: Scope = EVERYTHING
    tenant: str = ""
    roles: frozenset[Role] = frozenset({"admin"})
    adapters: frozenset[str] | None = None  # as which a reporter may report; None: as any

    def may(self, role: Role) -> bool:
        """Tell whether the caller may do what a role may."""
        return role in self.roles or "admin" in self.roles or (role == "reader" and bool(self.roles))

    def foreign_among(self, adapters: Iterable[str]) -> list[str]:
        """Return those adapters as which the caller may not report."""
        own = self.adapters
        return [] if own is None else [adapter for adapter in adapters if adapter not in own]


ANYBODY: Final = Caller()


class Rejection(Struct, frozen=True):
    """Why credentials were not accepted: a sentence for their owner, which tells nothing of ours."""

    reason: str
    is_passing: bool = False  # the same credentials may be accepted later


UNKNOWN: Final = Rejection("the token is not known")
EXPIRED: Final = Rejection("the token has expired")


class Authenticator(Protocol):
    """Authenticates callers by their bearer tokens."""

    def recognize(self, token: bytes) -> Caller | None:
        """Return the caller if the token is in the cache; called for every request."""
        ...

    async def identify(self, token: bytes) -> Caller | Rejection:
        """Check a token that is not in the cache."""
        ...
