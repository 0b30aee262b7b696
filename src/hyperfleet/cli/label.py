"""`hyperfleet label`: set and remove labels."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from hyperfleet.cli import exits
from hyperfleet.cli.assignments import check_labels, parse_labels
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.options import document_options
from hyperfleet.cli.outcomes import FORMATS, Outcomes
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.resources import find, operations_on
from hyperfleet.cli.selection import parse_selection, select
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Resource


@click.command(
    "label",
    cls=CliCommand,
    examples=[
        ("set two labels", "hyperfleet label cluster payments env=prod team=money"),
        ("change one that is set", "hyperfleet label cluster payments env=test --overwrite"),
        ("remove one", "hyperfleet label cluster/payments team-"),
        ("several at once", "hyperfleet label clusters -l region=eu-west-1 frozen=true"),
    ],
    codes={
        exits.NOT_FOUND: "one of them does not exist; the others are labelled",
        exits.REFUSED: "a label already has another value, and --overwrite was not given; the others are labelled",
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
    session: CliSession,
    words: tuple[str, ...],
    cluster: str | None,
    selector: str | None,
    is_all: bool,
    overwrite: bool,
    output: Output,
) -> None:
    """Set labels of clusters and node pools, or remove them (KEY-).

    A label with another value is not changed unless --overwrite is given.
    """
    what, labels = _split(words)
    check_labels(labels)
    chosen = parse_selection(what, cluster, selector, is_all=is_all)
    outcomes = Outcomes(session, output)
    with session.open() as fleet:
        for target in select(fleet, chosen):
            with outcomes.attempt():
                before = find(fleet, target)
                operations: Any = operations_on(fleet, target.noun)
                after: Resource = operations.label(before, labels, overwrite=overwrite)
                outcomes.report(str(target), _describe_change(before, after, labels), after.raw)
    sys.exit(outcomes.close())


def _split(words: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str | None]]:
    """Split arguments into resources and labels: labels start at the first word with = or a trailing -."""
    first = next((index for index, word in enumerate(words) if "=" in word or word.endswith("-")), len(words))
    if first == len(words):
        raise Misuse("give a label: KEY=VALUE, or KEY- to remove one")
    return tuple(words[:first]), parse_labels(words[first:], may_remove=True)


def _describe_change(before: Resource, after: Resource, labels: Mapping[str, str | None]) -> str:
    if before.labels == after.labels:
        return "not labeled (nothing changed)"
    return "unlabeled" if all(value is None for value in labels.values()) else "labeled"
