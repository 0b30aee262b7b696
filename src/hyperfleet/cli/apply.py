"""`hyperfleet apply`: create or change what files describe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from hyperfleet.cli import exits
from hyperfleet.cli.command import CliCommand, connected
from hyperfleet.cli.comparison import compare
from hyperfleet.cli.manifests import Manifest, read_manifests, write_manifest
from hyperfleet.cli.options import document_options
from hyperfleet.cli.outcomes import FORMATS, Outcomes
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.resources import NODE_POOL, find_cluster, operations_on
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Applied, Cluster, Fleet, Resource


@click.command(
    "apply",
    cls=CliCommand,
    examples=[
        ("create or update what a file describes", "hyperfleet apply -f fleet.yaml"),
        ("… all files of a directory", "hyperfleet apply -f fleet/"),
        ("… or what another program writes", "make-fleet | hyperfleet apply -f -"),
        ("only show what would change", "hyperfleet apply -f fleet.yaml --dry-run"),
        (
            "edit existing resources in a pipe",
            "hyperfleet get cl -o yaml | sed s/eu-west-1/eu-north-1/ | hyperfleet apply -f -",
        ),
    ],
    codes={
        exits.USAGE: "a file is wrong or cannot be read; nothing was sent",
        exits.NOT_FOUND: "the cluster of a node pool does not exist; the others are applied",
        exits.REFUSED: "the server refused one of them; the others are applied",
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
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would change.")
@document_options(FORMATS)
@connected
@pass_session
def apply(session: CliSession, files: tuple[str, ...], dry_run: bool, output: Output) -> None:
    """Create or update the resources that files describe.

    \b
    A manifest is YAML or JSON; a file may have several, separated by ---:
      kind: Cluster                     or NodePool
      metadata:
        name: payments
        labels: {env: prod}             if omitted, labels are not changed
      spec: {region: eu-west-1}
      clusterName: payments             of a NodePool: its cluster

    The output of `get -o yaml` is a manifest, too. All errors in all files are reported before anything is sent.
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
    """Applies manifests in order, and remembers their clusters."""

    def __init__(self, session: CliSession, fleet: Fleet, outcomes: Outcomes, *, is_dry: bool) -> None:
        self._session = session
        self._fleet = fleet
        self._outcomes = outcomes
        self._is_dry = is_dry
        self._clusters: dict[str, Cluster | None] = {}  # None: it would have been created

    def apply(self, manifest: Manifest) -> None:
        """Apply one manifest."""
        parent = self._find_parent(manifest)
        if manifest.noun is NODE_POOL and parent is None:
            return self._report(manifest, "created", None)
        operations: Any = operations_on(self._fleet, manifest.noun)
        keywords = {"parent": parent} if manifest.noun is NODE_POOL else {}
        applied: Applied[Resource] = operations.apply(
            manifest.name, manifest.spec, labels=manifest.labels, dry_run=self._is_dry, **keywords
        )
        if manifest.noun is not NODE_POOL:
            self._clusters[manifest.name] = applied.resource  # type: ignore[assignment]  # one of the clusters
        return self._report(manifest, applied.action, applied.resource)

    def _find_parent(self, manifest: Manifest) -> Cluster | None:
        name = manifest.cluster
        if name is None:
            return None
        if name not in self._clusters:
            self._clusters[name] = find_cluster(self._fleet, name)
        return self._clusters[name]

    def _report(self, manifest: Manifest, action: str, resource: Resource | None) -> None:
        wanted = _wanted(manifest, resource)
        document = wanted if self._is_dry or resource is None else resource.raw
        self._outcomes.report(str(manifest), f"{action} (dry run)" if self._is_dry else action, document)
        if self._is_dry and action != "unchanged":
            before = _present(manifest, resource) if resource else None
            for line in compare(before, wanted, has_colour=self._session.has_colour):
                self._outcomes.add_line(f"  {line}")


def _wanted(manifest: Manifest, resource: Resource | None) -> dict[str, Any]:
    """Return the manifest after applying it; omitted labels stay."""
    labels = manifest.labels if manifest.labels is not None or resource is None else resource.labels
    return write_manifest(manifest.noun, manifest.name, manifest.spec, labels, manifest.cluster)


def _present(manifest: Manifest, resource: Resource) -> dict[str, Any]:
    return write_manifest(manifest.noun, resource.name, resource.spec, resource.labels, manifest.cluster)
