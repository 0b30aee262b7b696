"""Callers and what they may do. A request is authenticated once, at the edge; services take the caller as a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, Protocol

from msgspec import Struct

from hyperfleet.ports import EVERYTHING, Scope

# A reader reads. A reporter also reports; an editor also creates, edits and deletes resources; an admin may do
# everything. Apart from that, roles do not include each other.
Role = Literal["reader", "reporter", "editor", "admin"]


class Caller(Struct, frozen=True):
    """Who sends a request, the tenants whose resources they may see, and the tenant of what they create."""

    name: str = ""
    scope: Scope = EVERYTHING
    tenant: str = ""
    roles: frozenset[Role] = frozenset({"admin"})
    adapters: frozenset[str] | None = None  # that a reporter may report as; None: any

    def may(self, role: Role) -> bool:
        """Tell whether the caller has the permissions of a role."""
        return role in self.roles or "admin" in self.roles or (role == "reader" and bool(self.roles))

    def adapters_not_allowed(self, adapters: Iterable[str]) -> list[str]:
        """Return the adapters that the caller may not report as."""
        own = self.adapters
        return [] if own is None else [adapter for adapter in adapters if adapter not in own]


ANONYMOUS: Final = Caller()


class Rejection(Struct, frozen=True):
    """Why credentials were not accepted: a sentence for the caller, which reveals nothing about the server."""

    reason: str
    is_temporary: bool = False  # the same credentials may be accepted later


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
