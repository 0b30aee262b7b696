"""What can be set about an issuer of JWTs: whose tokens are taken, and what their claims mean here.

Part of the settings tree, and an argument of everything else in this package. It loads no cryptography.
"""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct, field

from hyperfleet.documents.durations import Duration
from hyperfleet.services.callers import Role

# With public keys. `none` cannot be written down, and a secret has an algorithm of its own: if both kinds were taken
# with one key, anybody could sign with the public key as the secret.
PublicAlgorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
SHARED_ALGORITHM: Final = "HS256"
DEFAULT_ALGORITHMS: Final[tuple[PublicAlgorithm, ...]] = ("RS256", "ES256")
EVERYBODY: Final = "*"  # among tenants or adapters: all of them
_MOST_LEEWAY: Final = timedelta(minutes=10)  # more than clocks that are looked after ever differ

Text = Annotated[str, Meta(min_length=1)]


class _Part(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the settings."""


class Claims(_Part, frozen=True, kw_only=True):
    """Which claims say what; `realm_access.roles` is the claim `roles` inside `realm_access`."""

    name: Annotated[Text, Meta(description="The claim with the name of the caller")] = "sub"
    roles: Annotated[Text, Meta(description="The claim with the roles")] = "roles"
    adapters: Annotated[Text, Meta(description="The claim with the adapters as which the caller may report")] = (
        "adapters"
    )
    tenants: Annotated[Text, Meta(description="The claim with the tenants whose resources the caller may see")] = (
        "tenants"
    )


class Issuer(_Part, frozen=True, kw_only=True):
    """One whose JWTs are taken."""

    issuer: Annotated[Text, Meta(description="Its name: what the claim `iss` must be, letter by letter")]
    audience: Annotated[
        Text | Annotated[tuple[Text, ...], Meta(min_length=1)],
        Meta(description="Who a token must be for: the claim `aud` must have one of these"),
    ]
    jwks: Annotated[
        Text | None, Meta(description="Its public keys (a JSON Web Key Set): a file, or an https address")
    ] = None
    secret_file: Annotated[
        Text | None, Meta(description="For development: a file with a secret that it shares with us (HS256)")
    ] = None
    algorithms: Annotated[
        Annotated[tuple[PublicAlgorithm, ...], Meta(min_length=1)],
        Meta(description="Algorithms that are taken with the keys of `jwks`"),
    ] = DEFAULT_ALGORITHMS
    leeway: Annotated[Duration, Meta(description="By how much clocks may differ")] = timedelta(seconds=30)
    claims: Claims = Claims()
    roles: Annotated[
        dict[str, Role],
        Meta(description="What role a value of the claim stands for; without any, the names of roles are the values"),
    ] = field(default_factory=dict)
    tenants: Annotated[
        tuple[Text, ...], Meta(description='The tenants of a caller whose token has no such claim; "*": everybody\'s')
    ] = ()
    prefix: Annotated[
        str, Meta(description="What to put before the names of callers, so that issuers do not name each other's")
    ] = ""

    def __post_init__(self) -> None:
        """Check what no single field can tell."""
        if bool(self.jwks) == bool(self.secret_file):
            raise ValueError("an issuer needs its keys: either `jwks` or, for development, `secretFile`")
        if self.leeway > _MOST_LEEWAY:
            raise ValueError("a leeway of more than 10m would let expired tokens in: correct the clocks instead")
        if self.jwks and self.has_address:
            check_address(self.jwks)

    @property
    def audiences(self) -> frozenset[str]:
        """Return everybody a token may be for."""
        return frozenset((self.audience,) if isinstance(self.audience, str) else self.audience)

    @property
    def has_address(self) -> bool:
        """Tell whether its keys are fetched from somewhere else."""
        return self.jwks is not None and "://" in self.jwks


def check_address(url: str) -> None:
    """Raise ValueError unless keys that come from there come unchanged: by https, or from this very machine."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("the address of `jwks` has a password in it: keys are public, leave it out")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
        raise ValueError(f"the address of `jwks` must begin with https://, found {parts.scheme}://{parts.hostname}")
    if not parts.hostname:
        raise ValueError("the address of `jwks` names no host")
    if parts.port == 0 or not (url.isascii() and url.isprintable()) or " " in url:  # `port` itself refuses what is none
        raise ValueError("the address of `jwks` has what no address has: write it as a browser would send it")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
