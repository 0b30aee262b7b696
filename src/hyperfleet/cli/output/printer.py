"""Writing results in the requested format; every command that shows something uses this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.output.documents import write_json, write_yaml
from hyperfleet.cli.output.formats import Output, OutputFormat, PickedColumns
from hyperfleet.cli.output.jsonpath import PathError, compile_path, show
from hyperfleet.cli.output.sheet import Sheet
from hyperfleet.cli.output.table import NONE, Column, Look, write_table

if TYPE_CHECKING:
    from hyperfleet.cli.session import CliSession

T = TypeVar("T")


def print_items(session: CliSession, output: Output, sheet: Sheet[T], items: Iterable[T]) -> int:
    """Print a list; return its length."""
    found = sort_items(list(items), sheet, output.sort_by)
    session.write_all(write_items(output, sheet, found, look_of(session, output)))
    return len(found)


def print_item(session: CliSession, output: Output, sheet: Sheet[T], item: T) -> None:
    """Print one item: as a document, not as a list."""
    if output.format.is_table or output.format.name in ("name", "custom-columns"):
        print_items(session, output, sheet, [item])
    else:
        print_document(session, output, sheet.document(item))


def print_document(session: CliSession, output: Output, document: Any) -> None:
    """Print a document as JSON, YAML or JSONPath."""
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


def write_document(format_: OutputFormat, document: Any) -> list[str]:
    """Return the lines of a document."""
    if format_.name == "json":
        return [write_json(document)]
    if format_.name == "yaml":
        return [write_yaml(document)]
    if format_.template is not None:
        return [format_.template(document).removesuffix("\n")]  # the printer adds one line end
    raise Misuse(f"-o {format_.name} is not supported here; use json, yaml or jsonpath")


def name_columns(picked: PickedColumns) -> list[Column]:
    """Return the columns of `custom-columns`."""
    return [Column(heading) for heading, _ in picked]


def pick_cells(picked: PickedColumns, document: Any) -> list[str]:
    """Return the cells of `custom-columns` for a document."""
    return [",".join(map(show, find(document))) or NONE for _, find in picked]


def separator_of(format_: OutputFormat) -> str:
    """Return the line between consecutive documents."""
    return "---" if format_.name == "yaml" else ""


def list_document(kind: str, documents: Iterable[Any]) -> Mapping[str, Any]:
    """Wrap documents in a list, as the server does."""
    return {"type": f"{kind}List" if kind else "List", "items": list(documents)}


def look_of(session: CliSession, output: Output) -> Look:
    """Return how tables look here with these options."""
    return Look(session.has_colour, session.width, output.has_headers, output.format.name == "wide")


def default_look(session: CliSession) -> Look:
    """Return how tables look here without options."""
    return Look(session.has_colour, session.width)


def sort_items(items: list[T], sheet: Sheet[T], path: str | None) -> list[T]:
    """Sort by the values of a path, with `-` in descending order; items without a value come last."""
    if not path:
        return items
    is_reversed, bare = path.startswith("-"), path.removeprefix("-")
    try:
        find = compile_path(bare)
    except PathError as error:
        raise Misuse(f"--sort-by: {error}") from error
    keyed = [(find(sheet.document(item)), item) for item in items]
    if items and not any(values for values, _ in keyed):
        raise Misuse(f"--sort-by: nothing has a field {bare}; -o json shows all fields")
    found = sorted((pair for pair in keyed if pair[0]), key=lambda pair: _rank(pair[0][0]), reverse=is_reversed)
    return [item for _, item in found] + [item for values, item in keyed if not values]


def _rank(value: Any) -> tuple[int, float, str]:
    """Order numbers by size and before texts."""
    if isinstance(value, bool | int | float):
        return (0, float(value), "")
    return (1, 0.0, show(value))
