"""Verify a JWT; nothing in it is trusted before it is verified.

The order: size and form, header, issuer, signature (with a key and an algorithm configured for that issuer), and only
then the claims. A rejection never quotes the token.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from msgspec import UNSET, Struct, UnsetType

from hyperfleet.access.claims import read_caller
from hyperfleet.access.issuer import SHARED_ALGORITHM, Issuer
from hyperfleet.access.keys import Keys, VerifyingKey
from hyperfleet.access.token_file import Ticket
from hyperfleet.services.callers import EXPIRED, UNKNOWN, Rejection

_FORM: Final = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_TYPES: Final = frozenset({"jwt", "at+jwt"})  # an access token has one of these, or none (RFC 9068)
_FAR: Final = 1e15  # seconds; more is not a time, and may not fit a float

_BAD_HEADER: Final = Rejection("the header of the token has a field that is not accepted")
_WRONG_TYPE: Final = Rejection("this is not an access token")
_UNKNOWN_ISSUER: Final = Rejection("the issuer of the token is not known")
_BAD_ALGORITHM: Final = Rejection("the algorithm of the token is not accepted for its issuer")
_UNKNOWN_KEY: Final = Rejection("the token is signed with a key that is not its issuer's")
_ISSUER_UNAVAILABLE: Final = Rejection("the keys of the token's issuer cannot be loaded now", is_temporary=True)
_BAD_SIGNATURE: Final = Rejection("the signature of the token is invalid")
_WRONG_AUDIENCE: Final = Rejection("the token is for another audience")
_ENDLESS: Final = Rejection("the token has no expiry")
_EARLY: Final = Rejection("the token is not valid yet")
_BAD_TIMES: Final = Rejection("the token has an invalid time")


class _Header(Struct):
    """The header of a token. A key or an address of keys in the header is never used."""

    alg: str
    typ: str | UnsetType = UNSET
    kid: str | UnsetType = UNSET
    crit: msgspec.Raw | UnsetType = UNSET
    b64: msgspec.Raw | UnsetType = UNSET
    jku: msgspec.Raw | UnsetType = UNSET
    jwk: msgspec.Raw | UnsetType = UNSET
    x5u: msgspec.Raw | UnsetType = UNSET

    @property
    def is_unsafe(self) -> bool:
        """Tell whether it has a field that would change how the token is verified."""
        return any(each is not UNSET for each in (self.crit, self.b64, self.jku, self.jwk, self.x5u))

    @property
    def has_good_type(self) -> bool:
        """Tell whether it is the header of an access token."""
        return self.typ is UNSET or self.typ.lower().removeprefix("application/") in _TYPES


class _Unverified(Struct, frozen=True):
    """The parts of a token before its signature was verified."""

    header: _Header
    claims: Mapping[str, Any]


class Verifier:
    """Verifies the tokens of all issuers."""

    def __init__(self, issuers: Mapping[str, tuple[Issuer, Keys]]) -> None:
        """Take the issuers by name."""
        self._issuers = issuers

    async def verify(self, token: bytes, now: float) -> Ticket | Rejection:
        """Verify a token; return its caller and expiry, or why it was rejected."""
        unverified = _read(token)
        if isinstance(unverified, Rejection):
            return unverified
        name = unverified.claims.get("iss")
        issuer, keys = self._issuers.get(name if isinstance(name, str) else "", (None, None))
        if issuer is None or keys is None:
            return _UNKNOWN_ISSUER
        key = await _find_key(unverified.header, issuer, keys)
        if isinstance(key, Rejection):
            return key
        if not _is_signed(token, unverified.header.alg, key):
            return _BAD_SIGNATURE
        return _read_ticket(unverified.claims, issuer, now)


def _read(token: bytes) -> _Unverified | Rejection:
    if not _FORM.fullmatch(token):
        return UNKNOWN
    first, second, _ = token.split(b".")
    try:
        header = msgspec.json.decode(_decode(first), type=_Header)
        claims = msgspec.json.decode(_decode(second), type=dict[str, Any])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return UNKNOWN
    if header.is_unsafe:
        return _BAD_HEADER
    return _Unverified(header, claims) if header.has_good_type else _WRONG_TYPE


def _decode(part: bytes) -> bytes:
    return base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4))


async def _find_key(header: _Header, issuer: Issuer, keys: Keys) -> VerifyingKey | Rejection:
    allowed = (SHARED_ALGORITHM,) if issuer.secret_file else issuer.algorithms
    if header.alg not in allowed:
        return _BAD_ALGORITHM
    key = await keys.find(None if header.kid is UNSET else header.kid, header.alg)
    return key or (_ISSUER_UNAVAILABLE if keys.is_unavailable else _UNKNOWN_KEY)


def _is_signed(token: bytes, algorithm: str, key: VerifyingKey) -> bool:
    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    registry.max_header_length = registry.max_signature_length = len(token)  # which is bounded as a whole
    try:
        jws.deserialize_compact(token, key.key, registry=registry)
    except (JoseError, ValueError, RecursionError):
        return False
    return True


def _read_ticket(claims: Mapping[str, Any], issuer: Issuer, now: float) -> Ticket | Rejection:
    """Return the caller and expiry of a token whose signature was verified."""
    audience = claims.get("aud")
    if issuer.audiences.isdisjoint([audience] if isinstance(audience, str) else _texts(audience)):
        return _WRONG_AUDIENCE
    until = _check_times(claims, issuer.leeway.total_seconds(), now)
    if isinstance(until, Rejection):
        return until
    caller = read_caller(claims, issuer)
    return caller if isinstance(caller, Rejection) else Ticket(caller, until)


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _check_times(claims: Mapping[str, Any], leeway: float, now: float) -> float | Rejection:
    """Return when a token expires."""
    if claims.get("exp") is None:
        return _ENDLESS
    times = {name: claims[name] for name in ("exp", "nbf", "iat") if claims.get(name) is not None}
    if not all(_is_time(time) for time in times.values()):
        return _BAD_TIMES
    until = float(times["exp"]) + leeway
    if until <= now:
        return EXPIRED
    return _EARLY if max(times.get("nbf", 0), times.get("iat", 0)) > now + leeway else until


def _is_time(value: object) -> bool:
    """Tell whether a value is a number of seconds; Python counts booleans as numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _FAR
