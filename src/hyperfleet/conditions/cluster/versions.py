"""Counting machines per Kubernetes version: the oldest version first, texts that are no version last.

The order is Cluster API's. Builds such as `+k3s1` and `+k3s2` have none, since a build may be a hash: of two versions
that differ only in such words, the one that came first stays first.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from functools import cmp_to_key
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hyperfleet.conditions.cluster.scope import VersionCount

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hyperfleet.conditions.cluster.scope import Machine

_LONGEST: Final = 256  # the limit of the schema; longer texts are no version
_LARGEST: Final = 2**64 - 1  # a larger number is no part of a version
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)

# Parts after the first may be missing, and leading zeros are ignored, except in a pre-release.
_PRE: Final = r"(?:0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*)"
_BUILD: Final = r"[\dA-Za-z-]+"
_SEMVER: Final = re.compile(
    rf"v?(\d+)(?:\.(\d+)(?:\.(\d+)(?:-({_PRE}(?:\.{_PRE})*))?(?:\+({_BUILD}(?:\.{_BUILD})*))?)?)?", re.ASCII
)

# An identifier of a pre-release or build: numbers sort before words, each among themselves.
Identifier = tuple[int, int, str]


class SemanticVersion(NamedTuple):
    """A version, with what decides its place."""

    numbers: tuple[int, ...]
    is_release: bool  # a release comes after its pre-releases
    pre: tuple[Identifier, ...]
    build: tuple[Identifier, ...]

    @property
    def release(self) -> tuple[tuple[int, ...], bool, tuple[Identifier, ...]]:
        """The version without its build."""
        return self.numbers, self.is_release, self.pre


class CountedVersion(NamedTuple):
    """One text with its number of machines, and where it came."""

    text: str
    version: SemanticVersion | None
    replicas: int
    arrival: int


def merge_versions(counts: Iterable[VersionCount]) -> tuple[VersionCount, ...]:
    """Add up counts per version, and sort them; counts without a version are left out."""
    totals: Counter[str] = Counter()
    for count in counts:
        if count.version:
            totals[count.version] += count.replicas
    counted = [
        CountedVersion(text, read_version(text), replicas, arrival)
        for arrival, (text, replicas) in enumerate(totals.items())
    ]
    ordered = sorted(counted, key=cmp_to_key(_compare))
    return tuple(VersionCount(each.text, each.replicas) for each in ordered)


def count_versions(machines: Iterable[Machine]) -> tuple[VersionCount, ...]:
    """Count machines per version; they arrive in the order in which they were created."""
    ordered = sorted(machines, key=lambda machine: (machine.created or _BEGINNING, machine.name))
    return merge_versions(VersionCount(machine.version, 1) for machine in ordered)


def is_same_release(one: str, other: str) -> bool:
    """Compare two versions without their builds; texts that are no version by their letters."""
    first, second = read_version(one), read_version(other)
    if first is None or second is None:
        return one == other
    return first.release == second.release


def read_version(text: str) -> SemanticVersion | None:
    """Read a semantic version; None when it is none."""
    match = _SEMVER.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None:
        return None
    *numbers, pre, build = match.groups(default="")
    version = SemanticVersion(
        numbers=tuple(int(number or 0) for number in numbers),
        is_release=pre == "",
        pre=_identifiers(pre),
        build=_identifiers(build),
    )
    largest = max(*version.numbers, *(number for _, number, _ in version.pre))
    return version if largest <= _LARGEST else None


def _identifiers(text: str) -> tuple[Identifier, ...]:
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in text.split(".") if part)


def _compare(one: CountedVersion, other: CountedVersion) -> int:
    """Compare the places of two texts: below zero when the first comes first."""
    if one.version is None or other.version is None:
        return _sign((one.version is None, one.text), (other.version is None, other.text))
    if one.version.release != other.version.release:
        return _sign(one.version.release, other.version.release)
    order = _compare_builds(one.version.build, other.version.build)
    if order is None:
        return one.arrival - other.arrival
    return order or _sign(one.text, other.text)


def _compare_builds(one: tuple[Identifier, ...], other: tuple[Identifier, ...]) -> int | None:
    """Compare two builds by their first difference; None when that is between two words."""
    for left, right in zip_longest(one, other, fillvalue=(-1, 0, "")):  # what ends earlier comes first
        if left != right:
            both_words = left[0] == right[0] == 1
            return None if both_words else _sign(left, right)
    return 0


def _sign(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)
