"""Following resources as they change, for `get -w`, `watch` and `events`: first what there is, then what happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.gathering import Gathered, sheet_of
from hyperfleet.cli.options import Selection
from hyperfleet.cli.output.formats import LabelColumns, Output
from hyperfleet.cli.output.printer import look_of, name_columns, pick_cells, separator_of, write_document
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import Column, RunningTable
from hyperfleet.cli.resources import ADAPTER, NODE_POOL, Noun, Target, find, find_cluster, operations_on

if TYPE_CHECKING:
    from hyperfleet.cli.session import Session
    from hyperfleet.client import Fleet, WatchEvent

_EVENT: Final = Column("EVENT")
_WIDEST: Final = len("MODIFIED")


class Scope(Struct, frozen=True, kw_only=True):
    """What of it to show."""

    cluster: str | None = None  # whose node pools are meant
    watches_only: bool = False  # leave out what there is
    tells_events: bool = False  # say of each change what it was


class Change(Struct, frozen=True):
    """One thing that happened. `item` is what it is about, as far as we know it."""

    kind: str  # added, modified, deleted; at the beginning: listed
    item: Any
    position: int | None = None
    reason: str = ""  # of deleted
    before: Any = None  # the item as it was before, if that is known


class Subject(Struct, frozen=True):
    """What is followed: all of a kind that fit, or one."""

    noun: Noun
    one: Any = None
    parent: Any = None
    filters: dict[str, Any] = {}


def follow(
    session: Session,
    targets: Sequence[Target],
    selection: Selection,
    labels: LabelColumns,
    output: Output,
    scope: Scope,
) -> None:
    """Write what there is and every change, until somebody interrupts."""
    with session.open() as fleet:
        subject = choose_subject(fleet, targets, selection, scope.cluster)
    with session.open(is_patient=True) as fleet:
        writer = _Writer(session, fleet, subject.noun, labels, output, has_events=scope.tells_events)
        for changes in batches(fleet, subject):
            writer.write([change for change in changes if change.kind != "listed" or not scope.watches_only])


def choose_subject(
    fleet: Fleet, targets: Sequence[Target], selection: Selection, cluster: str | None = None
) -> Subject:
    """Find out what is to be followed; ask the server something at once, so that it is known to be there."""
    if len(targets) > 1:
        raise Misuse("watch one kind, or one resource; for several, use several terminals")
    (target,) = targets
    if target.noun is ADAPTER:
        fleet.health()
        return Subject(ADAPTER)
    if target.name is not None:
        return Subject(target.noun, one=find(fleet, target))
    if selection.updated_since:
        raise Misuse("--updated-since is for lists, not for watching")
    parent = find_cluster(fleet, cluster) if target.noun is NODE_POOL and cluster else None
    fleet.health()
    return Subject(target.noun, parent=parent, filters=selection.as_filters())


def batches(
    fleet: Fleet,
    subject: Subject,
    after: int | None = None,
    *,
    on_gap: Callable[[], None] | None = None,
    on_position: Callable[[int], None] | None = None,
) -> Iterator[list[Change]]:
    """Yield what there is at once, then every change by itself; after a list anew only what is different.

    `on_gap` is called before a list that nobody asked for: the server no longer knows what happened meanwhile.
    `on_position` is called when everything up to a position has been dealt with.
    """
    known: dict[str, Any] = {}
    is_whole = False  # everything there is is known, not only what moved since we began
    listed: dict[str, Any] | None = {} if after is None else None  # None: no list is under way
    for event in _events(fleet, subject, after):
        if event.kind == "relist" or (listed is None and _is_of_list(event, subject)):
            if listed is None and on_gap is not None:
                on_gap()
            listed = {}
        match event.kind:
            case "synced" if listed is not None:
                yield _compare(known, listed, is_whole=is_whole)
                known, listed, is_whole = listed, None, True
            case "added" | "modified" if listed is not None:
                listed[key_of(event.resource)] = event.resource
            case "added" | "modified":
                key = key_of(event.resource)
                before, known[key] = known.get(key), event.resource
                yield [Change(event.kind, event.resource, event.position, before=before)]
            case "deleted":
                last = known.pop(event.id, None)
                left = event.resource or last or _Remains(event.id)
                yield [Change("deleted", left, event.position, event.reason)]
            case _:  # a bookmark moves nothing that is shown
                pass
        if on_position is not None and event.position is not None:
            on_position(event.position)


def _is_of_list(event: WatchEvent[Any], subject: Subject) -> bool:
    """Tell whether an event is a part of a list: these have no positions. Adapters have none at all."""
    return event.kind == "added" and event.position is None and subject.noun is not ADAPTER


def _compare(known: dict[str, Any], listed: dict[str, Any], *, is_whole: bool) -> list[Change]:
    """Tell what a list says that was not known; what is new is an event only if we knew everything before."""
    new = "added" if is_whole else "listed"
    news = [
        Change("modified" if key in known else new, item, before=known.get(key))
        for key, item in sorted(listed.items(), key=lambda pair: str(pair[1].name))
        if known.get(key) != item
    ]
    return news + [Change("deleted", item, reason="Removed") for key, item in known.items() if key not in listed]


def _events(fleet: Fleet, subject: Subject, after: int | None) -> Iterator[WatchEvent[Any]]:
    if subject.noun is ADAPTER:
        events: Iterator[Any] = fleet.watch_adapters()
        return events
    operations = operations_on(fleet, subject.noun)
    watched: Iterator[Any] = operations.watch(subject.one, parent=subject.parent, after=after, **subject.filters)
    return watched


def key_of(item: Any) -> str:
    """Return what tells a thing from the others of its kind: its id, or of an adapter its name."""
    return str(getattr(item, "id", None) or item.name)


class _Remains(Struct, frozen=True):
    """What is left of a resource that went before we knew it."""

    id: str

    @property
    def name(self) -> str:
        return self.id


class _Writer:
    """Writes changes in the format that was asked for."""

    def __init__(
        self,
        session: Session,
        fleet: Fleet,
        noun: Noun,
        labels: LabelColumns,
        output: Output,
        *,
        has_events: bool,
    ) -> None:
        self._session = session
        self._fleet = fleet
        self._noun = noun
        self._labels = labels
        self._output = output
        self._picked = output.format.columns  # none: those of the sheet
        self._has_events = has_events
        self._table: RunningTable | None = None
        self._clusters: dict[str, str] = {}  # names by id, as far as they were needed

    def write(self, changes: Sequence[Change]) -> None:
        """Write some changes."""
        if not changes:
            return
        whole = [change.item for change in changes if not isinstance(change.item, _Remains)]
        gathered, now = Gathered(self._noun, whole), self._session.now()
        sheet = sheet_of(self._fleet, gathered, now, self._labels, clusters=self._clusters)
        if self._output.format.is_table or self._picked:
            self._session.write_all(self._write_rows(sheet, changes))
        elif self._output.format.name == "name":
            self._session.write_all(_name(sheet, change) for change in changes)
        else:
            for change in changes:
                self._session.write_all(self._write_document(sheet, change))

    def _write_rows(self, sheet: Sheet[Any], changes: Sequence[Change]) -> list[str]:
        if self._table is None:
            own = name_columns(self._picked) or sheet.columns
            columns = (_EVENT, *own) if self._has_events else own
            self._table = RunningTable(columns, look_of(self._session, self._output))
        return self._table.add([self._cells(sheet, change) for change in changes])

    def _cells(self, sheet: Sheet[Any], change: Change) -> Sequence[str]:
        cells = pick_cells(self._picked, _document_of(sheet, change)) if self._picked else _row_of(sheet, change)
        event = [_event_of(change).ljust(_WIDEST)] if self._has_events else []
        return [*event, *cells]

    def _write_document(self, sheet: Sheet[Any], change: Change) -> list[str]:
        item = _document_of(sheet, change)
        document = {"type": _event_of(change), "object": item} if self._has_events else item
        separator = separator_of(self._output.format)
        return [*filter(None, [separator]), *write_document(self._output.format, document)]


def _document_of(sheet: Sheet[Any], change: Change) -> Any:
    return {"id": change.item.id} if isinstance(change.item, _Remains) else sheet.document(change.item)


def _row_of(sheet: Sheet[Any], change: Change) -> Sequence[str]:
    """Return the cells of a change; what left says so where its phase stood."""
    if isinstance(change.item, _Remains):
        known = {"NAME": change.item.id, "ID": change.item.id, "PHASE": _left(change)}
        return [known.get(column.heading, "") for column in sheet.columns]
    cells = sheet.cells(change.item)
    if change.kind != "deleted":
        return cells
    headings = [column.heading for column in sheet.columns]
    return [_left(change) if heading == "PHASE" else cell for heading, cell in zip(headings, cells, strict=True)]


def _event_of(change: Change) -> str:
    return "ADDED" if change.kind == "listed" else change.kind.upper()


def _left(change: Change) -> str:
    return "Removed" if change.reason != "NoLongerMatches" else f"{change.item.phase} (no longer matches)"


def _name(sheet: Sheet[Any], change: Change) -> str:
    return change.item.id if isinstance(change.item, _Remains) else sheet.name(change.item)
