"""Following resources for `get -w`, `watch` and `events`: first the present ones, then every change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.listing import FoundResources, sheet_of
from hyperfleet.cli.options import Selection
from hyperfleet.cli.output.formats import LabelColumns, Output
from hyperfleet.cli.output.printer import look_of, name_columns, pick_cells, separator_of, write_document
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import Column, RunningTable
from hyperfleet.cli.resources import ADAPTER, NODE_POOL, Noun, ResourceTarget, find, find_cluster, operations_on

if TYPE_CHECKING:
    from hyperfleet.cli.session import CliSession
    from hyperfleet.client import Fleet, WatchEvent

_EVENT: Final = Column("EVENT")
_WIDEST: Final = len("MODIFIED")


class WatchOptions(Struct, frozen=True, kw_only=True):
    """Options of watching."""

    cluster: str | None = None  # only node pools of this cluster
    watches_only: bool = False  # omit the initial list
    shows_events: bool = False  # show the type of each change


class WatchedChange(Struct, frozen=True):
    """One change. `item` is the resource, or just its id if nothing else is known."""

    kind: str  # added, modified, deleted; at the beginning: listed
    item: Any
    position: int | None = None
    reason: str = ""  # of deleted
    before: Any = None  # the previous version, if known


class WatchSubject(Struct, frozen=True):
    """What is followed: one resource, or all of a kind that match."""

    noun: Noun
    one: Any = None
    parent: Any = None
    filters: dict[str, Any] = {}


def follow(
    session: CliSession,
    targets: Sequence[ResourceTarget],
    selection: Selection,
    labels: LabelColumns,
    output: Output,
    options: WatchOptions,
) -> None:
    """Write the present resources and every change, until Ctrl-C."""
    with session.open() as fleet:
        subject = choose_watch_subject(fleet, targets, selection, options.cluster)
    with session.open(is_persistent=True) as fleet:
        writer = _Writer(session, fleet, subject.noun, labels, output, has_events=options.shows_events)
        for changes in batches(fleet, subject):
            writer.write([change for change in changes if change.kind != "listed" or not options.watches_only])


def choose_watch_subject(
    fleet: Fleet, targets: Sequence[ResourceTarget], selection: Selection, cluster: str | None = None
) -> WatchSubject:
    """Choose what to follow; send a request, so that an unreachable server fails at once."""
    if len(targets) > 1:
        raise Misuse("only one kind or one resource can be watched; use several terminals for more")
    (target,) = targets
    if target.noun is ADAPTER:
        fleet.health()
        return WatchSubject(ADAPTER)
    if target.name is not None:
        return WatchSubject(target.noun, one=find(fleet, target))
    if selection.updated_since:
        raise Misuse("--updated-since is for lists, not for watching")
    parent = find_cluster(fleet, cluster) if target.noun is NODE_POOL and cluster else None
    fleet.health()
    return WatchSubject(target.noun, parent=parent, filters=selection.as_filters())


def batches(
    fleet: Fleet,
    subject: WatchSubject,
    after: int | None = None,
    *,
    on_gap: Callable[[], None] | None = None,
    on_position: Callable[[int], None] | None = None,
) -> Iterator[list[WatchedChange]]:
    """Yield the present resources together, then each change; after a relist only the differences.

    `on_gap` is called before a relist, when the server no longer knows the changes in between.
    `on_position` is called when everything up to a position has been processed.
    """
    known: dict[str, Any] = {}
    is_whole = False  # all resources are known, not only those that changed since the start
    listed: dict[str, Any] | None = {} if after is None else None  # None: no list is in progress
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
                yield [WatchedChange(event.kind, event.resource, event.position, before=before)]
            case "deleted":
                last = known.pop(event.id, None)
                left = event.resource or last or _UnknownResource(event.id)
                yield [WatchedChange("deleted", left, event.position, event.reason)]
            case _:  # a bookmark changes nothing visible
                pass
        if on_position is not None and event.position is not None:
            on_position(event.position)


def _is_of_list(event: WatchEvent[Any], subject: WatchSubject) -> bool:
    """Return whether an event is part of a list: these have no positions. Adapters never have positions."""
    return event.kind == "added" and event.position is None and subject.noun is not ADAPTER


def _compare(known: dict[str, Any], listed: dict[str, Any], *, is_whole: bool) -> list[WatchedChange]:
    """Return the differences between known resources and a list; `added` only if all were known before."""
    new = "added" if is_whole else "listed"
    news = [
        WatchedChange("modified" if key in known else new, item, before=known.get(key))
        for key, item in sorted(listed.items(), key=lambda pair: str(pair[1].name))
        if known.get(key) != item
    ]
    return news + [WatchedChange("deleted", item, reason="Removed") for key, item in known.items() if key not in listed]


def _events(fleet: Fleet, subject: WatchSubject, after: int | None) -> Iterator[WatchEvent[Any]]:
    if subject.noun is ADAPTER:
        events: Iterator[Any] = fleet.watch_adapters()
        return events
    operations = operations_on(fleet, subject.noun)
    watched: Iterator[Any] = operations.watch(subject.one, parent=subject.parent, after=after, **subject.filters)
    return watched


def key_of(item: Any) -> str:
    """Return the unique key of a resource: its id, or the name of an adapter."""
    return str(getattr(item, "id", None) or item.name)


class _UnknownResource(Struct, frozen=True):
    """A resource that was removed before it was read."""

    id: str

    @property
    def name(self) -> str:
        return self.id


class _Writer:
    """Writes changes in the requested format."""

    def __init__(
        self,
        session: CliSession,
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
        self._picked = output.format.columns  # empty: those of the sheet
        self._has_events = has_events
        self._table: RunningTable | None = None
        self._clusters: dict[str, str] = {}  # names by id

    def write(self, changes: Sequence[WatchedChange]) -> None:
        """Write some changes."""
        if not changes:
            return
        whole = [change.item for change in changes if not isinstance(change.item, _UnknownResource)]
        found_resources, now = FoundResources(self._noun, whole), self._session.now()
        sheet = sheet_of(self._fleet, found_resources, now, self._labels, clusters=self._clusters)
        if self._output.format.is_table or self._picked:
            self._session.write_all(self._write_rows(sheet, changes))
        elif self._output.format.name == "name":
            self._session.write_all(_name(sheet, change) for change in changes)
        else:
            for change in changes:
                self._session.write_all(self._write_document(sheet, change))

    def _write_rows(self, sheet: Sheet[Any], changes: Sequence[WatchedChange]) -> list[str]:
        if self._table is None:
            own = name_columns(self._picked) or sheet.columns
            columns = (_EVENT, *own) if self._has_events else own
            self._table = RunningTable(columns, look_of(self._session, self._output))
        return self._table.add([self._cells(sheet, change) for change in changes])

    def _cells(self, sheet: Sheet[Any], change: WatchedChange) -> Sequence[str]:
        cells = pick_cells(self._picked, _document_of(sheet, change)) if self._picked else _row_of(sheet, change)
        event = [_event_of(change).ljust(_WIDEST)] if self._has_events else []
        return [*event, *cells]

    def _write_document(self, sheet: Sheet[Any], change: WatchedChange) -> list[str]:
        item = _document_of(sheet, change)
        document = {"type": _event_of(change), "object": item} if self._has_events else item
        separator = separator_of(self._output.format)
        return [*filter(None, [separator]), *write_document(self._output.format, document)]


def _document_of(sheet: Sheet[Any], change: WatchedChange) -> Any:
    return {"id": change.item.id} if isinstance(change.item, _UnknownResource) else sheet.document(change.item)


def _row_of(sheet: Sheet[Any], change: WatchedChange) -> Sequence[str]:
    """Return the cells of a change; a removed resource shows that instead of its phase."""
    if isinstance(change.item, _UnknownResource):
        known = {"NAME": change.item.id, "ID": change.item.id, "PHASE": _left(change)}
        return [known.get(column.heading, "") for column in sheet.columns]
    cells = sheet.cells(change.item)
    if change.kind != "deleted":
        return cells
    headings = [column.heading for column in sheet.columns]
    return [_left(change) if heading == "PHASE" else cell for heading, cell in zip(headings, cells, strict=True)]


def _event_of(change: WatchedChange) -> str:
    return "ADDED" if change.kind == "listed" else change.kind.upper()


def _left(change: WatchedChange) -> str:
    return "Removed" if change.reason != "NoLongerMatches" else f"{change.item.phase} (no longer matches)"


def _name(sheet: Sheet[Any], change: WatchedChange) -> str:
    return change.item.id if isinstance(change.item, _UnknownResource) else sheet.name(change.item)
