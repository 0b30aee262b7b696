"""`hyperfleet diff`: differences from an earlier time, or from another resource."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import TIME, CliCommand, bundle, connected
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.options import document_options
from hyperfleet.cli.output.colours import Colour, paint
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import print_document
from hyperfleet.cli.output.table import width_of
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.resources import ResourceTarget, find, operations_on, parse_target
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Diff, Difference

_SIGNS: Final[dict[str, tuple[str, Colour]]] = {
    "added": ("+", "good"),
    "removed": ("-", "bad"),
    "changed": ("~", "busy"),
}


class DiffOptions(Struct, frozen=True):
    """What to compare."""

    from_: str | None = None
    to: str | None = None
    against: str | None = None
    times: bool = False


@click.command(
    "diff",
    cls=CliCommand,
    examples=[
        ("what changed within the last hour?", "hyperfleet diff cluster payments --from 1h"),
        ("between two times", "hyperfleet diff payments --from 2025-10-17T03:00:00Z --to 2025-10-17T04:00:00Z"),
        ("why does one work and not the other?", "hyperfleet diff payments --against shop"),
    ],
    codes={
        exits.OK: "there is no difference",
        exits.FALSE: "there are differences; they are shown",
        exits.NOT_FOUND: "the resource does not exist, or its state at that time is not known",
    },
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME | KIND/NAME | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of a node pool.")
@bundle(
    "options",
    DiffOptions,
    click.option(
        "--from", "from_", type=TIME, metavar="TIME", help="Compare with this time: 1h, 2025-10-17T12:00:05Z."
    ),
    click.option("--to", type=TIME, metavar="TIME", help="… and this time, instead of now."),
    click.option("--against", metavar="NAME", help="Compare with another resource of the kind."),
    click.option("--times", is_flag=True, help="Show time fields, too."),
)
@document_options()
@connected
@pass_session
def diff(session: CliSession, what: tuple[str, ...], cluster: str | None, options: DiffOptions, output: Output) -> None:
    """Show the differences between a resource and itself at another time, or another resource."""
    if (options.from_ is None) == (options.against is None):
        raise Misuse("give what to compare with: --from TIME, or --against NAME")
    target = parse_target(what, cluster)
    with session.open() as fleet:
        against = find(fleet, ResourceTarget(target.noun, options.against, cluster)).id if options.against else None
        difference: Diff = operations_on(fleet, target.noun).diff(
            find(fleet, target), from_=options.from_, to=options.to, against=against, times=options.times or None
        )
    if output.format.is_table:
        session.write_all(_write(difference, has_colour=session.has_colour))
    else:
        print_document(session, output, difference.raw)
    sys.exit(exits.FALSE if difference.total else exits.OK)


def _write(difference: Diff, *, has_colour: bool) -> Iterator[str]:
    yield f"from {_side(difference.from_)}"
    yield f"to   {_side(difference.to)}"
    yield difference.summary
    width = max((width_of(each.path) for each in difference.items), default=0)
    for each in difference.items:
        sign, colour = _SIGNS.get(each.kind, ("~", "busy"))
        line = f"{sign} {each.path:<{width}}  {_format(each)}"
        yield "  " + paint(line, colour if has_colour else None)
    if difference.truncated:
        yield f"  … {difference.total - len(difference.items)} more"
    if difference.times_changed:
        yield f"  {count_of(difference.times_changed, 'time')} left out; --times shows them"


def _side(side: Any) -> str:
    when = side.time.isoformat().replace("+00:00", "Z") if side.time else "now"
    return f"{side.id} {when} (revision {side.revision}, generation {side.generation})"


def _format(each: Difference) -> str:
    before, after = _value(each.from_), _value(each.to)
    return {"added": after, "removed": before}.get(each.kind, f"{before} → {after}")


def _value(value: object) -> str:
    return msgspec.json.encode(value).decode()
