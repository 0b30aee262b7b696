"""Share resources among several sentinels: each id has one owner, and a change of members moves as few as possible."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b


def rendezvous(id_: str, members: Iterable[str]) -> str:
    """Return the member that owns an id: the one whose hash together with the id is the largest."""
    return max(members, key=lambda member: (_weight(id_, member), member))


def _weight(id_: str, member: str) -> bytes:
    return blake2b(f"{len(id_)}:{id_}{member}".encode(), digest_size=8).digest()
