"""`hyperfleet diff`: what is different from before, or from another resource."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.command import TIME, Command, bundle, connected
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.options import document_options
from hyperfleet.cli.output.colours import Colour, paint
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.output.printer import print_document
from hyperfleet.cli.output.table import width_of
from hyperfleet.cli.output.words import count_of
from hyperfleet.cli.resources import Target, find, operations_on, parse_target
from hyperfleet.cli.session import Session, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Diff, Difference

_SIGNS: Final[dict[str, tuple[str, Colour]]] = {
    "added": ("+", "good"),
    "removed": ("-", "bad"),
    "changed": ("~", "busy"),
}


class Sides(Struct, frozen=True):
    """What to compare with what."""

    from_: str | None = None
    to: str | None = None
    against: str | None = None
    times: bool = False


@click.command(
    "diff",
    cls=Command,
    examples=[
        ("what changed within the last hour?", "hyperfleet diff cluster payments --from 1h"),
        ("between two moments", "hyperfleet diff payments --from 2025-10-17T03:00:00Z --to 2025-10-17T04:00:00Z"),
        ("why does one work and not the other?", "hyperfleet diff payments --against shop"),
    ],
    codes={
        exits.OK: "there is no difference",
        exits.FALSE: "there are differences; they are shown",
        exits.NOT_FOUND: "there is no such resource, or nothing is known of that time",
    },
)
@click.argument("what", nargs=-1, required=True, metavar="KIND NAME | KIND/NAME | NAME")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of a node pool.")
@bundle(
    "sides",
    Sides,
    click.option(
        "--from", "from_", type=TIME, metavar="TIME", help="Compare with how it was then: 1h, 2025-10-17T12:00:05Z."
    ),
    click.option("--to", type=TIME, metavar="TIME", help="… and how it was then, instead of now."),
    click.option("--against", metavar="NAME", help="Compare with another one of the kind."),
    click.option("--times", is_flag=True, help="Show fields that only tell times, too."),
)
@document_options()
@connected
@pass_session
def diff(session: Session, what: tuple[str, ...], cluster: str | None, sides: Sides, output: Output) -> None:
    """Show what is different between a resource and itself at another time, or another resource."""
    if (sides.from_ is None) == (sides.against is None):
        raise Misuse("say what to compare with: --from TIME, or --against NAME")
    target = parse_target(what, cluster)
    with session.open() as fleet:
        against = find(fleet, Target(target.noun, sides.against, cluster)).id if sides.against else None
        told: Diff = operations_on(fleet, target.noun).diff(
            find(fleet, target), from_=sides.from_, to=sides.to, against=against, times=sides.times or None
        )
    if output.format.is_table:
        session.write_all(_write(told, has_colour=session.has_colour))
    else:
        print_document(session, output, told.raw)
    sys.exit(exits.FALSE if told.total else exits.OK)


def _write(told: Diff, *, has_colour: bool) -> Iterator[str]:
    yield f"from {_side(told.from_)}"
    yield f"to   {_side(told.to)}"
    yield told.summary
    width = max((width_of(each.path) for each in told.items), default=0)
    for each in told.items:
        sign, colour = _SIGNS.get(each.kind, ("~", "busy"))
        line = f"{sign} {each.path:<{width}}  {_tell(each)}"
        yield "  " + paint(line, colour if has_colour else None)
    if told.truncated:
        yield f"  … {told.total - len(told.items)} more"
    if told.times_changed:
        yield f"  {count_of(told.times_changed, 'time')} left out; --times shows them"


def _side(side: Any) -> str:
    when = side.time.isoformat().replace("+00:00", "Z") if side.time else "now"
    return f"{side.id} {when} (revision {side.revision}, generation {side.generation})"


def _tell(each: Difference) -> str:
    before, after = _value(each.from_), _value(each.to)
    return {"added": after, "removed": before}.get(each.kind, f"{before} → {after}")


def _value(value: object) -> str:
    return msgspec.json.encode(value).decode()
