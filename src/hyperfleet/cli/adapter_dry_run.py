"""`hyperfleet adapter dry-run`: one event through an adapter, with recorded answers and a cluster in memory."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from hyperfleet.cli import exits
from hyperfleet.cli.adapter_files import AdapterFiles, adapter_file_options
from hyperfleet.cli.command import CliCommand, bundle
from hyperfleet.cli.failures import Misuse
from hyperfleet.cli.manifests import name_file, read_text
from hyperfleet.cli.sanitizing import sanitize
from hyperfleet.cli.session import CliSession, pass_session

if TYPE_CHECKING:
    from hyperfleet.adapter.api_recorded import RecordedFile
    from hyperfleet.adapter.config import AdapterConfig
    from hyperfleet.adapter.dry_run import ClusterOperation, DryRunInput
    from hyperfleet.backends.kubernetes.dry_run import DryRunCluster, Operation

_BASE_URL: Final = "http://hyperfleet.invalid"  # paths are resolved against it; nothing is sent anywhere
_MAX_WAIT: Final = 0.01  # seconds; nothing in memory takes time, so every wait is cut short


class DryRunFiles(msgspec.Struct, frozen=True):
    """The files that stand for the world."""

    event: str
    api: str | None = None
    discovery: str | None = None


@click.command(
    "dry-run",
    cls=CliCommand,
    examples=[
        ("one event", "hyperfleet adapter dry-run -f dns.yaml --event event.json"),
        ("with answers of the API", "hyperfleet adapter dry-run -f dns.yaml --event event.json --api api.json"),
        (
            "with objects that exist",
            "hyperfleet adapter dry-run -f dns.yaml --event event.json --discovery objects.json",
        ),
        ("for a program", "hyperfleet adapter dry-run -f dns.yaml --event event.json -o json"),
    ],
    codes={
        exits.OK: "the event would succeed",
        exits.FALSE: "the event would fail, or a file has errors",
        exits.USAGE: exits.MEANINGS[exits.USAGE],
    },
)
@adapter_file_options
@bundle(
    "world",
    DryRunFiles,
    click.option("--event", required=True, metavar="FILE", help="A CloudEvent as JSON; - is stdin."),
    click.option("--api", metavar="FILE", help="Recorded answers of the API; without one, every call gets 200 {}."),
    click.option("--discovery", metavar="FILE", help="Objects that exist already: a map from names to objects."),
)
@click.option(
    "-o", "--output", "format_", type=click.Choice(["text", "json"]), default="text", help="How to show the trace."
)
@pass_session
def dry_run(session: CliSession, files: AdapterFiles, world: DryRunFiles, format_: str) -> None:
    """Show what an adapter would do with one event: nothing is sent, and nothing is written to a cluster.

    Answers of the API come from a file, and the cluster is one in memory. Secrets are never shown.
    """
    from hyperfleet.adapter.dry_run import is_failed, make_trace, write_trace

    config = _load(session, files)
    event, recording = _read_event(world.event), _read_recording(world.api)
    objects = _read_objects(world.discovery)
    trace = make_trace(asyncio.run(_run(session, config, event, recording, objects)))
    if format_ == "json":
        session.write(msgspec.json.format(msgspec.json.encode(trace), indent=2).decode())
    else:
        session.write(*(sanitize(line) for text in write_trace(trace) for line in text.split("\n")))
    sys.exit(exits.FALSE if is_failed(trace) else exits.OK)


def _load(session: CliSession, files: AdapterFiles) -> AdapterConfig:
    """Load the one adapter of the command; write what is wrong with it."""
    loaded = files.load(dict(session.environment), missing_env="warning")
    if len(loaded) != 1:
        raise Misuse(f"a dry run is of one adapter, and the folder has {len(loaded)}")
    config = loaded[0].config
    if config is None:
        for problem in loaded[0].problems:
            session.write(*map(sanitize, str(problem).split("\n")))
        sys.exit(exits.FALSE)
    return config


async def _run(
    session: CliSession,
    config: AdapterConfig,
    event: Mapping[str, Any],
    recording: RecordedFile,
    objects: list[dict[str, Any]],
) -> DryRunInput:
    from hyperfleet.adapter.api_recorded import RecordedApi
    from hyperfleet.adapter.dry_run import DryRunInput
    from hyperfleet.adapter.params import ParamPorts
    from hyperfleet.adapter.reconcile import ReconcilePorts, reconcile
    from hyperfleet.adapter.text_reading import LocalTexts
    from hyperfleet.backends.kubernetes.dry_run import DryRunCluster

    operations: list[Operation] = []
    cluster = DryRunCluster(record=operations.append, now=session.now)
    cluster.preload(objects)
    operations.clear()
    api = RecordedApi(recording, config.api.base_url or _BASE_URL, config.api.version)
    ports = ReconcilePorts(
        params=ParamPorts(api, LocalTexts(_reader(cluster)), session.environment),
        clusters=lambda context: cluster,
        now=session.now,
        sleep=lambda seconds: asyncio.sleep(min(seconds, _MAX_WAIT)),
    )
    result = await reconcile(config, event, ports)
    shown = [_show(each) for each in operations]
    return DryRunInput(config=config, event=event, result=result, requests=api.requests, operations=shown)


def _reader(cluster: DryRunCluster) -> Any:
    """Return how params read a Secret or ConfigMap: from the objects that were given."""
    from hyperfleet.errors import KubernetesError, ObjectNotFound
    from hyperfleet.kubernetes.port import ObjectKind, ObjectRef

    async def read(kind: str, namespace: str, name: str) -> Mapping[str, Any] | str | None:
        try:
            return await cluster.get(ObjectRef(ObjectKind("v1", kind), namespace, name))
        except ObjectNotFound:
            return None
        except KubernetesError as error:
            return str(error)

    return read


def _show(operation: Operation) -> ClusterOperation:
    from hyperfleet.adapter.dry_run import ClusterOperation

    place = "/".join(part for part in (operation.namespace, operation.name) if part)
    shown = f"{operation.kind.kind} {place}".strip()
    return ClusterOperation(verb=operation.verb, object=shown, outcome=operation.outcome, error=operation.error)


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_event(file: str) -> dict[str, Any]:
    """Return the data of a CloudEvent."""
    from hyperfleet.events.cloud_events import MalformedEvent, decode_event, read_data

    try:
        return read_data(decode_event(read_text(file).encode(), "clusterEvents").data)
    except MalformedEvent as error:
        raise Misuse(f"{name_file(file)}: {error}") from error


def _read_recording(file: str | None) -> RecordedFile:
    from hyperfleet.adapter.api_recorded import RecordedFile, load_recording
    from hyperfleet.errors import DocumentError

    if file is None:
        return RecordedFile()
    loaded = load_recording(read_text(file), name_file(file))
    if loaded.recording is None:
        raise DocumentError(list(loaded.problems))
    return loaded.recording


def _read_objects(file: str | None) -> list[dict[str, Any]]:
    """Return the objects of a map from names to objects; an object without a name gets its key."""
    if file is None:
        return []
    try:
        found = msgspec.json.decode(read_text(file))
    except msgspec.DecodeError as error:
        raise Misuse(f"{name_file(file)}: this is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Misuse(f"{name_file(file)}: expected a map from names to objects")
    wrong = [f'"{name}" {fault}' for name, each in found.items() if (fault := _find_fault(each))]
    if wrong:
        raise Misuse(f"{name_file(file)}: {'; '.join(wrong)}")
    return [{**each, "metadata": {"name": name, **(each.get("metadata") or {})}} for name, each in found.items()]


def _find_fault(found: Any) -> str:
    if not isinstance(found, dict):
        return "is no object"
    missing = [key for key in ("apiVersion", "kind") if not isinstance(found.get(key), str) or not found[key]]
    if missing:
        return f"has no {' and no '.join(missing)}"
    return "" if isinstance(found.get("metadata") or {}, dict) else "has metadata that are no map"
