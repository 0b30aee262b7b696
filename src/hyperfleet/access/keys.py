"""The keys of an issuer: read from a file or fetched from its URL, and kept while the issuer is unavailable.

`jwt` looks keys up by id. An unknown id triggers a refresh, because the issuer may have rotated its keys, but at most
every `_MIN_PAUSE` seconds: requests with made-up ids cannot make us flood the issuer.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OctKey, RSAKey
from msgspec import Struct

from hyperfleet.access.issuer import SHARED_ALGORITHM, Issuer

_LOG: Final = logging.getLogger(__name__)

_MIN_PAUSE: Final = 30.0  # seconds between two refreshes caused by tokens
_REMOTE_PAUSE: Final = 300.0  # seconds between refreshes; a revoked key is accepted no longer than this
_LOCAL_PAUSE: Final = 2.0  # seconds; checking a file is cheap
_RETRY_PAUSE: Final = 10.0  # seconds after a failure
_TIMEOUT: Final = 5.0  # seconds for the whole answer of an issuer
_MAX_BYTES: Final = 256 * 1024  # of a key set; one of ten keys has 10 kB
_MAX_KEYS: Final = 100
_MIN_RSA: Final = 2048  # bits; shorter keys can be broken
_MIN_SECRET: Final = 32  # bytes, the size of an HS256 digest

_CURVES: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}


class VerifyingKey(Struct, frozen=True):
    """A key with its id and algorithm, as far as the issuer gave them."""

    key: Key
    id: str | None = None
    algorithm: str | None = None  # None: any that fits the key

    def fits(self, algorithm: str) -> bool:
        """Tell whether this key can verify signatures of an algorithm."""
        if self.algorithm not in (None, algorithm):
            return False
        match self.key:
            case OctKey():
                return algorithm == SHARED_ALGORITHM
            case RSAKey():
                return algorithm[:2] in ("RS", "PS")
            case ECKey():
                return _CURVES.get(algorithm) == self.key.curve_name
        return False


class Keys:
    """The keys of one issuer."""

    def __init__(
        self,
        source: str,
        read: Callable[[], Awaitable[bytes]],
        parse: Callable[[bytes], tuple[VerifyingKey, ...]],
        pause: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start without keys; `source` names their origin in the log."""
        self.is_unavailable = True  # the last refresh failed
        self.on_change: Callable[[], None] = lambda: None
        self._source = source
        self._read = read
        self._parse = parse
        self._pause = pause
        self._clock = clock
        self._keys: tuple[VerifyingKey, ...] = ()
        self._raw: bytes | None = None
        self._loads = 0
        self._loaded_at = float("-inf")
        self._lock = asyncio.Lock()

    def take(self, raw: bytes) -> None:
        """Replace the keys; if the new ones are invalid, keep the old ones and raise ValueError."""
        if raw == self._raw:
            return
        self._keys, self._raw = self._parse(raw), raw
        self.on_change()

    async def find(self, id_: str | None, algorithm: str) -> VerifyingKey | None:
        """Return the key with this id; without an id, the only key that fits."""
        found = self._look_up(id_, algorithm)
        may_refresh = self._lock.locked() or self._clock() >= self._loaded_at + _MIN_PAUSE
        if found is None and may_refresh:
            await self.refresh()
            found = self._look_up(id_, algorithm)
        return found

    async def refresh(self) -> float:
        """Load the keys; return the seconds until the next refresh. Concurrent calls share one load."""
        loads = self._loads
        async with self._lock:
            if self._loads == loads:
                self._loaded_at = self._clock()
                await self._load()
                self._loads += 1
        return _RETRY_PAUSE if self.is_unavailable else self._pause

    async def _load(self) -> None:
        try:
            self.take(await self._read())
        except (OSError, ValueError, TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
            what = str(error) or type(error).__name__
            _LOG.warning("cannot load the keys of %s, keeping the known ones: %s", self._source, what)
            self.is_unavailable = True
        else:
            self.is_unavailable = False

    def _look_up(self, id_: str | None, algorithm: str) -> VerifyingKey | None:
        fitting = [each for each in self._keys if each.fits(algorithm)]
        if id_ is not None:
            # A secret has no id. A key set with a single key without an id is unambiguous, too.
            named = [each for each in fitting if each.id == id_]
            fitting = named or [each for each in fitting if each.id is None]
        return fitting[0] if len(fitting) == 1 else None


def keys_of(issuer: Issuer, clock: Callable[[], float] = time.monotonic) -> Keys:
    """Return the keys of an issuer. Files are read at once; raise ValueError if they are invalid."""
    if issuer.jwks and issuer.has_address:
        address = issuer.jwks
        return Keys(address, lambda: _fetch(address), read_key_set, _REMOTE_PAUSE, clock)
    file = issuer.jwks or issuer.secret_file or ""
    keys = Keys(file, lambda: asyncio.to_thread(_read_file, file), _parser_of(issuer), _LOCAL_PAUSE, clock)
    keys.take(_read_file(file))
    keys.is_unavailable = False
    return keys


def _parser_of(issuer: Issuer) -> Callable[[bytes], tuple[VerifyingKey, ...]]:
    return read_key_set if issuer.jwks else read_secret


def _read_file(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error


async def _fetch(address: str) -> bytes:
    """Fetch the key set of an issuer; redirects are not followed, size and time are limited."""
    raw = b""
    trust = await asyncio.to_thread(httpx.create_ssl_context)  # loading the CA bundle takes 50 ms
    async with (
        asyncio.timeout(_TIMEOUT),
        httpx.AsyncClient(timeout=_TIMEOUT, verify=trust) as client,
        client.stream("GET", address, headers={"Accept": "application/json"}) as response,
    ):
        if response.status_code != 200:
            raise ValueError(f"it answered {response.status_code}")
        async for chunk in response.aiter_bytes():
            raw += chunk
            if len(raw) > _MAX_BYTES:
                raise ValueError(f"it answered more than {_MAX_BYTES:,} bytes")
    return raw


# ── formats of keys ─────────────────────────────────────────────────────────────────────────────────────


class _Jwk(Struct):
    """One key of a set (RFC 7517); only its public part is read."""

    kty: str
    kid: str | None = None
    use: str | None = None
    alg: str | None = None
    n: str = ""
    e: str = ""
    crv: str = ""
    x: str = ""
    y: str = ""


class _KeySet(Struct):
    keys: list[_Jwk]


def read_key_set(raw: bytes) -> tuple[VerifyingKey, ...]:
    """Read a JSON Web Key Set; keys for other uses are skipped, secret keys are never accepted."""
    try:
        found = msgspec.json.decode(raw, type=_KeySet).keys
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"it is not a JSON Web Key Set: {error}") from error
    if len(found) > _MAX_KEYS:
        raise ValueError(f"it has {len(found)} keys, more than {_MAX_KEYS}")
    keys = [_read_key(each) for each in found if each.use in (None, "sig")]
    usable = tuple([each for each in keys if each is not None])
    if not usable:
        raise ValueError("it has no key to verify signatures with: RSA of 2048 bits or more, or P-256, P-384, P-521")
    return usable


def _read_key(jwk: _Jwk) -> VerifyingKey | None:
    """Return a key; None: its type is not supported."""
    public: dict[str, Any] = {"kty": jwk.kty}
    try:
        match jwk.kty:
            case "RSA":
                if _count_bits(jwk.n) < _MIN_RSA:
                    return None
                return VerifyingKey(RSAKey.import_key({**public, "n": jwk.n, "e": jwk.e}), jwk.kid, jwk.alg)
            case "EC":
                curve = ECKey.import_key({**public, "crv": jwk.crv, "x": jwk.x, "y": jwk.y})
                return VerifyingKey(curve, jwk.kid, jwk.alg) if curve.curve_name in _CURVES.values() else None
    except (JoseError, ValueError, KeyError) as error:
        _LOG.warning("the key %s cannot be used: %s", jwk.kid, error)
    return None


def _count_bits(number: str) -> int:
    """Return the length of a number in bits, without leading zeros."""
    return int.from_bytes(base64.urlsafe_b64decode(number + "=" * (-len(number) % 4))).bit_length()


def read_secret(raw: bytes) -> tuple[VerifyingKey, ...]:
    """Read a secret; a newline at its end is not part of it."""
    secret = raw.rstrip(b"\r\n")
    if len(secret) < _MIN_SECRET:
        raise ValueError(f"a secret has at least {_MIN_SECRET} bytes, or it can be guessed")
    return (VerifyingKey(OctKey.import_key(secret)),)
