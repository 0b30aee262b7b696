"""The resource that an event is about: its identity, its generation, and whether it is being deleted.

An event carries identity, never state. So the state comes from the API: from a param that read the resource, or from a
read of the framework's own (`reconcile`). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

_OWNER: Final = "owner_references"
_IDENTITY: Final = frozenset(("event", "config", "env", "adapter"))  # variables that are no answers of the API


class Subject(Struct, frozen=True, kw_only=True):
    """A resource, as far as the framework itself needs it."""

    id: str
    kind: str
    href: str = ""  # its path in the API; empty: the event does not tell
    generation: int = 0  # 0: not known
    is_deleting: bool = False
    is_read: bool = False  # from an answer of the API; otherwise from the event only
    owner_id: str = ""
    owner_kind: str = ""

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.kind} {self.id}".strip()


def find_subject(event: Mapping[str, Any], variables: Mapping[str, Any]) -> Subject:
    """Return the resource of an event: as a param read it, otherwise as the event names it."""
    named = name_subject(event)
    answers = (value for name, value in variables.items() if name not in _IDENTITY and isinstance(value, Mapping))
    found = next((each for each in answers if named.id and each.get("id") == named.id and "generation" in each), None)
    return named if found is None else read_subject(event, found)


def name_subject(event: Mapping[str, Any]) -> Subject:
    """Return what an event tells."""
    owner = event.get(_OWNER)
    owner = owner if isinstance(owner, Mapping) else {}
    return Subject(
        id=_text(event, "id"),
        kind=_text(event, "kind"),
        href=_text(event, "href"),
        generation=_whole(event.get("generation")),
        owner_id=_text(owner, "id"),
        owner_kind=_text(owner, "kind"),
    )


def read_subject(event: Mapping[str, Any], answer: Mapping[str, Any]) -> Subject:
    """Return the resource as an answer of the API has it."""
    named = name_subject(event)
    return Subject(
        id=named.id,
        kind=named.kind or _text(answer, "kind") or _text(answer, "type"),
        href=named.href or _text(answer, "href"),
        generation=_whole(answer.get("generation")) or named.generation,
        is_deleting=_is_deleting(answer),
        is_read="generation" in answer,
        owner_id=named.owner_id,
        owner_kind=named.owner_kind,
    )


def _is_deleting(answer: Mapping[str, Any]) -> bool:
    """Tell whether a deletion time is there: our API has it in the metadata, the Go API at the top."""
    metadata = answer.get("metadata")
    places = (answer, metadata if isinstance(metadata, Mapping) else {})
    return any(each.get(key) for each in places for key in ("deletionTimestamp", "deleted_time", "deletion_timestamp"))


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _whole(value: Any) -> int:
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    return int(value) if is_whole and value > 0 else 0
