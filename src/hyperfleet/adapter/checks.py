"""Checks of an adapter file that need more than one text: the version of the API, the environment, a health rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import UNSET

from hyperfleet.adapter.compiling.connections import KNOWN_VERSIONS, unknown_version
from hyperfleet.adapter.config import AdapterConfig, StatusBuild, StatusCondition
from hyperfleet.adapter.documents.params import ParamPart
from hyperfleet.adapter.expressions import evaluate_alone
from hyperfleet.document_problem import DocumentProblem, Level
from hyperfleet.documents import Places, good_items

_VERSION_PARAM: Final = "hyperfleetApiVersion"
_ENV: Final = "env."
_ANY_TIME: Final = datetime(2026, 1, 1, tzinfo=UTC)  # health rules do not read the clock


def check_environment(
    params: tuple[ParamPart, ...], places: Places, env: Mapping[str, str], level: Level
) -> Iterator[DocumentProblem]:
    """Yield the required variables that are not set; without a default every event would fail."""
    for index, part in good_items(params):
        name = _env_name(part)
        if name and part.required and part.default is UNSET and name not in env:
            message = f"the variable {name} is not set, and the param {part.name} is required and has no default"
            yield DocumentProblem(places.value(f"/params/{index}/source"), message, "MissingVariable", level)


def check_api_version(
    params: tuple[ParamPart, ...], places: Places, env: Mapping[str, str]
) -> Iterator[DocumentProblem]:
    """Yield a problem for a version of the API that does not exist, in the environment or as a default."""
    for index, part in good_items(params):
        if part.name != _VERSION_PARAM:
            continue
        values = {"source": env.get(_env_name(part)), "default": None if part.default is UNSET else part.default}
        for key, value in values.items():
            if value not in (None, "", *KNOWN_VERSIONS):
                place = places.value(f"/params/{index}/{key}")
                yield DocumentProblem(place, unknown_version(str(value)), "UnknownApiVersion")


def _env_name(part: ParamPart) -> str:
    source = part.source if isinstance(part.source, str) else ""
    return source[len(_ENV) :] if source.startswith(_ENV) else ""


# ── a health rule that fails during every roll-out ───────────────────────────────────────────────────────────────────

_COMPLETE: Final = {
    "metadata": {"name": "x", "namespace": "x", "generation": 2},
    "status": {
        "phase": "Active",
        "observedGeneration": 2,
        "replicas": 2,
        "readyReplicas": 2,
        "updatedReplicas": 2,
        "availableReplicas": 2,
        "conditions": [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        ],
    },
}
# What a Deployment says of itself while nothing is wrong: one replica of three is being replaced.
_ROLLING: Final = {
    "metadata": {"name": "x", "namespace": "x", "generation": 2},
    "status": {
        "phase": "Active",
        "observedGeneration": 2,
        "replicas": 3,
        "readyReplicas": 2,
        "updatedReplicas": 1,
        "availableReplicas": 2,
        "unavailableReplicas": 1,
        "conditions": [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
            {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"},
        ],
    },
}


def check_health(config: AdapterConfig, places: Places) -> Iterator[DocumentProblem]:
    """Yield a warning for a health rule that is false while a Deployment rolls out, as the contract's own is."""
    statuses = [each for each in config.payloads if isinstance(each.build, StatusBuild)]
    for index, payload in enumerate(statuses):
        for condition in payload.build.conditions if isinstance(payload.build, StatusBuild) else ():
            if condition.type == "Health" and _fails_while_rolling(condition, config):
                pointer = f"/post/parameters/{index}/build/conditions/health/status/expression"
                message = (
                    "health is false while a Deployment rolls out, though nothing is wrong: "
                    "leave unavailable replicas to the condition available"
                )
                yield DocumentProblem(places.value(pointer), message, "HealthFalseWhileProgressing", "warning")


def _fails_while_rolling(condition: StatusCondition, config: AdapterConfig) -> bool:
    return _evaluate(condition, config, _COMPLETE) is True and _evaluate(condition, config, _ROLLING) is False


def _evaluate(condition: StatusCondition, config: AdapterConfig, observed: Mapping[str, Any]) -> Any:
    names = [*(each.name for each in config.resources), *(each.name for each in config.tracked)]
    objects = dict.fromkeys(names, observed)
    variables = {"resources": objects, "externalResources": objects}
    return evaluate_alone(condition.status, config.environment, variables, _ANY_TIME).value
