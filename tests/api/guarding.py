"""A server that authenticates callers, for tests: with a real token file and an issuer of JWTs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from hyperfleet.access.factory import build_authenticator
from hyperfleet.access.issuer import Issuer
from hyperfleet.api.context import RequestLimits
from hyperfleet.ports import Store
from tests.api.fleet import START, Fleet, HandClock, open_fleet
from tests.issuing import AUDIENCE, ISSUER, write_key_set

NOW = START.timestamp()
TOKENS = """
- {name: nobody, token: nobody-0123456789abcdef, roles: [reader], tenants: [none]}
- {name: reader, token: reader-0123456789abcdef, roles: [reader], tenants: ["*"]}
- {name: reporter, token: reporter-0123456789abcdef, roles: [reporter], adapters: ["*"], tenants: ["*"]}
- {name: dns, token: dns-0123456789abcdef, roles: [reporter], adapters: [dns], tenants: ["*"]}
- {name: editor, token: editor-0123456789abcdef, roles: [editor], tenants: ["*"]}
- {name: admin, token: admin-0123456789abcdef, roles: [admin], tenants: ["*"]}
- {name: red-admin, token: red-admin-0123456789abcdef, roles: [admin], tenants: [red]}
"""


def bearer(token: str) -> dict[str, Any]:
    """Return the header that carries a token, whatever is in it."""
    return {"Authorization": b"Bearer " + token.encode("latin-1")}


def known(name: str) -> dict[str, Any]:
    """Return the header of somebody in the file."""
    return bearer(f"{name}-0123456789abcdef")


class GuardedFleet:
    """A server with an authenticator, and a client that shows the token of an admin unless told otherwise."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def send(self, method: str, path: str, headers: dict[str, Any], **more: Any) -> httpx.Response:
        """Send a request with these headers only."""
        return self.fleet.request(method, path, headers=headers, **more)

    def act(self, method: str, path: str, json: Any = None, name: str = "admin") -> httpx.Response:
        """Send a request as somebody of the file."""
        more = {} if json is None else {"json": json}
        return self.fleet.request(method, path, headers=known(name), **more)


@contextmanager
def open_guarded(store: Store, clock: HandClock, directory: Path) -> Iterator[GuardedFleet]:
    """Run such a server for a while."""
    file = directory / "tokens.yaml"
    file.touch(mode=0o600)
    file.write_text(TOKENS)
    issuer = Issuer(issuer=ISSUER, audience=AUDIENCE, jwks=str(write_key_set(directory)))
    authenticator = build_authenticator(str(file), (issuer,), lambda: NOW)
    with open_fleet(store, clock, RequestLimits(), authenticator=authenticator) as fleet:
        yield GuardedFleet(fleet)
