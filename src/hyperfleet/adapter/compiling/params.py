"""Compile `params`: where each value comes from, and which of them are secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Final

from msgspec import UNSET

from hyperfleet.adapter.compiling.compiler import Compiler
from hyperfleet.adapter.compiling.names import BUILT_IN
from hyperfleet.adapter.config import (
    CallSource,
    Conversion,
    EntrySource,
    EnvironmentSource,
    ExpressionSource,
    FileSource,
    Param,
    PathSource,
    Source,
)
from hyperfleet.adapter.documents.params import EntryPart, ParamPart, SourcePart
from hyperfleet.adapter.expressions import CelExpression, Expression
from hyperfleet.adapter.secrets import is_secret_name
from hyperfleet.documents import good_items

_ENV: Final = "env."
# What events carry; readers may rely on other keys too.
_EVENT_FIELDS: Final = ("id", "kind", "href", "generation", "owner_references", "reason", "adapter")
_CONVERSIONS: Final[Mapping[str, Conversion]] = {
    "string": "string",
    "int": "int",
    "int64": "int",
    "float": "float",
    "float64": "float",
    "bool": "bool",
}
_SOURCES: Final = ("api_call", "expression", "file", "secret", "config_map")


def env_names(params: Iterable[ParamPart]) -> frozenset[str]:
    """Return the variables of the environment that params name: naming one allows it."""
    sources = [each.source for each in params if each is not None]
    return frozenset(each[len(_ENV) :] for each in sources if isinstance(each, str) and each.startswith(_ENV))


def compile_params(params: tuple[ParamPart, ...], compiler: Compiler) -> tuple[Param, ...]:
    """Compile params; each sees only those before it."""
    run = _ParamCompiler(compiler)
    return tuple(run.compile(part, f"/params/{index}") for index, part in good_items(params))


class _ParamCompiler:
    """Remembers which params are secret: what is derived of one is secret too."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._secret: set[str] = set()
        self._seen: set[str] = set()

    def compile(self, part: ParamPart, pointer: str) -> Param:
        """Compile one."""
        self._check_name(part.name, pointer)
        source = self._source(part, f"{pointer}/source")
        is_secret = is_secret_name(part.name or "") or self._is_secret(source)
        if part.name:
            self._seen.add(part.name)
            self._compiler.names.reveal(part.name)
            self._secret |= {part.name} if is_secret else set()
        if part.type and isinstance(source, CallSource | ExpressionSource):
            message = "type converts texts only; the value of a call or an expression has a type of its own"
            self._compiler.report(f"{pointer}/type", message, "NoEffect", "warning")
        return Param(
            name=part.name,
            source=source,
            conversion=_CONVERSIONS.get(part.type or ""),
            default=part.default,
            is_required=bool(part.required),
            is_secret=is_secret,
        )

    def _check_name(self, name: str | None, pointer: str) -> None:
        if name in BUILT_IN:
            self._compiler.report(f"{pointer}/name", f"{name} is built in; choose another name", "ReservedName")
        elif name in self._seen:
            self._compiler.report(f"{pointer}/name", f"there is already a param {name}", "DuplicateName")

    def _is_secret(self, source: Source) -> bool:
        match source:
            case EntrySource(kind="Secret"):
                return True
            case EnvironmentSource(name=name):
                return is_secret_name(name)
            case PathSource(path=path):
                return path[0] in self._secret or (path[0] == "env" and is_secret_name(path[-1]))
            case ExpressionSource(expression=expression):
                return bool(expression.variables & self._secret) or _reads_secret_env(expression)
        return False

    def _source(self, part: ParamPart, pointer: str) -> Source:
        if not isinstance(part.source, SourcePart):
            return self._path(part, (part.source or "").strip(), pointer)
        given = [key for key in _SOURCES if getattr(part.source, key) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            message = f"exactly one of {', '.join(_SOURCES)} is needed, and here is {found}"
            self._compiler.report(pointer, message, "ExactlyOne")
        return self._mapped(part.source, pointer)

    def _mapped(self, source: SourcePart, pointer: str) -> Source:
        compiler = self._compiler
        if source.api_call is not None:
            return CallSource(compiler.call(source.api_call, f"{pointer}/api_call"))
        if source.expression is not None:
            return ExpressionSource(compiler.expression(source.expression, f"{pointer}/expression"))
        if source.file is not None:
            path = source.file.path or ""
            if path and not PurePosixPath(path).is_absolute():
                message = "the path is relative: what it means depends on where the adapter is started"
                compiler.report(f"{pointer}/file/path", message, "RelativePath", "warning")
            return FileSource(path, bool(source.file.trim))
        if source.secret is not None:
            return self._entry(source.secret, "Secret", f"{pointer}/secret")
        if source.config_map is not None:
            return self._entry(source.config_map, "ConfigMap", f"{pointer}/config_map")
        return PathSource(("event",))

    def _entry(self, part: EntryPart, kind: str, pointer: str) -> EntrySource:
        namespace = self._compiler.text(part.namespace, f"{pointer}/namespace")
        name = self._compiler.text(part.name, f"{pointer}/name")
        return EntrySource("Secret" if kind == "Secret" else "ConfigMap", namespace, name, part.key)

    def _path(self, part: ParamPart, text: str, pointer: str) -> Source:
        names, path = self._compiler.names, tuple(text.split("."))
        if not all(path):
            if self._compiler.places.is_given(pointer):
                self._compiler.report(pointer, "a source is a path of names such as event.id", "NotAllowed")
            return PathSource(("event",))
        if path[0] == "env" and len(path) > 1:
            return EnvironmentSource(text[len(_ENV) :])
        if path[0] == "config":
            self._check_setting(part, path, pointer)
            return PathSource(path)
        if names.is_visible(path[0]):
            return PathSource(path)
        if path[0] in _EVENT_FIELDS:
            return PathSource(("event", *path))
        if path[0] in names.declared:
            self._compiler.report(pointer, names.find_fault((path[0],)), "UndefinedVariable")
        else:
            message = f"there is no param {path[0]} before this one, so it is read from the event: event.{text}"
            self._compiler.report(pointer, message, "ReadFromEvent", "warning")
        return PathSource(("event", *path))

    def _check_setting(self, part: ParamPart, path: tuple[str, ...], pointer: str) -> None:
        for length in range(2, len(path) + 1):
            message = self._compiler.names.find_fault(path[:length])
            if message:
                is_needed = part.required and part.default is UNSET
                self._compiler.report(pointer, message, "UndefinedVariable", "error" if is_needed else "warning")
                return


def _reads_secret_env(expression: Expression) -> bool:
    if not isinstance(expression, CelExpression):
        return False
    members = [use.member for use in expression.program.uses if use.variable == "env"]
    return any(not member or is_secret_name(member) for member in members)
