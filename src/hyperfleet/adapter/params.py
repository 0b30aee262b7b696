"""Step 1: resolve the params of a file for one event, in their order.

Pure over its ports: the API, files, entries of Secrets and ConfigMaps, and the environment come in as `ParamPorts`. The
result is a value: the variables of all later steps and the secrets among them, or the param that failed and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import UNSET, Struct

from hyperfleet.adapter.api_calls import ApiAnswer, ApiCaller, prepare, read_object
from hyperfleet.adapter.config import (
    AdapterConfig,
    CallSource,
    EntrySource,
    EnvironmentSource,
    ExpressionSource,
    FileSource,
    Param,
    PathSource,
)
from hyperfleet.adapter.conversions import convert
from hyperfleet.adapter.expressions import evaluate_alone
from hyperfleet.adapter.secrets import Secrets
from hyperfleet.adapter.templates import TextTemplate

# Sources whose values are texts, which `type` converts. An answer and an expression have types of their own.
CONVERTED_SOURCES: Final = (PathSource, EnvironmentSource, FileSource, EntrySource)


class ReadText(NamedTuple):
    """A text from outside, or why there is none."""

    text: str
    fault: str = ""


class TextReader(Protocol):
    """Reads files and entries of Kubernetes objects; bounded, and never raises for what it does not find."""

    async def read_file(self, path: str) -> ReadText:
        """Return the text of a file."""
        ...

    async def read_entry(self, kind: Literal["Secret", "ConfigMap"], namespace: str, name: str, key: str) -> ReadText:
        """Return one entry of a Secret (decoded) or ConfigMap."""
        ...


class ParamPorts(Struct, frozen=True):
    """What params read."""

    api: ApiCaller
    texts: TextReader
    env: Mapping[str, str]


class Resolved(Struct, frozen=True):
    """The variables of an event, and which of them are secret."""

    variables: Mapping[str, Any]
    secrets: Secrets


class ParamFailure(Struct, frozen=True, kw_only=True):
    """A required param has no value. `answer` is that of its API call, if it has one."""

    param: str
    message: str
    resolved: Resolved  # what was resolved before it, for the report
    answer: ApiAnswer | None = None

    @property
    def is_gone(self) -> bool:
        """Tell whether the API says that the resource does not exist."""
        return self.answer is not None and self.answer.is_gone

    def __str__(self) -> str:
        """Name the param and say why it failed, for people."""
        return f"param {self.param}: {self.resolved.secrets.redact(self.message)}"


ParamResult: TypeAlias = Resolved | ParamFailure


class _Found(NamedTuple):
    """The value of a source, or why there is none."""

    value: Any
    fault: str = ""
    answer: ApiAnswer | None = None


async def resolve_params(
    config: AdapterConfig, event: Mapping[str, Any], ports: ParamPorts, now: datetime
) -> ParamResult:
    """Return the variables of an event, or the first required param without a value."""
    variables = starting_variables(config, event, ports.env)
    secrets = Secrets((f"env.{name}", variables["env"][name]) for name in config.secret_env & variables["env"].keys())
    step = _ParamStep(config, ports, now)
    for param in config.params:
        found = await step.find(param, variables)
        if found.fault and param.is_required:
            return ParamFailure(
                param=param.name,
                message=found.fault,
                resolved=Resolved(variables, secrets),
                answer=found.answer,
            )
        value = _or_default(found, param)
        if value is not UNSET:
            variables[param.name] = value
            secrets = secrets.adding(param.name, value) if param.is_secret else secrets
    return Resolved(variables, secrets)


def starting_variables(config: AdapterConfig, event: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Return the variables that are there before any param; of the environment only what the file allows."""
    return {
        "adapter": {
            "name": config.name,
            "version": config.version,
            "executionStatus": "success",
            "resourcesSkipped": False,
            "skipReason": "",
            "errorReason": "",
            "errorMessage": "",
            "executionError": None,
            "resourceErrors": {},
        },
        "config": config.settings,
        "env": {name: env[name] for name in sorted(config.allowed_env) if name in env},
        "event": dict(event),
    }


def _or_default(found: _Found, param: Param) -> Any:
    """Return the value; the default for a failure, null or an empty text; UNSET if the name stays undefined."""
    if found.fault:
        return param.default
    if (found.value is None or found.value == "") and param.default is not UNSET:
        return param.default
    return found.value


class _ParamStep:
    """Finds the values of single params."""

    def __init__(self, config: AdapterConfig, ports: ParamPorts, now: datetime) -> None:
        self._config = config
        self._ports = ports
        self._now = now

    async def find(self, param: Param, variables: Mapping[str, Any]) -> _Found:
        """Return the value of a source, converted."""
        found = await self._read(param, variables)
        if found.fault or not isinstance(param.source, CONVERTED_SOURCES):
            return found
        return _Found(*convert(found.value, param.conversion))

    async def _read(self, param: Param, variables: Mapping[str, Any]) -> _Found:
        match param.source:
            case PathSource(path=path):
                return _look_up(variables, path)
            case EnvironmentSource(name=name):
                is_set = name in self._ports.env
                return _Found(self._ports.env[name]) if is_set else _Found(None, f"the variable {name} is not set")
            case CallSource() as source:
                return await self._call(source, variables)
            case ExpressionSource() as source:
                return self._evaluate(source, variables)
            case FileSource() as source:
                return await self._read_file(source, is_required=param.is_required)
            case EntrySource() as source:
                return await self._read_entry(source, variables)

    async def _call(self, source: CallSource, variables: Mapping[str, Any]) -> _Found:
        request, fault = prepare(source.call, variables, self._now)
        if request is None:
            return _Found(None, fault.message if fault else "")
        answer = await self._ports.api.call(request)
        if not answer.is_success:
            return _Found(None, answer.describe(), answer)
        value, problem = read_object(answer)
        return _Found(value, problem, answer)

    def _evaluate(self, source: ExpressionSource, variables: Mapping[str, Any]) -> _Found:
        outcome = evaluate_alone(source.expression, self._config.environment, variables, self._now)
        return _Found(outcome.value, outcome.failure)

    async def _read_file(self, source: FileSource, *, is_required: bool) -> _Found:
        text, fault = await self._ports.texts.read_file(source.path)
        text = text.strip() if source.trim else text
        if not fault and is_required and not text.strip():
            fault = f"the file {source.path} is empty"
        return _Found(text, fault)

    async def _read_entry(self, source: EntrySource, variables: Mapping[str, Any]) -> _Found:
        places = []
        for template in (source.namespace, source.name):
            text, fault = _render(template, variables, self._now)
            if fault:
                return _Found(None, fault)
            places.append(text)
        namespace, name = places
        return _Found(*await self._ports.texts.read_entry(source.kind, namespace, name, source.key))


def _render(template: TextTemplate, variables: Mapping[str, Any], now: datetime) -> tuple[str, str]:
    text, fault = template.render(variables, now)
    return text, fault.message if fault else ""


def _look_up(variables: Mapping[str, Any], path: tuple[str, ...]) -> _Found:
    """Follow a path through maps. What is absent and what is no map are faults; null at the end is a value."""
    value: Any = variables
    for index, name in enumerate(path):
        if not isinstance(value, Mapping):
            return _Found(None, f"{'.'.join(path[:index])} is no map, so it has no {name}")
        if name not in value:
            return _Found(None, f"{'.'.join(path[: index + 1])} is not there")
        value = value[name]
    return _Found(value)
