"""One source of settings: a document bound to the whole tree, in which most keys are absent.

Only `resolution` uses this. Values of the environment and of flags become nodes, so a variable is checked by the same
rules, with the same messages, as a key of a file. Nothing is raised here: a layer carries its problems.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, inspect
from msgspec.structs import replace

from hyperfleet.documents import (
    DocumentPlace,
    DocumentProblem,
    Places,
    YamlDocument,
    bind,
    good_items,
    load,
    read,
    salvage,
)
from hyperfleet.documents.nodes import ListNode, MappingEntry, MappingNode, Node, Plain, ScalarNode
from hyperfleet.documents.pointer import join
from hyperfleet.events.webhook_target import Webhook
from hyperfleet.settings.endpoints import conceal, parse_database
from hyperfleet.settings.tree import (
    AUDIT_WORDS,
    BY_KEY,
    SETTINGS,
    AuditSettings,
    AuthSettings,
    Setting,
    Settings,
    TlsSettings,
)

# Booleans in the environment; a file has YAML's true and false.
_SWITCHES: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_WHOLE_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,18}(\.[0-9]{1,18})?")


class Named(DocumentPlace, frozen=True):
    """A place without a line: an environment variable or a flag."""

    def __str__(self) -> str:
        """Write the name alone."""
        return self.file


class Layer(Struct, frozen=True):
    """The settings of one source. `names` is how problems name each setting; in a file that is line and column."""

    places: Places
    value: Settings
    problems: tuple[DocumentProblem, ...] = ()
    names: Mapping[str, str] | None = None

    def gives(self, setting: Setting) -> bool:
        """Tell whether this source gives a value for a setting, valid or not."""
        return self.places.is_given(setting.pointer)

    def has_problem(self, setting: Setting) -> bool:
        """Tell whether its value for a setting has the wrong type."""
        return any(owner_of(problem.place.path) is setting for problem in self.problems)

    def place(self, setting: Setting, inner: Sequence[str | int] = ()) -> DocumentPlace:
        """Return where this source gives a setting, or a value inside it."""
        pointer = join(setting.pointer, *inner)
        if self.names is None:
            return self.places.value(pointer)
        return Named(self.names[setting.key], 0, 0, pointer)


def read_file(file: str) -> Layer:
    """Read a settings file; it may be empty."""
    try:
        text = Path(file).read_bytes().decode("utf-8")
    except OSError as error:
        return _empty_layer(file, f"cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        return _empty_layer(file, "is not UTF-8 text")
    loaded = load(text, Settings, file=file)
    document = loaded.places.document
    if _is_empty(document.root) and {problem.code for problem in loaded.problems} <= {"Empty", "WrongType"}:
        return _empty_layer(file)
    value = loaded.value or salvage(document, Settings) or Settings()
    problems = tuple(_conceal_problem(problem, text) for problem in loaded.problems)
    return Layer(loaded.places, anchor(value, Path(file).absolute().parent), problems)


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value is None


def _empty_layer(file: str, message: str = "") -> Layer:
    """Return the layer of a file that is empty or cannot be read."""
    problems = (DocumentProblem(Named(file, 0, 0), message, "Unreadable"),) if message else ()
    return Layer(Places(YamlDocument(file, "", MappingNode(1, 1, ()))), Settings(), problems)


def _conceal_problem(problem: DocumentProblem, text: str) -> DocumentProblem:
    """Remove passwords from a problem; drop its snippet if that line has one."""
    lines = text.splitlines()
    line = lines[problem.place.line - 1] if problem.place.line <= len(lines) else ""
    snippet = problem.snippet if conceal(line) == line else ""
    return replace(problem, message=conceal(problem.message), snippet=snippet)


def read_texts(texts: Mapping[str, str], names: Mapping[str, str]) -> Layer:
    """Read settings given as strings, by key; `names` is how problems name each of them."""
    root = MappingNode(0, 0, ())
    for key, text in texts.items():
        root = insert_node(root, key.split("."), node_of_text(BY_KEY[key].type, text))
    document = YamlDocument("", "", root)
    bound = bind(document, Settings)
    value = bound.value or salvage(document, Settings) or Settings()
    problems = tuple(_rename(problem, names) for problem in bound.problems)
    return Layer(Places(document), anchor(value, Path.cwd()), problems, names)


def _rename(problem: DocumentProblem, names: Mapping[str, str]) -> DocumentProblem:
    owner = owner_of(problem.place.path)
    name = names[owner.key] if owner else problem.place.file
    return replace(problem, place=Named(name, 0, 0, problem.place.path), message=conceal(problem.message))


def insert_node(root: MappingNode, keys: Sequence[str], node: Node) -> MappingNode:
    """Return the mapping with a value at a path of keys."""
    first, *rest = keys
    before = root.find(first)
    if rest:
        inner = before.value if before and isinstance(before.value, MappingNode) else MappingNode(0, 0, ())
        node = insert_node(inner, rest, node)
    others = tuple(entry for entry in root.entries if entry is not before)
    return MappingNode(root.line, root.column, (*others, MappingEntry(_scalar(first, first), node)))


def node_of_text(info: inspect.Type, text: str) -> Node:
    """Turn a string into a node of the setting's type: `Cluster=a.json,NodePool=b.json` is a mapping, `8` a number."""
    if isinstance(info, inspect.DictType):
        return MappingNode(0, 0, tuple(_to_entry(item) for item in text.split(",") if item.strip()))
    if isinstance(info, inspect.UnionType):  # an optional value
        return node_of_text(next(_bare(each) for each in info.types if not isinstance(each, inspect.NoneType)), text)
    if isinstance(info, inspect.VarTupleType):
        return _to_list(info, text)
    if isinstance(info, inspect.BoolType):
        return _scalar(text, _SWITCHES.get(text.strip().lower(), text))
    if isinstance(info, inspect.IntType) and _WHOLE_NUMBER.fullmatch(text.strip()):
        return _scalar(text, int(text))
    if isinstance(info, inspect.FloatType) and _NUMBER.fullmatch(text.strip()):
        return _scalar(text, float(text))
    return _scalar(text, text)


def _bare(info: inspect.Type) -> inspect.Type:
    return info.type if isinstance(info, inspect.Metadata) else info


def _to_list(info: inspect.VarTupleType, text: str) -> Node:
    """Turn a string into a list: `a,b` or, as in a file, `[a, b]`; a list of mappings must be YAML."""
    if isinstance(info.item_type, inspect.StructType) or text.lstrip().startswith("["):
        reading = read(text, "")
        is_valid = len(reading.documents) == 1 and not reading.problems  # otherwise the whole string is refused
        return reading.documents[0].root if is_valid else _scalar(text, text)
    items = [item.strip() for item in text.split(",") if item.strip()]
    return ListNode(0, 0, tuple(_scalar(item, item) for item in items))


def _to_entry(item: str) -> MappingEntry:
    key, _, value = (part.strip() for part in item.partition("="))
    return MappingEntry(_scalar(key, key), _scalar(value, value or None))


def _scalar(text: str, value: Plain) -> ScalarNode:
    return ScalarNode(0, 0, 0, text, value)


def anchor(settings: Settings, directory: Path) -> Settings:
    """Make every path absolute, so that it does not depend on the working directory."""
    schemas = {kind: os.path.abspath(directory / path) for kind, path in settings.spec_schemas.items()}
    policy = _anchor_path(settings.policy, directory)
    return replace(
        settings,
        spec_schemas=schemas,
        policy=policy,
        database=_anchor_database(settings.database, directory),
        auth=_anchor_auth(settings.auth, directory),
        tls=_anchor_tls(settings.tls, directory),
        audit=_anchor_audit(settings.audit, directory),
        pubsub=replace(settings.pubsub, broker_file=_anchor_path(settings.pubsub.broker_file, directory)),
        sentinel=replace(settings.sentinel, config=_anchor_path(settings.sentinel.config, directory)),
        webhooks=tuple(_anchor_webhook(webhook, directory) for _, webhook in good_items(settings.webhooks)),
    )


def _anchor_webhook(webhook: Webhook, directory: Path) -> Webhook:
    return replace(
        webhook,
        secret_file=_anchor_path(webhook.secret_file, directory),
        ca_file=_anchor_path(webhook.ca_file, directory),
    )


def _anchor_audit(audit: AuditSettings, directory: Path) -> AuditSettings:
    return audit if audit.to in AUDIT_WORDS else replace(audit, to=_anchor_path(audit.to, directory))


def _anchor_auth(auth: AuthSettings, directory: Path) -> AuthSettings:
    issuers = [
        replace(
            issuer,
            jwks=issuer.jwks if issuer.has_address else _anchor_path(issuer.jwks, directory),
            secret_file=_anchor_path(issuer.secret_file, directory),
        )
        for _, issuer in good_items(auth.issuers)
    ]
    return replace(auth, tokens=_anchor_path(auth.tokens, directory), issuers=tuple(issuers))


def _anchor_tls(tls: TlsSettings, directory: Path) -> TlsSettings:
    return replace(
        tls,
        certificate=_anchor_path(tls.certificate, directory),
        key=_anchor_path(tls.key, directory),
        client_ca=_anchor_path(tls.client_ca, directory),
    )


def _anchor_path(path: str | None, directory: Path) -> str | None:
    return path and os.path.abspath(directory / path)


def _anchor_database(text: str, directory: Path) -> str:
    try:
        database = parse_database(text)
    except ValueError:
        return text  # `resolution` reports the problem
    return f"sqlite:{os.path.abspath(directory / database.location)}" if database.engine == "sqlite" else text


def owner_of(pointer: str) -> Setting | None:
    """Return the setting that a pointer is in."""
    return next((each for each in SETTINGS if f"{pointer}/".startswith(f"{each.pointer}/")), None)
