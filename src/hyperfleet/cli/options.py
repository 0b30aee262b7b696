"""Options that several commands share: output formats and filters.

Each is a decorator; the command gets one value for all of them (`output`, `labels`, `selection`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import click
from msgspec import Struct

from hyperfleet.cli.command import TIME, bundle
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.output.formats import FORMATS, LabelColumns, Output, OutputFormat, parse_format

DOCUMENTS: Final = ("table", "json", "yaml", "jsonpath")  # for single documents


class FormatType(click.ParamType[OutputFormat]):
    """Reads the value of `-o`."""

    name = "format"

    def __init__(self, names: Sequence[str] = FORMATS) -> None:
        """Allow only these formats."""
        self.names = tuple(names)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> OutputFormat:
        """Parse a format, or fail with what is wrong."""
        if isinstance(value, OutputFormat):
            return value
        try:
            return parse_format(str(value), self.names)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Offer the formats."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in self.names if name.startswith(incomplete)]


def output_options(names: Sequence[str] = FORMATS) -> Callable[[Any], Any]:
    """Give a command `-o`, `--no-headers` and `--sort-by`; it gets them as `output`."""
    return bundle(
        "output",
        _make_output,
        format_option(names),
        click.option("--no-headers", is_flag=True, help="Omit the headings of tables."),
        click.option(
            "--sort-by", metavar="PATH", help="Sort by a field, such as .metadata.createdAt; a leading - reverses."
        ),
    )


def document_options(names: Sequence[str] = DOCUMENTS) -> Callable[[Any], Any]:
    """Give a command without lists `-o`; it gets it as `output`."""
    return bundle("output", Output, format_option(names, "format"))


def format_option(names: Sequence[str], name: str = "format_") -> Callable[[Any], Any]:
    """Return the option `-o` alone."""
    return click.option(
        "-o",
        "--output",
        name,
        type=FormatType(names),
        default="table",
        metavar="FORMAT",
        help=f"Output format: {', '.join(names[:-1])} or {names[-1]}.",
    )


def label_options() -> Callable[[Any], Any]:
    """Give a command `--show-labels` and `-L`; it gets them as `labels`."""
    return bundle(
        "labels",
        LabelColumns,
        click.option("--show-labels", "shows_all", is_flag=True, help="Show all labels in a last column."),
        click.option("-L", "--label-columns", "keys", multiple=True, metavar="KEY", help="Show a label as a column."),
    )


class Selection(Struct, frozen=True):
    """Filters of resources; all must hold."""

    selector: str | None = None
    where: tuple[str, ...] = ()
    phase: tuple[str, ...] = ()
    query: str | None = None
    adapter_state: tuple[str, ...] = ()
    blocked_by: str | None = None
    flapping: bool = False
    updated_since: str | None = None

    def as_filters(self) -> dict[str, Any]:
        """Return the given filters as keywords of the client."""
        filters = {
            "labels": self.selector,
            "conditions": ",".join(self.where),
            "phase": ",".join(self.phase),
            "q": self.query,
            "adapter_state": ",".join(self.adapter_state),
            "blocked_by": self.blocked_by,
            "flapping": "any" if self.flapping else None,
            "updated_since": self.updated_since,
        }
        return {key: value for key, value in filters.items() if value}

    def is_everything(self) -> bool:
        """Return whether no filter was given."""
        return not self.as_filters()


def selection_options() -> Callable[[Any], Any]:
    """Give a command the filters of lists; it gets them as `selection`."""
    return bundle(
        "selection",
        Selection,
        click.option("-l", "--selector", metavar="SELECTOR", help="By labels: env=prod,tier in (web,db),!legacy."),
        click.option("--where", multiple=True, metavar="CONDITION", help="By conditions: Ready!=True, Available."),
        click.option("--phase", multiple=True, metavar="PHASE", help="By phase: Failed,Degraded or !Ready."),
        click.option("-q", "--query", metavar="WORDS", help="By prefixes of words in names, ids, labels, reasons."),
        click.option(
            "--adapter-state", multiple=True, metavar="ADAPTER:STATE", help="By adapters: dns:Failed|Running."
        ),
        click.option("--blocked-by", metavar="ADAPTER", help="Only resources that wait for this adapter."),
        click.option("--flapping", is_flag=True, help="Only resources with a flapping phase or condition."),
        click.option(
            "--updated-since",
            type=TIME,
            metavar="TIME",
            help="Only resources changed since: 15m, 2025-10-17T12:00:05Z.",
        ),
    )


def refuse_together(**given: object) -> None:
    """Raise `Misuse` if more than one of these flags was given."""
    named = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
    if len(named) > 1:
        raise Misuse(f"{' and '.join(named)} cannot be combined")


def _make_output(format_: OutputFormat, no_headers: bool, sort_by: str | None) -> Output:
    return Output(format_, not no_headers, sort_by)
