"""Writes things in the format that was asked for. Every command that shows something ends here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.output.documents import write_json, write_yaml
from hyperfleet.cli.output.formats import Format, Output, PickedColumns
from hyperfleet.cli.output.jsonpath import PathError, compile_path, show
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import NONE, Column, Look, write_table

if TYPE_CHECKING:
    from hyperfleet.cli.session import Session

T = TypeVar("T")


def print_items(session: Session, output: Output, sheet: Sheet[T], items: Iterable[T]) -> int:
    """Print a list; return how many there were."""
    found = sort_items(list(items), sheet, output.sort_by)
    session.write_all(write_items(output, sheet, found, look_of(session, output)))
    return len(found)


def print_item(session: Session, output: Output, sheet: Sheet[T], item: T) -> None:
    """Print one thing: as a document by itself, not in a list."""
    if output.format.is_table or output.format.name in ("name", "custom-columns"):
        print_items(session, output, sheet, [item])
    else:
        print_document(session, output, sheet.document(item))


def print_document(session: Session, output: Output, document: Any) -> None:
    """Print a document as JSON, as YAML, or what a JSONPath picks from it."""
    session.write_all(write_document(output.format, document))


def write_items(output: Output, sheet: Sheet[T], items: Sequence[T], look: Look) -> list[str]:
    """Return the lines of a list."""
    match output.format.name:
        case "table" | "wide":
            return write_table(sheet.columns, [sheet.cells(item) for item in items], look) if items else []
        case "name":
            return [sheet.name(item) for item in items]
        case "custom-columns":
            picked = output.format.columns
            return write_table(name_columns(picked), [pick_cells(picked, sheet.document(item)) for item in items], look)
        case _:
            return write_document(output.format, list_document(sheet.kind, map(sheet.document, items)))


def write_document(format_: Format, document: Any) -> list[str]:
    """Return the lines of a document."""
    if format_.name == "json":
        return [write_json(document)]
    if format_.name == "yaml":
        return [write_yaml(document)]
    if format_.template is not None:
        return [format_.template(document).removesuffix("\n")]  # one end of line is ours
    raise Misuse(f"-o {format_.name} does not go with this; there are json, yaml and jsonpath")


def name_columns(picked: PickedColumns) -> list[Column]:
    """Return columns that somebody chose."""
    return [Column(heading) for heading, _ in picked]


def pick_cells(picked: PickedColumns, document: Any) -> list[str]:
    """Return what a document has to show in columns that somebody chose."""
    return [",".join(map(show, find(document))) or NONE for _, find in picked]


def separator_of(format_: Format) -> str:
    """Return the line between documents that follow each other; JSON needs none, and a blank one does no harm."""
    return "---" if format_.name == "yaml" else ""


def list_document(kind: str, documents: Iterable[Any]) -> Mapping[str, Any]:
    """Put documents into a list as the server does."""
    return {"type": f"{kind}List" if kind else "List", "items": list(documents)}


def look_of(session: Session, output: Output) -> Look:
    """Return how tables look here with these options."""
    return Look(session.has_colour, session.width, output.has_headers, output.format.name == "wide")


def default_look(session: Session) -> Look:
    """Return how tables look here without options."""
    return Look(session.has_colour, session.width)


def sort_items(items: list[T], sheet: Sheet[T], path: str | None) -> list[T]:
    """Sort by what a path finds in each document, turned round with `-` before it; what has nothing there is last."""
    if not path:
        return items
    is_reversed, bare = path.startswith("-"), path.removeprefix("-")
    try:
        find = compile_path(bare)
    except PathError as error:
        raise Misuse(f"--sort-by: {error}") from error
    keyed = [(find(sheet.document(item)), item) for item in items]
    if items and not any(values for values, _ in keyed):
        raise Misuse(f"--sort-by: nothing has a field {bare}; look with -o json at what there is")
    there = sorted((pair for pair in keyed if pair[0]), key=lambda pair: _rank(pair[0][0]), reverse=is_reversed)
    return [item for _, item in there] + [item for values, item in keyed if not values]


def _rank(value: Any) -> tuple[int, float, str]:
    """Order numbers by size and before texts."""
    if isinstance(value, bool | int | float):
        return (0, float(value), "")
    return (1, 0.0, show(value))
