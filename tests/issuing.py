"""An issuer of JWTs for tests: keys of its own, good tokens, and every bad one that we know of."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

from joserfc import jws
from joserfc.jwk import ECKey, OctKey, RSAKey

ISSUER: Final = "https://id.example.com/realms/fleet"
AUDIENCE: Final = "hyperfleet"
SECRET: Final = "a shared secret of more than thirty-two bytes"  # noqa: S105  # only of tests

# Made once: an RSA key takes a while.
RSA: Final = RSAKey.generate_key(2048, {"kid": "rsa-1"})
CURVE: Final = ECKey.generate_key("P-256", {"kid": "ec-1"})
FOREIGN: Final = RSAKey.generate_key(2048, {"kid": "rsa-1"})  # an attacker's, under the name of ours
NEXT: Final = ECKey.generate_key("P-256", {"kid": "ec-2"})
_SHARED: Final = OctKey.import_key(SECRET)

Key = RSAKey | ECKey | OctKey


def key_set(*keys: RSAKey | ECKey) -> bytes:
    """Return the document in which an issuer tells its public keys."""
    return json.dumps({"keys": [{**key.as_dict(private=False), "use": "sig"} for key in keys]}).encode()


def write_key_set(directory: Path, *keys: RSAKey | ECKey, file: str = "jwks.json") -> Path:
    """Keep the document in a file."""
    path = directory / file
    path.write_bytes(key_set(*(keys or (RSA, CURVE))))
    return path


def claims(now: float, **changes: Any) -> dict[str, Any]:
    """Return good claims with changes; what is changed to None is left out."""
    said = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "alice",
        "iat": now - 10,
        "nbf": now - 10,
        "exp": now + 600,
        "roles": ["admin"],
        "tenants": ["*"],
        **changes,
    }
    return {name: value for name, value in said.items() if value is not None}


def sign(said: Mapping[str, Any], key: Key = RSA, algorithm: str = "RS256", **header: Any) -> str:
    """Return a token; a header that is None is left out."""
    full = {"alg": algorithm, "typ": "JWT", "kid": key.kid, **header}
    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    shown = {name: value for name, value in full.items() if value is not None}
    return jws.serialize_compact(shown, json.dumps(said), key, registry=registry)


def sign_loosely(said: Mapping[str, Any], header: Mapping[str, Any], signature: bytes = b"") -> str:
    """Return what no library would sign."""
    parts = (json.dumps(header).encode(), json.dumps(said).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def sign_with_public_key(said: Mapping[str, Any]) -> str:
    """Return a token signed by HS256, with our public key as the secret that everybody knows."""
    unsigned = sign_loosely(said, {"alg": "HS256", "typ": "JWT", "kid": "rsa-1"}).rpartition(".")[0]
    digest = hmac.new(RSA.as_pem(private=False), unsigned.encode(), hashlib.sha256).digest()
    return f"{unsigned}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def _with_public_key(said: Mapping[str, Any], **header: Any) -> str:
    """Return a token of an attacker, which brings the key to verify it with, or says where that is."""
    return sign(said, FOREIGN, **header)


BAD: Final[Mapping[str, Callable[[float], str]]] = {
    "alg none": lambda now: sign_loosely(claims(now), {"alg": "none", "typ": "JWT"}),
    "alg none with a signature": lambda now: sign_loosely(claims(now), {"alg": "none"}, b"anything"),
    "alg nOnE": lambda now: sign_loosely(claims(now), {"alg": "nOnE", "kid": "rsa-1"}, b"anything"),
    "alg missing": lambda now: sign_loosely(claims(now), {"typ": "JWT"}, b"anything"),
    "HS256 with the public key as the secret": lambda now: sign_with_public_key(claims(now)),
    "an algorithm that is not set": lambda now: sign(claims(now), RSA, "RS512"),
    "wrong key": lambda now: sign(claims(now), FOREIGN),
    "key of another sort": lambda now: sign(claims(now), ECKey.generate_key("P-256"), "ES256", kid="rsa-1"),
    "unknown key": lambda now: sign(claims(now), FOREIGN, kid="nobody's"),
    "no key named, though there is a choice": lambda now: sign(claims(now), FOREIGN, kid=None),
    "wrong audience": lambda now: sign(claims(now, aud="somebody-else")),
    "wrong audiences": lambda now: sign(claims(now, aud=["a", "b", 5, None])),
    "no audience": lambda now: sign(claims(now, aud=None)),
    "audience of another type": lambda now: sign(claims(now, aud={"hyperfleet": True})),
    "wrong issuer": lambda now: sign(claims(now, iss="https://evil.example.com")),
    "issuer with a slash": lambda now: sign(claims(now, iss=ISSUER + "/")),
    "issuers": lambda now: sign(claims(now, iss=[ISSUER])),
    "no issuer": lambda now: sign(claims(now, iss=None)),
    "expired": lambda now: sign(claims(now, exp=now - 31)),
    "no exp": lambda now: sign(claims(now, exp=None)),
    "exp of another type": lambda now: sign(claims(now, exp="never")),
    "exp true": lambda now: sign(claims(now, exp=True)),
    "exp beyond all numbers": lambda now: sign(claims(now, exp=10**400)),
    "nbf beyond all numbers": lambda now: sign(claims(now, nbf=-(10**400))),
    "not yet valid": lambda now: sign(claims(now, nbf=now + 31)),
    "issued in the future": lambda now: sign(claims(now, iat=now + 31)),
    "no name": lambda now: sign(claims(now, sub=None)),
    "a name of another type": lambda now: sign(claims(now, sub=["alice"])),
    "a name that cannot be shown": lambda now: sign(claims(now, sub="alice\r\nadmin")),
    "wrong type": lambda now: sign(claims(now), typ="secevent+jwt"),
    "crit": lambda now: sign_loosely(claims(now), {"alg": "RS256", "kid": "rsa-1", "crit": ["exp"], "exp": 1}, b"x"),
    "crit, signed": lambda now: sign(claims(now), crit=["b64"], b64=True),
    "jwk": lambda now: _with_public_key(claims(now), jwk=FOREIGN.as_dict(private=False)),
    "jwk, signed by us": lambda now: sign(claims(now), jwk=RSA.as_dict(private=False)),
    "jku": lambda now: _with_public_key(claims(now), jku="https://evil.example.com/keys"),
    "x5u": lambda now: _with_public_key(claims(now), x5u="https://evil.example.com/chain"),
    "huge": lambda now: sign(claims(now, padding="x" * 8_192)),
    "garbage": lambda now: "garbage",
    "garbage in three parts": lambda now: "a.b.c",
    "not even text": lambda now: "%00.%ff.\u00e9",
    "truncated": lambda now: sign(claims(now))[:-40],
    "without its signature": lambda now: sign(claims(now)).rpartition(".")[0] + ".",
    "changed": lambda now: _change(sign(claims(now, roles=["reader"])), claims(now)),
    "extra segments": lambda now: sign(claims(now)) + ".abc",
    "five segments, as an encrypted one": lambda now: "a.b.c.d.e",
    "claims that are a list": lambda now: sign_loosely([], {"alg": "RS256"}, b"x"),  # type: ignore[arg-type]  # that is what is wrong with it
    "deeply nested": lambda now: _nest(),
    "two tokens": lambda now: f"{sign(claims(now))} {sign(claims(now))}",
}


def _change(token: str, said: Mapping[str, Any]) -> str:
    """Put other claims under a signature."""
    header, _, signature = token.split(".")
    return f"{header}.{sign_loosely(said, {}).split('.')[1]}.{signature}"


def _nest() -> str:
    deep = base64.urlsafe_b64encode(b'{"alg":' + b"[" * 3_000).rstrip(b"=").decode()
    return f"{deep}.e30.eA"


class Directory:
    """Where an issuer tells its keys: a server on this machine that can be away, and counts its visitors."""

    def __init__(self) -> None:
        self.document = key_set(RSA, CURVE)
        self.status = 200
        self.visits = 0
        self.url = ""


@contextmanager
def publishing() -> Iterator[Directory]:
    """Run such a server for a while."""
    directory = Directory()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            directory.visits += 1
            self.send_response(directory.status)
            self.send_header("Content-Length", str(len(directory.document)))
            self.end_headers()
            self.wfile.write(directory.document)

        def log_message(self, *_: Any) -> None:
            """Keep quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    directory.url = f"http://127.0.0.1:{server.server_address[1]}/keys"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield directory
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
