"""The settings of an issuer of JWTs: which tokens are accepted, and what their claims mean.

Part of the settings tree, and an argument of everything else in this package. Loads no cryptography.
"""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct, field

from hyperfleet.documents.durations import Duration
from hyperfleet.services.callers import Role

# Algorithms with public keys. `none` is not among them, and a secret has an algorithm of its own: if both kinds were
# accepted for one key, an attacker could sign with the public key as the secret.
PublicAlgorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
SHARED_ALGORITHM: Final = "HS256"
DEFAULT_ALGORITHMS: Final[tuple[PublicAlgorithm, ...]] = ("RS256", "ES256")
ALL: Final = "*"  # in a list of tenants or adapters
_MAX_LEEWAY: Final = timedelta(minutes=10)  # synchronized clocks never differ by this much

Text = Annotated[str, Meta(min_length=1)]


class _Part(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the settings."""


class Claims(_Part, frozen=True, kw_only=True):
    """Which claim has what; `realm_access.roles` is the claim `roles` inside `realm_access`."""

    name: Annotated[Text, Meta(description="The claim with the name of the caller")] = "sub"
    roles: Annotated[Text, Meta(description="The claim with the roles")] = "roles"
    adapters: Annotated[Text, Meta(description="The claim with the adapters that the caller may report as")] = (
        "adapters"
    )
    tenants: Annotated[Text, Meta(description="The claim with the tenants whose resources the caller may see")] = (
        "tenants"
    )


class Issuer(_Part, frozen=True, kw_only=True):
    """An issuer whose JWTs are accepted."""

    issuer: Annotated[Text, Meta(description="Its name: the exact value of the claim `iss`")]
    audience: Annotated[
        Text | Annotated[tuple[Text, ...], Meta(min_length=1)],
        Meta(description="The audience: the claim `aud` must contain one of these"),
    ]
    jwks: Annotated[Text | None, Meta(description="Its public keys (a JSON Web Key Set): a file or an https URL")] = (
        None
    )
    secret_file: Annotated[Text | None, Meta(description="For development: a file with a shared secret (HS256)")] = None
    algorithms: Annotated[
        Annotated[tuple[PublicAlgorithm, ...], Meta(min_length=1)],
        Meta(description="Algorithms accepted with the keys of `jwks`"),
    ] = DEFAULT_ALGORITHMS
    leeway: Annotated[Duration, Meta(description="By how much clocks may differ")] = timedelta(seconds=30)
    claims: Claims = Claims()
    roles: Annotated[
        dict[str, Role],
        Meta(description="The role for each value of the claim; if empty, the values are the names of roles"),
    ] = field(default_factory=dict)
    tenants: Annotated[
        tuple[Text, ...], Meta(description='The tenants of a caller whose token has no such claim; "*": all tenants')
    ] = ()
    prefix: Annotated[
        str, Meta(description="Prefix for the names of callers, so that names of different issuers do not collide")
    ] = ""

    def __post_init__(self) -> None:
        """Check the fields against each other."""
        if bool(self.jwks) == bool(self.secret_file):
            raise ValueError("an issuer needs its keys: either `jwks` or, for development, `secretFile`")
        if self.leeway > _MAX_LEEWAY:
            raise ValueError("a leeway of more than 10m would let expired tokens in: correct the clocks instead")
        if self.jwks and self.has_address:
            check_address(self.jwks)

    @property
    def audiences(self) -> frozenset[str]:
        """Return the accepted audiences."""
        return frozenset((self.audience,) if isinstance(self.audience, str) else self.audience)

    @property
    def has_address(self) -> bool:
        """Tell whether its keys are fetched from a URL."""
        return self.jwks is not None and "://" in self.jwks


def check_address(url: str) -> None:
    """Raise ValueError unless keys from this URL arrive unchanged: by https, or from this machine."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("the address of `jwks` has a password in it: keys are public, leave it out")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
        raise ValueError(f"the address of `jwks` must begin with https://, found {parts.scheme}://{parts.hostname}")
    if not parts.hostname:
        raise ValueError("the address of `jwks` names no host")
    if parts.port == 0 or not (url.isascii() and url.isprintable()) or " " in url:  # `port` itself raises
        raise ValueError("the address of `jwks` has invalid characters: write it as a browser would send it")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
