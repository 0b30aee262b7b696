"""`hyperfleet apply`: create or change what files describe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import Command, connected
from hyperfleet.cli.comparison import compare
from hyperfleet.cli.manifests import Manifest, read_manifests, write_manifest
from hyperfleet.cli.options import document_options
from hyperfleet.cli.outcomes import FORMATS, Outcomes
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.resources import NODE_POOL, find_cluster, operations_on
from hyperfleet.cli.session import Session, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Applied, Cluster, Fleet, Resource


@click.command(
    "apply",
    cls=Command,
    examples=[
        ("make the fleet what a file says", "hyperfleet apply -f fleet.yaml"),
        ("… all files of a directory", "hyperfleet apply -f fleet/"),
        ("… or what another program writes", "make-fleet | hyperfleet apply -f -"),
        ("see first what would change", "hyperfleet apply -f fleet.yaml --dry-run"),
        (
            "give what there is new words",
            "hyperfleet get cl -o yaml | sed s/eu-west-1/eu-north-1/ | hyperfleet apply -f -",
        ),
    ],
    codes={
        exits.USAGE: "a file is wrong or cannot be read; nothing was sent",
        exits.NOT_FOUND: "the cluster of a node pool is not there; the others are done",
        exits.REFUSED: "the server refused one of them; the others are done",
    },
)
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    required=True,
    metavar="FILE|DIR|-",
    help="A file, a directory of .yaml, .yml and .json files, or - for standard input; may be repeated.",
    type=click.Path(allow_dash=True),
)
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would be different.")
@document_options(FORMATS)
@connected
@pass_session
def apply(session: Session, files: tuple[str, ...], dry_run: bool, output: Output) -> None:
    """Create what is described and not there; change what is there and different.

    \b
    A manifest is YAML or JSON; a file may have several, with --- between them:
      kind: Cluster                     or NodePool
      metadata:
        name: payments
        labels: {env: prod}             left out: those that it has stay
      spec: {region: eu-west-1}
      clusterName: payments             of a NodePool: the cluster it is in

    What `get -o yaml` writes is one, too. Everything that is wrong in all files is told before anything is sent.
    """
    manifests = read_manifests(files)
    outcomes = Outcomes(session, output)
    with session.open() as fleet:
        work = _Work(session, fleet, outcomes, is_dry=dry_run)
        for manifest in manifests:
            with outcomes.attempt(manifest):
                work.apply(manifest)
    sys.exit(outcomes.close())


class _Work:
    """Applies manifests one after the other, and remembers the clusters it met on the way."""

    def __init__(self, session: Session, fleet: Fleet, outcomes: Outcomes, *, is_dry: bool) -> None:
        self._session = session
        self._fleet = fleet
        self._outcomes = outcomes
        self._is_dry = is_dry
        self._clusters: dict[str, Cluster | None] = {}  # None: it would have been created

    def apply(self, manifest: Manifest) -> None:
        """Make one resource what it shall be."""
        parent = self._find_parent(manifest)
        if manifest.noun is NODE_POOL and parent is None:
            return self._tell(manifest, "created", None)
        operations: Any = operations_on(self._fleet, manifest.noun)
        keywords = {"parent": parent} if manifest.noun is NODE_POOL else {}
        applied: Applied[Resource] = operations.apply(
            manifest.name, manifest.spec, labels=manifest.labels, dry_run=self._is_dry, **keywords
        )
        if manifest.noun is not NODE_POOL:
            self._clusters[manifest.name] = applied.resource  # type: ignore[assignment]  # one of the clusters
        return self._tell(manifest, applied.action, applied.resource)

    def _find_parent(self, manifest: Manifest) -> Cluster | None:
        name = manifest.cluster
        if name is None:
            return None
        if name not in self._clusters:
            self._clusters[name] = find_cluster(self._fleet, name)
        return self._clusters[name]

    def _tell(self, manifest: Manifest, action: str, resource: Resource | None) -> None:
        wanted = _wanted(manifest, resource)
        document = wanted if self._is_dry or resource is None else resource.raw
        self._outcomes.tell(str(manifest), f"{action} (dry run)" if self._is_dry else action, document)
        if self._is_dry and action != "unchanged":
            before = _present(manifest, resource) if resource else None
            for line in compare(before, wanted, has_colour=self._session.has_colour):
                self._outcomes.add_line(f"  {line}")


def _wanted(manifest: Manifest, resource: Resource | None) -> dict[str, Any]:
    """Return what it shall be; labels that are left out stay."""
    labels = manifest.labels if manifest.labels is not None or resource is None else resource.labels
    return write_manifest(manifest.noun, manifest.name, manifest.spec, labels, manifest.cluster)


def _present(manifest: Manifest, resource: Resource) -> dict[str, Any]:
    return write_manifest(manifest.noun, resource.name, resource.spec, resource.labels, manifest.cluster)
