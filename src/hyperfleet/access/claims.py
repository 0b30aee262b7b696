"""Turn the claims of a verified token into a caller. A missing claim never grants anything. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, get_args

from hyperfleet.access.issuer import ALL, Issuer
from hyperfleet.ports import EVERYTHING, Scope
from hyperfleet.services.callers import Caller, Rejection, Role

ROLES: Final[tuple[Role, ...]] = get_args(Role)
MAX_NAME: Final = 256  # characters; it is written to logs and answers

_NAMELESS: Final = Rejection("the token does not name its caller")


def read_caller(claims: Mapping[str, Any], issuer: Issuer) -> Caller | Rejection:
    """Return the caller that the claims describe, and what they may do."""
    spelling = issuer.claims
    name = _find(claims, spelling.name)
    if not isinstance(name, str) or not _is_name(name):
        return _NAMELESS
    tenants = _find(claims, spelling.tenants)
    return make_caller(
        issuer.prefix + name,
        _map_roles(_texts(_find(claims, spelling.roles)), issuer.roles),
        _texts(_find(claims, spelling.adapters)),
        issuer.tenants if tenants is None else _texts(tenants),
    )


def make_caller(name: str, roles: Iterable[Role], adapters: Iterable[str], tenants: Iterable[str]) -> Caller:
    """Make a caller; `*` means all adapters or tenants, an empty list none of them."""
    has_roles, may_report_as, sees = frozenset(roles), frozenset(adapters), frozenset(tenants)
    may_report_as_any = ALL in may_report_as or ("admin" in has_roles and not may_report_as)
    return Caller(
        name=name,
        scope=EVERYTHING if ALL in sees else Scope(sees),
        tenant=next(iter(sees)) if len(sees) == 1 and ALL not in sees else "",
        roles=has_roles,
        adapters=None if may_report_as_any else may_report_as,
    )


def _map_roles(values: Iterable[str], mapping: Mapping[str, Role]) -> list[Role]:
    known = mapping or {role: role for role in ROLES}
    return [known[value] for value in values if value in known]


def _find(claims: Mapping[str, Any], path: str) -> Any:
    """Return a claim, which may be nested; a name with dots in it, such as a URL, is tried as it is first."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _texts(value: Any) -> list[str]:
    """Return the values of a claim: a list, or a string separated by spaces as in `scope`."""
    texts = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
    return [each for each in texts if isinstance(each, str) and _is_name(each)]


def _is_name(text: str) -> bool:
    """Tell whether a name can be stored and shown on one line of a log."""
    return 0 < len(text) <= MAX_NAME and text.isprintable()
