"""Reads bodies with reports: one report, several on one resource, or a batch over the fleet.

`aggregation.read_report` reads a report itself; this module reads what is around it. As everywhere, our own keys are
camelCase or snake_case, but not both in one body; the items of a batch are checked one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from hyperfleet.aggregation import BodyProblem, read_report
from hyperfleet.api.context import Context, RequestLimits
from hyperfleet.api.json_bodies import (
    count_values,
    find_long_texts,
    parse_json,
    read_json_value,
    require_values,
)
from hyperfleet.api.problems import MAX_POINTER, Refused, from_body, shorten
from hyperfleet.documents import pointer
from hyperfleet.documents.json_keys import find_repeated_keys
from hyperfleet.documents.wording import count, quote
from hyperfleet.model.json_value import name_type
from hyperfleet.model.kind import Kind, Kinds
from hyperfleet.model.report import Report
from hyperfleet.services.redaction import Redactor
from hyperfleet.services.results import Target

CAMEL_GENERATION: Final = "observedGeneration"
SNAKE_GENERATION: Final = "observed_generation"

_MAX_NOTES: Final = 20  # on one report; a person corrects the first ones and sends it again

_QUOTED_CAMEL_GENERATION: Final = f'"{CAMEL_GENERATION}"'.encode()
_GENERATION_KEYS: Final = frozenset({CAMEL_GENERATION, SNAKE_GENERATION})  # every report has one of them
_BUNDLE_KEYS: Final = ("adapterStatuses", "adapter_statuses")
# Further keys of a status object, which may be sent back.
_IGNORED_KEYS: Final = (
    *("id", "type", "href", "generation", "clusterId", "cluster_id", "nodePoolId", "node_pool_id"),
    *("resourceId", "resource_id", "lastUpdated", "last_updated"),
)


class ReceivedReport(Struct, frozen=True):
    """A report as it was sent: its pointer in the body, and notes about it."""

    report: Report
    pointer: str = ""
    notes: tuple[BodyProblem, ...] = ()
    generation_key: str = CAMEL_GENERATION


class ReportsBody(Struct, frozen=True):
    """The reports of a body on one resource, or its errors."""

    sent: tuple[ReceivedReport, ...] = ()
    is_bundle: bool = False
    errors: tuple[BodyProblem, ...] = ()


class BatchItem(Struct, frozen=True):
    """One item of a batch: a report and its target, or errors."""

    target: Target | None = None
    sent: ReceivedReport | None = None
    errors: tuple[BodyProblem, ...] = ()


def read_reports(body: object, most: int, redactor: Redactor) -> ReportsBody:
    """Read one report, or several under `adapterStatuses`."""
    key = next((key for key in _BUNDLE_KEYS if isinstance(body, dict) and key in body), None)
    if key is None or not isinstance(body, dict):
        return _reading([_read_part("", body, redactor)], is_bundle=False)
    entries, at = body[key], f"/{key}"
    if not isinstance(entries, list) or not 1 <= len(entries) <= most:
        found = count(len(entries), "report") if isinstance(entries, list) else name_type(entries)
        message = f"{key} must be a list of 1 to {most} reports, not {found}"
        return ReportsBody(errors=(BodyProblem(at, "WrongType", message),))
    strays = [
        BodyProblem(pointer.join("", other), "UnknownField", f"{quote(other)} is not allowed beside {key}")
        for other in body
        if other not in (key, *_IGNORED_KEYS)
    ]
    placed = [(f"{at}/{index}", entry) for index, entry in enumerate(entries)]
    parts = [_read_part(place, entry, redactor) for place, entry in placed]
    errors = [*strays, *_find_mixture([key], placed), *_find_duplicates(parts)]
    return _reading(parts, is_bundle=True, errors=errors)


def read_report_of(body: object, adapter: str, redactor: Redactor) -> ReportsBody:
    """Read the report of the adapter that the path names; the body may omit it."""
    if isinstance(body, dict):
        if body.get("adapter") not in (None, adapter):
            message = f"the path names {adapter}"
            return ReportsBody(errors=(BodyProblem("/adapter", "Contradiction", message),))
        body = {**body, "adapter": adapter}
    return _reading([_read_part("", body, redactor)], is_bundle=False)


def generation_key_of(raw: bytes) -> str:
    """Return how the body of one report spells its generation."""
    return CAMEL_GENERATION if _QUOTED_CAMEL_GENERATION in raw else SNAKE_GENERATION


class _Batch(Struct, forbid_unknown_fields=True):
    """The body of a batch; its items are not decoded yet."""

    reports: list[Raw]


_decode_batch: Final = msgspec.json.Decoder(_Batch).decode


def split_batch(raw: bytes, limits: RequestLimits) -> Sequence[bytes]:
    """Split a batch; each item is read on its own, so that an invalid one does not affect the others."""
    require_values(count_values(raw, limits.batch_values), limits.batch_values)
    try:
        items = _decode_batch(raw).reports
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = parse_json(raw, limits)
        is_batch = isinstance(body, dict) and body.keys() == {"reports"}
        message = "reports must be a list" if is_batch else 'the body must be {"reports": […]} and nothing else'
        error = BodyProblem("/reports" if is_batch else "", "WrongType", message)
        raise Refused(from_body((error,))) from None
    _refuse_two_lists(raw)
    if not 1 <= len(items) <= limits.batch:
        message = f"{count(len(items), 'report')}; send 1 to {limits.batch}"
        raise Refused(from_body((BodyProblem("/reports", "OutOfRange", message),)))
    return [bytes(item) for item in items]


def _refuse_two_lists(raw: bytes) -> None:
    """Refuse a batch with two lists of reports; keys inside of reports are checked one by one."""
    if raw.count(b'"reports"') < 2 and b"\\u" not in raw:
        return
    try:
        has_two = any(not place for place, _ in find_repeated_keys(raw))
    except (ValueError, RecursionError):  # what is wrong inside of a report is said of that report
        return
    if has_two:
        raise Refused(from_body((BodyProblem("", "DuplicateKey", 'the key "reports" is given more than once'),)))


def read_batch_item(raw: bytes, at: str, context: Context) -> BatchItem:
    """Read one item of a batch: a report and its target."""
    entry, errors = read_json_value(raw, context.limits, at)
    return BatchItem(errors=errors) if errors else _read_batch_entry(entry, at, context.kinds, context.redactor)


def _read_batch_entry(entry: object, at: str, kinds: Kinds, redactor: Redactor) -> BatchItem:
    if not isinstance(entry, dict):
        return BatchItem(errors=(BodyProblem(at, "WrongType", f"an entry must be an object, not {name_type(entry)}"),))
    names = {spelling: kind for kind in kinds for spelling in _id_keys(kind)}
    ids = {key: value for key, value in entry.items() if key in names}
    target, errors = _read_target(ids, names, at)
    rest = {key: value for key, value in entry.items() if key not in names}
    part = _read_part(at, rest, redactor)
    mixture = _find_mixture(ids, [(at, rest)])
    return BatchItem(target, part.sent, (*errors, *mixture, *part.errors))


class _Part(Struct, frozen=True):
    """One report of a body, or its errors."""

    pointer: str
    sent: ReceivedReport | None
    errors: tuple[BodyProblem, ...]


def _read_part(at: str, body: object, redactor: Redactor) -> _Part:
    if too_long := tuple(find_long_texts(body, at)):
        return _Part(at, None, too_long)
    redacted = redactor.redact(body, at)
    read = read_report(redacted.body, at)
    is_snake = isinstance(body, dict) and SNAKE_GENERATION in body
    key = SNAKE_GENERATION if is_snake else CAMEL_GENERATION
    notes = _limit_notes((*read.notes, *redacted.notes), at)
    return _Part(at, ReceivedReport(read.report, at, notes, key) if read.report is not None else None, read.errors)


def _limit_notes(notes: tuple[BodyProblem, ...], at: str) -> tuple[BodyProblem, ...]:
    """Keep the first notes, with short pointers: an answer must not be larger than its request."""
    kept = tuple([replace(note, pointer=shorten(note.pointer, MAX_POINTER)) for note in notes[:_MAX_NOTES]])
    if len(notes) <= _MAX_NOTES:
        return kept
    return (*kept, BodyProblem(at, "MoreNotes", f"and {count(len(notes) - _MAX_NOTES, 'more note')}"))


def _reading(parts: list[_Part], *, is_bundle: bool, errors: Iterable[BodyProblem] = ()) -> ReportsBody:
    found = (*errors, *(error for part in parts for error in part.errors))
    sent = [part.sent for part in parts if part.sent is not None]
    return ReportsBody(() if found else tuple(sent), is_bundle, found)


def _find_duplicates(parts: list[_Part]) -> list[BodyProblem]:
    """Find adapters with two reports: it would be unclear which one counts."""
    errors: list[BodyProblem] = []
    seen: dict[str, str] = {}
    for part in parts:
        if part.sent is None:
            continue
        adapter = part.sent.report.adapter
        if adapter in seen:
            message = f"{adapter} already has a report at {seen[adapter]}"
            errors.append(BodyProblem(f"{part.pointer}/adapter", "DuplicateAdapter", message))
        seen.setdefault(adapter, part.pointer)
    return errors


def _id_keys(kind: Kind) -> tuple[str, str]:
    """Return both spellings of the id key of a kind: `nodePoolId` and `node_pool_id`."""
    camel = f"{kind.name[0].lower()}{kind.name[1:]}Id"
    return camel, "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in camel)


def _read_target(ids: Mapping[str, Any], names: Mapping[str, Kind], at: str) -> tuple[Target | None, list[BodyProblem]]:
    """Find the target of an item: the lowest resource that it names; its parent may be named too."""
    errors = [
        BodyProblem(f"{at}/{key}", "WrongType", f"{key} must be a string, not {name_type(value)}")
        for key, value in ids.items()
        if not isinstance(value, str)
    ]
    if errors:
        return None, errors
    by_kind = {names[key].name: (names[key], value) for key, value in ids.items()}
    lowest = [
        kind for kind, _ in by_kind.values() if not any(other.parent == kind.name for other, _ in by_kind.values())
    ]
    if len(lowest) != 1:
        wanted = " or ".join(dict.fromkeys(_id_keys(kind)[0] for kind in names.values()))
        return None, [BodyProblem(at, "MissingField", f"the id of the resource is missing: give {wanted}")]
    kind, id_ = by_kind[lowest[0].name]
    parent = by_kind.get(kind.parent or "")
    return Target(kind, id_, parent[1] if parent else None), []


def _find_mixture(around: Iterable[str], entries: Iterable[tuple[str, object]]) -> list[BodyProblem]:
    """Find reports whose spelling differs from the keys around them or from earlier reports."""
    spelling = _spelling_of(around)
    errors = []
    for at, entry in entries:
        own = _spelling_of(_GENERATION_KEYS & entry.keys()) if isinstance(entry, dict) else ""
        if spelling and own and own != spelling:
            message = f"this report is {own}, but {spelling} is used before it; use one spelling in a body"
            errors.append(BodyProblem(at, "MixedSpelling", message))
        spelling = spelling or own
    return errors


def _spelling_of(keys: Iterable[str]) -> str:
    """Return the spelling of keys; empty if each is a single word."""
    for key in keys:
        if "_" in key:
            return "snake_case"
        if key != key.lower():
            return "camelCase"
    return ""
