"""The broker.yaml of the Go programs: how to reach RabbitMQ or Google Pub/Sub, from the file and the environment.

The composition root reads it where `pubsub.brokerFile` names one. Unknown keys are warned of, not refused, as those
programs ignore them; where we differ from them, `differences` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

from msgspec import Struct, inspect
from msgspec.structs import replace

from hyperfleet.documents import DocumentPlace, DocumentProblem, Places, YamlDocument, bind, read
from hyperfleet.documents.nodes import MappingEntry, MappingNode, Node, ScalarNode
from hyperfleet.documents.pointer import split
from hyperfleet.documents.wording import quote, suggest
from hyperfleet.errors import SettingsError
from hyperfleet.settings.broker_sections import BrokerDocument, BrokerType, GoogleSection, RabbitSection, check_google
from hyperfleet.settings.endpoints import conceal, parse_rabbit_url
from hyperfleet.settings.layers import Named, insert_node, node_of_text

_DAYS: Final = re.compile(r"([0-9]{1,5})d")
_MAX_BYTES: Final = 256 * 1024  # a real one has less than 1 KiB


class BrokerFile(Struct, frozen=True):
    """What a broker.yaml says. Only the section of its type matters."""

    type: BrokerType
    rabbitmq: RabbitSection
    google: GoogleSection
    parallelism: int
    differences: tuple[DocumentProblem, ...]  # warnings: what is unknown, ignored or done otherwise


def load_broker_file(path: Path, environment: Mapping[str, str]) -> BrokerFile:
    """Read a broker.yaml; raises `SettingsError` with every problem."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1).decode("utf-8")
    except OSError as error:
        raise _refuse(str(path), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _refuse(str(path), "is not UTF-8 text") from error
    return parse_broker_file(text, str(path), environment)


def parse_broker_file(text: str, file: str, environment: Mapping[str, str]) -> BrokerFile:
    """Read the text of a broker.yaml; variables such as BROKER_RABBITMQ_URL override its keys."""
    reading = read(text, file)
    root = reading.documents[0].root if reading.documents else MappingNode(1, 1, ())
    given = {key: environment[_variable(key)] for key in _KEYS if environment.get(_variable(key))}
    if isinstance(root, MappingNode):
        for key, value in given.items():
            root = insert_node(root, key.split("."), node_of_text(_KEYS[key], value))
    document = YamlDocument(file, text, _tidy(root))
    places = _FilePlaces(Places(document), frozenset(given))
    bound = bind(document, BrokerDocument)
    problems = [_conceal(problem) for problem in (*reading.problems, *map(places.rename, bound.problems))]
    if bound.value is not None:
        problems += _check(bound.value, places)
    if problems or bound.value is None:
        raise SettingsError(problems)
    found = bound.value
    differences = (*_unknown_keys(document.root, places), *_differences(found, places))
    return BrokerFile(
        found.broker.type,
        found.broker.rabbitmq,
        found.broker.googlepubsub,
        found.subscriber.parallelism,
        tuple(sorted(differences)),
    )


class _FilePlaces(Struct, frozen=True):
    """Where a key was given: in the file, or by a variable."""

    places: Places
    by_variable: frozenset[str]

    def of(self, key: str) -> DocumentPlace:
        """Return the place of a key such as broker.type."""
        pointer = "".join(f"/{part}" for part in key.split("."))
        return Named(_variable(key), 0, 0, pointer) if key in self.by_variable else self.places.value(pointer)

    def rename(self, problem: DocumentProblem) -> DocumentProblem:
        """Name the variable in a problem of a value that comes from one."""
        key = ".".join(split(problem.place.path))
        return replace(problem, place=self.of(key)) if key in self.by_variable else problem

    def is_given(self, key: str) -> bool:
        """Tell whether a key has a value."""
        return self.places.is_given("".join(f"/{part}" for part in key.split(".")))


# ── what is wrong ────────────────────────────────────────────────────────────────────────────────────────────────────


def _check(found: BrokerDocument, places: _FilePlaces) -> Iterator[DocumentProblem]:
    """Yield what the types cannot say."""
    rabbit, google = found.broker.rabbitmq, found.broker.googlepubsub
    if found.broker.type == "rabbitmq":
        try:
            parse_rabbit_url(rabbit.url)
        except ValueError as error:
            yield DocumentProblem(places.of("broker.rabbitmq.url"), str(error), "NotAllowed")
    if found.broker.type == "googlepubsub":
        if not google.project_id:
            yield DocumentProblem(
                places.of("broker.googlepubsub.project_id"), 'the key "project_id" is missing', "MissingKey"
            )
        for key, message in check_google(google):
            yield DocumentProblem(places.of(f"broker.googlepubsub.{key}"), message, "NotAllowed")


# ── what we do otherwise ─────────────────────────────────────────────────────────────────────────────────────────────

_IGNORED: Final = {
    "log_config": "ignored: the content of this file is never logged",
    "broker.rabbitmq.prefetch_size": "ignored: RabbitMQ does not support it",
    "broker.rabbitmq.consumer_tag": "ignored: each consumer gets a tag of its own",
    "broker.googlepubsub.dead_letter_topic": "ignored, as by the Go programs: it is always {subscription}-dlq",
    "broker.googlepubsub.topic_retention_duration": "ignored, as by the Go programs",
}
_NEVER_ROUTED: Final = "Go consumers bind with an empty key: a {} exchange gives them no message that has a routing key"
_NOTES: Final = {
    "exchange": "names the exchange of cluster events only; Go programs merge all topics into it",
    "queue": "begins the names of queues of cluster events only; Go programs use it for all topics",
}


def _differences(found: BrokerDocument, places: _FilePlaces) -> Iterator[DocumentProblem]:
    """Yield what is ignored, or done in another way than by the Go programs."""
    for key, message in _IGNORED.items():
        if places.is_given(key):
            yield _warn(places.of(key), message, "Ignored")
    if found.broker.type == "rabbitmq":
        for name, message in _rabbit_differences(found.broker.rabbitmq, places):
            yield _warn(places.of(f"broker.rabbitmq.{name}"), message, "Different")


def _rabbit_differences(rabbit: RabbitSection, places: _FilePlaces) -> Iterator[tuple[str, str]]:
    if not rabbit.publisher_confirm and places.is_given("broker.rabbitmq.publisher_confirm"):
        yield "publisher_confirm", "false is ignored: every message is confirmed, so that none is lost"
    if rabbit.routing_key and rabbit.exchange_type in ("topic", "direct"):
        yield "routing_key", _NEVER_ROUTED.format(rabbit.exchange_type)
    for name, message in _NOTES.items():
        if getattr(rabbit, name):
            yield name, message


def _unknown_keys(root: Node, places: _FilePlaces) -> Iterator[DocumentProblem]:
    """Yield a warning for each key that has no meaning."""
    known = {key.rpartition(".")[0] for key in _KEYS} | set(_KEYS) | {"broker"}
    for path, entry in _walk(root, ""):
        if path not in known:
            parent = path.rpartition(".")[0]
            beside = tuple(key.rpartition(".")[2] for key in known if key and key.rpartition(".")[0] == parent)
            hint = " belongs to the top of the file" if path == "broker.subscriber" else " has no effect"
            message = f"the key {quote(entry.key.name)}{hint}{suggest(entry.key.name, beside)}"
            pointer = "".join(f"/{part}" for part in path.split("."))
            yield _warn(places.places.key(pointer), message, "UnknownKey")


def _walk(node: Node, path: str) -> Iterator[tuple[str, MappingEntry]]:
    """Yield the keys of mappings with their paths; not what is inside an unknown key."""
    for entry in node.entries if isinstance(node, MappingNode) else ():
        inner = f"{path}.{entry.key.name}" if path else entry.key.name
        yield inner, entry
        if any(key.startswith(f"{inner}.") for key in _KEYS):
            yield from _walk(entry.value, inner)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _keys_of(type_: type[Struct], path: str = "") -> Iterator[tuple[str, inspect.Type]]:
    """Yield every key with its type."""
    for field in cast("inspect.StructType", inspect.type_info(type_)).fields:
        key = f"{path}{field.encode_name}"
        if isinstance(field.type, inspect.StructType):
            yield from _keys_of(field.type.cls, f"{key}.")
        else:
            yield key, field.type.type if isinstance(field.type, inspect.Metadata) else field.type


_KEYS: Final = dict(_keys_of(BrokerDocument))


def _variable(key: str) -> str:
    return key.upper().replace(".", "_")


def _tidy(node: Node) -> Node:
    """Leave out empty values, which mean: not given; write days in hours, and 0 as a text, as durations allow."""
    if isinstance(node, MappingNode):
        kept = (
            entry for entry in node.entries if not (isinstance(entry.value, ScalarNode) and entry.value.value is None)
        )
        entries = tuple(MappingEntry(entry.key, _tidy_value(entry)) for entry in kept)
        return MappingNode(node.line, node.column, entries)
    return node


def _tidy_value(entry: MappingEntry) -> Node:
    value = entry.value
    is_duration = entry.key.name.endswith(("_duration", "_ttl", "_backoff"))
    if not is_duration or not isinstance(value, ScalarNode):
        return _tidy(value)
    days = _DAYS.fullmatch(value.text)
    text = f"{int(days[1]) * 24}h" if days else value.text
    return replace(value, text=text, value=text) if days or value.value == 0 else value


def _warn(place: DocumentPlace, message: str, code: str) -> DocumentProblem:
    return DocumentProblem(place, message, code, "warning")


def _conceal(problem: DocumentProblem) -> DocumentProblem:
    """Remove passwords from a problem that quotes the file."""
    return replace(problem, message=conceal(problem.message), snippet="")


def _refuse(file: str, message: str) -> SettingsError:
    return SettingsError([DocumentProblem(Named(file, 0, 0), message, "Unreadable")])
