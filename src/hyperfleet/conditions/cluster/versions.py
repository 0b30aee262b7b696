"""Counting machines per Kubernetes version, oldest version first."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from hyperfleet.conditions.cluster.scope import VersionCount

if TYPE_CHECKING:
    from collections.abc import Iterable

_SEMVER: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?")

# An identifier of a pre-release or build: numbers sort before words, each among themselves.
Identifier = tuple[int, int, str]
Precedence = tuple[int, int, int, bool, list[Identifier], list[Identifier]]


def merge_versions(counts: Iterable[VersionCount]) -> tuple[VersionCount, ...]:
    """Add up counts per version; versions that are not semantic leave all in the order of arrival."""
    totals: Counter[str] = Counter()
    for count in counts:
        totals[count.version] += count.replicas
    keys = {version: precedence(version) for version in totals}
    known = {version: key for version, key in keys.items() if key is not None}
    ordered = sorted(known, key=known.__getitem__) if len(known) == len(keys) else list(totals)
    return tuple(VersionCount(version, totals[version]) for version in ordered)


def precedence(version: str) -> Precedence | None:
    """Return the sort key of a semantic version, with its build; None when it is none."""
    match = _SEMVER.fullmatch(version)
    if match is None:
        return None
    major, minor, patch, pre, build = match.groups(default="")
    is_release = pre == ""  # a release comes after its pre-releases
    return int(major), int(minor), int(patch), is_release, _identifiers(pre), _identifiers(build)


def _identifiers(text: str) -> list[Identifier]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in text.split(".") if part]
