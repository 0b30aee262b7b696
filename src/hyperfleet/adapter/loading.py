"""Load adapters: one file of ours, a folder of them, or the two files of the Go adapter.

`load_adapter`, `load_pair` and `load_folder` are the front door. Every problem of every file is collected. A file that
cannot be read at all raises `UnreadableFile`; what is wrong with its content is a result. Files that an adapter file
names must be in its own folder, or below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from hyperfleet.adapter.checks import check_api_version, check_environment, check_health
from hyperfleet.adapter.compiling.compiler import Compiler, make_environment
from hyperfleet.adapter.compiling.connections import ClientSections, read_connections
from hyperfleet.adapter.compiling.names import BUILT_IN, KnownNames
from hyperfleet.adapter.compiling.objects import (
    check_object_names,
    compile_objects,
    compile_tracked,
    object_names,
)
from hyperfleet.adapter.compiling.params import compile_params, env_names
from hyperfleet.adapter.compiling.post import compile_actions, compile_payloads, payload_names
from hyperfleet.adapter.compiling.preconditions import compile_preconditions
from hyperfleet.adapter.config import AdapterConfig
from hyperfleet.adapter.documents.clients import AdapterPart, ClientsPart
from hyperfleet.adapter.documents.files import AdapterDocument, DeploymentDocument, TaskDocument
from hyperfleet.adapter.documents.objects import ResourcePart, TrackPart
from hyperfleet.adapter.documents.params import ParamPart
from hyperfleet.adapter.documents.post import PostPart
from hyperfleet.adapter.documents.preconditions import PreconditionPart
from hyperfleet.adapter.file_reading import FileReferences, find_adapter_files, read_text
from hyperfleet.adapter.secrets import is_secret_name
from hyperfleet.document_problem import DocumentPlace, DocumentProblem, Level, has_errors
from hyperfleet.documents import LoadedDocument, Places, load, salvage

T = TypeVar("T")

_TASK_KEYS: Final = ("params", "preconditions", "resources", "track", "post")
MAX_ADAPTERS: Final = 200  # in one folder


class LoadOptions(Struct, frozen=True):
    """The environment of the process, and how bad it is that a required variable of it is missing."""

    env: Mapping[str, str] = {}
    missing_env: Level = "error"


class LoadedAdapter(Struct, frozen=True):
    """An adapter (None on any error) and every problem of its files."""

    config: AdapterConfig | None
    problems: tuple[DocumentProblem, ...] = ()
    file: str = ""


class _TaskSections(Protocol):
    """What a task config and a file of ours have in common."""

    @property
    def params(self) -> tuple[ParamPart, ...]: ...
    @property
    def preconditions(self) -> tuple[PreconditionPart, ...]: ...
    @property
    def resources(self) -> tuple[ResourcePart, ...]: ...
    @property
    def track(self) -> TrackPart: ...
    @property
    def post(self) -> PostPart: ...


class _Sources(Struct, frozen=True):
    """The documents of one adapter; both places are the same for a file of ours."""

    adapter: AdapterPart | None
    clients: ClientsPart
    deployment_places: Places
    task: Any  # _TaskSections
    places: Places
    folder: Path


def load_adapter(file: Path, options: LoadOptions) -> LoadedAdapter:
    """Load one file of ours."""
    loaded = load(read_text(file), AdapterDocument, file=str(file))
    content = loaded.value or salvage(loaded.places.document, AdapterDocument)
    if content is None:
        return LoadedAdapter(None, loaded.problems, str(file))
    places = loaded.places
    sources = _Sources(content.adapter, content.clients, places, content, places, file.parent)
    problems = (*loaded.problems, *_find_nothing_to_do(places))
    return _finish(sources, problems, options, str(file))


def _find_nothing_to_do(places: Places) -> Iterable[DocumentProblem]:
    """Yield a problem for a file that does nothing, such as the deployment config of a Go adapter alone."""
    if not any(places.is_given(f"/{key}") for key in _TASK_KEYS):
        message = "the file has nothing to do: it has no params, resources or post. Does it need -c and -t?"
        yield DocumentProblem(places.value(""), message, "NothingToDo")


def load_pair(deployment: Path, task: Path, options: LoadOptions) -> LoadedAdapter:
    """Load the two files of the Go adapter."""
    first, where = _load_part(deployment, DeploymentDocument)
    second, what = _load_part(task, TaskDocument)
    problems = (*first.problems, *second.problems)
    if where is None or what is None:
        return LoadedAdapter(None, tuple(sorted(problems)), str(task))
    sources = _Sources(where.adapter, where.clients, first.places, what, second.places, task.parent)
    return _finish(sources, problems, options, str(task))


def load_folder(folder: Path, options: LoadOptions) -> tuple[LoadedAdapter, ...]:
    """Load every adapter file of a folder and the folders in it; other files are left alone."""
    files = sorted(find_adapter_files(folder))
    if not files or len(files) > MAX_ADAPTERS:
        found = f"{len(files)} adapter files, more than {MAX_ADAPTERS}" if files else 'no file with a key "adapter"'
        problem = DocumentProblem(DocumentPlace(str(folder), 1, 1), f"the folder has {found}", "NoAdapters")
        return (LoadedAdapter(None, (problem,), str(folder)),)
    return tuple(_refuse_duplicates([load_adapter(file, options) for file in files]))


# ── one adapter ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _load_part(file: Path, type_: type[T]) -> tuple[LoadedDocument[T], T | None]:
    loaded = load(read_text(file), type_, file=str(file))
    return loaded, loaded.value or salvage(loaded.places.document, type_)


def _finish(sources: _Sources, found: tuple[DocumentProblem, ...], options: LoadOptions, file: str) -> LoadedAdapter:
    """Compile the documents of an adapter, and add what is wrong with them."""
    connections = read_connections(sources.adapter, sources.clients, sources.deployment_places, options.env)
    config, problems = _compile(sources, connections, file)
    params = sources.task.params
    problems += check_environment(params, sources.places, options.env, options.missing_env)
    problems += check_api_version(params, sources.places, options.env)
    everything = tuple(sorted({*found, *connections.problems, *problems}))
    if has_errors(everything):
        return LoadedAdapter(None, everything, file)
    health = check_health(config, sources.places)
    return LoadedAdapter(config, tuple(sorted([*everything, *health])), file)


def _compile(sources: _Sources, connections: ClientSections, file: str) -> tuple[AdapterConfig, list[DocumentProblem]]:
    """Compile the sections in the order in which an event runs through them."""
    task: _TaskSections = sources.task
    adapter = sources.adapter or AdapterPart(name="")
    allowed = frozenset(adapter.env) | env_names(task.params)
    declared = {*BUILT_IN, *filter(None, _variable_names(task))}  # a name with a problem is None
    objects = [name for name, _ in object_names(task.resources, task.track)]
    names = KnownNames(declared=declared, objects=objects, allowed_env=allowed, settings=connections.settings)
    compiler = Compiler(names, make_environment(declared), sources.places)
    references = FileReferences(sources.folder)
    check_object_names(task.resources, task.track, compiler)
    config = AdapterConfig(
        name=adapter.name,
        version=adapter.version,
        kinds=adapter.kinds,
        file=file,
        environment=compiler.environment,
        allowed_env=allowed,
        secret_env=frozenset(filter(is_secret_name, allowed)),
        settings=connections.settings,
        params=compile_params(task.params, compiler),
        preconditions=compile_preconditions(task.preconditions, compiler),
        resources=compile_objects(task.resources, compiler, references.read_text),
        tracked=compile_tracked(task.track, compiler),
        payloads=compile_payloads(task.post, compiler, references.read_tree),
        actions=compile_actions(task.post, compiler),
        api=connections.api,
        broker=connections.broker,
        kubernetes=connections.kubernetes,
        unknown_at_first=adapter.unknown_at_first,
        concurrency=adapter.concurrency,
        recheck=adapter.recheck,
    )
    return config, compiler.problems


def _variable_names(task: _TaskSections) -> Iterable[str]:
    yield from (each.name for each in task.params if each is not None)
    for part in task.preconditions:
        if part is not None and part.api_call is not None:
            yield part.name
            yield from (each.name for each in part.capture if each is not None)
    yield from payload_names(task.post)


# ── a folder ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _refuse_duplicates(loaded: list[LoadedAdapter]) -> Iterable[LoadedAdapter]:
    """Refuse two adapters with one name or one subscription: they would take each other's events."""
    taken: dict[tuple[str, str], str] = {}
    for each in loaded:
        problems = []
        if each.config is not None:
            subscription = each.config.broker.subscription or each.config.name
            for what, name in (("name", each.config.name), ("subscription", subscription)):
                other = taken.setdefault((what, name), each.file)
                if other != each.file:
                    message = f"{other} has an adapter with the same {what} {name}"
                    problems.append(DocumentProblem(DocumentPlace(each.file, 1, 1), message, "DuplicateName"))
        if problems:
            yield LoadedAdapter(None, tuple(sorted([*each.problems, *problems])), each.file)
        else:
            yield each
