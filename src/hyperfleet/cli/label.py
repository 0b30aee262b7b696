"""`hyperfleet label`: set and remove labels."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from hyperfleet.cli import exits
from hyperfleet.cli.assignments import check_labels, parse_labels
from hyperfleet.cli.command import Command, connected
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.options import document_options
from hyperfleet.cli.outcomes import FORMATS, Outcomes
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.resources import find, operations_on
from hyperfleet.cli.selecting import parse_chosen, select
from hyperfleet.cli.session import Session, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Resource


@click.command(
    "label",
    cls=Command,
    examples=[
        ("set two labels", "hyperfleet label cluster payments env=prod team=money"),
        ("change one that is set", "hyperfleet label cluster payments env=test --overwrite"),
        ("take one away", "hyperfleet label cluster/payments team-"),
        ("several at once", "hyperfleet label clusters -l region=eu-west-1 frozen=true"),
    ],
    codes={
        exits.NOT_FOUND: "one of them is not there; the others are labelled",
        exits.REFUSED: "a label has another value already, and --overwrite was not given; the others are labelled",
    },
)
@click.argument("words", nargs=-1, required=True, metavar="KIND NAME... | KIND/NAME...  KEY=VALUE|KEY-...")
@click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of node pools.")
@click.option("-l", "--selector", metavar="SELECTOR", help="All with these labels, instead of names.")
@click.option("--all", "is_all", is_flag=True, help="All of the kind, instead of names.")
@click.option("--overwrite", is_flag=True, help="Change labels that have another value.")
@document_options(FORMATS)
@connected
@pass_session
def label(
    session: Session,
    words: tuple[str, ...],
    cluster: str | None,
    selector: str | None,
    is_all: bool,
    overwrite: bool,
    output: Output,
) -> None:
    """Set labels of clusters and node pools, or take them away (KEY-).

    A label that has another value is left alone unless --overwrite is given.
    """
    what, labels = _split(words)
    check_labels(labels)
    chosen = parse_chosen(what, cluster, selector, is_all=is_all)
    outcomes = Outcomes(session, output)
    with session.open() as fleet:
        for target in select(fleet, chosen):
            with outcomes.attempt():
                before = find(fleet, target)
                operations: Any = operations_on(fleet, target.noun)
                after: Resource = operations.label(before, labels, overwrite=overwrite)
                outcomes.tell(str(target), _tell(before, after, labels), after.raw)
    sys.exit(outcomes.close())


def _split(words: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str | None]]:
    """Tell resources from labels: from the first word on that has a = or ends with a -."""
    first = next((index for index, word in enumerate(words) if "=" in word or word.endswith("-")), len(words))
    if first == len(words):
        raise Misuse("say which label: KEY=VALUE, or KEY- to take one away")
    return tuple(words[:first]), parse_labels(words[first:], may_remove=True)


def _tell(before: Resource, after: Resource, labels: Mapping[str, str | None]) -> str:
    if before.labels == after.labels:
        return "not labeled (nothing changed)"
    return "unlabeled" if all(value is None for value in labels.values()) else "labeled"
