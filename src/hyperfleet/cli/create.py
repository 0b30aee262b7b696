"""`hyperfleet create`: create a cluster or a node pool."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from hyperfleet.cli import exits
from hyperfleet.cli.assignments import parse_fields, parse_labels, read_mapping
from hyperfleet.cli.command import CliCommand, bundle, connected
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.manifests import Manifest, parse_manifests, read_manifests, write_manifest
from hyperfleet.cli.options import document_options
from hyperfleet.cli.outcomes import FORMATS, Outcomes
from hyperfleet.cli.output.documents import write_yaml
from hyperfleet.cli.output.formats import Output
from hyperfleet.cli.resources import NODE_POOL, RESOURCES, find_cluster, operations_on, parse_target
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.client import Fleet, Resource


class NewResourceOptions(Struct, frozen=True):
    """The options of `hyperfleet create` that describe the new resource."""

    cluster: str | None = None
    spec: str | None = None
    fields: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def is_empty(self) -> bool:
        """Return whether no option was given."""
        return self == NewResourceOptions()


@click.command(
    "create",
    cls=CliCommand,
    examples=[
        ("a cluster", "hyperfleet create cluster payments --set region=eu-west-1 --label env=prod"),
        ("with a spec from a file", "hyperfleet create cluster payments --spec spec.yaml"),
        ("a node pool of it", "hyperfleet create nodepool workers --cluster payments --set replicas=3"),
        ("everything in a file, which must not exist yet", "hyperfleet create -f fleet.yaml"),
        ("only write the manifest", "hyperfleet create cluster payments --dry-run -o yaml > payments.yaml"),
    ],
    codes={
        exits.NOT_FOUND: "the cluster of a node pool does not exist",
        exits.REFUSED: "the server refused: the name is taken, or the spec does not fit",
    },
)
@click.argument("what", nargs=-1, metavar="[KIND NAME]")
@bundle(
    "contents",
    NewResourceOptions,
    click.option("-c", "--cluster", metavar="CLUSTER", help="The cluster of a node pool."),
    click.option("--spec", metavar="FILE", help="A file with the spec, - for standard input."),
    click.option("--set", "fields", multiple=True, metavar="FIELD=VALUE", help="A field of the spec: nodes.count=3."),
    click.option("-l", "--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label; may be repeated."),
)
@click.option("-f", "--filename", "files", multiple=True, metavar="FILE|DIR|-", help="Manifests, as for `apply`.")
@click.option("--dry-run", is_flag=True, help="Create nothing; -o yaml writes the manifest.")
@document_options(FORMATS)
@connected
@pass_session
def create(
    session: CliSession,
    what: tuple[str, ...],
    contents: NewResourceOptions,
    files: tuple[str, ...],
    dry_run: bool,
    output: Output,
) -> None:
    """Create a cluster or a node pool; it is an error if it already exists.

    KIND is cluster or nodepool. Use `apply` for resources that may exist.
    """
    manifests = _gather(what, contents, files)
    outcomes = Outcomes(session, output)
    if dry_run:
        for each in manifests:
            document = write_manifest(each.noun, each.name, each.spec, each.labels, each.cluster)
            outcomes.report(str(each), "created (dry run)", document)
        sys.exit(outcomes.close())
    with session.open() as fleet:
        for each in manifests:
            with outcomes.attempt(each if files else None):
                outcomes.report(str(each), "created", _create(fleet, each).raw)
    sys.exit(outcomes.close())


def _gather(what: tuple[str, ...], contents: NewResourceOptions, files: tuple[str, ...]) -> list[Manifest]:
    if files:
        if what or not contents.is_empty():
            raise Misuse("-f cannot be combined with other arguments")
        return read_manifests(files)
    if len(what) < 2 and not any("/" in word for word in what):
        raise Misuse(f"name a resource, such as: create {RESOURCES[0].name} NAME; or give manifests with -f")
    target = parse_target(what, contents.cluster)
    if target.noun is NODE_POOL and target.cluster is None:
        raise Misuse("a node pool needs a cluster: name it with --cluster")
    spec = parse_fields(contents.fields, read_mapping(contents.spec) if contents.spec else {})
    document = write_manifest(target.noun, target.name or "", spec, parse_labels(contents.labels), target.cluster)
    manifests, problems = parse_manifests(write_yaml(document), "")
    if problems:
        raise Misuse("; ".join(problem.message for problem in problems))
    return manifests


def _create(fleet: Fleet, manifest: Manifest) -> Resource:
    parent = find_cluster(fleet, manifest.cluster) if manifest.cluster else None
    operations: Any = operations_on(fleet, manifest.noun)
    created: Resource = operations.create(manifest.name, manifest.spec, labels=manifest.labels, parent=parent)
    return created
