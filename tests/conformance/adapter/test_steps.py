"""Params, preconditions and URLs: the rows of `params.yaml`, `preconditions.yaml` and `urls.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hyperfleet.adapter.api_recorded import RecordedApi, load_recording
from hyperfleet.adapter.api_urls import resolve_url
from hyperfleet.adapter.config import AdapterConfig
from hyperfleet.adapter.loading import LoadOptions, load_adapter
from hyperfleet.adapter.params import ParamFailure, ParamPorts, Resolved, resolve_params, starting_variables
from hyperfleet.adapter.preconditions import (
    PreconditionFailed,
    PreconditionNotMet,
    PreconditionsMet,
    ResourceGone,
    check_preconditions,
)
from hyperfleet.adapter.secrets import Secrets, is_secret_name
from hyperfleet.adapter.text_reading import LocalTexts
from tests.conformance.adapter.tables import read_rows

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RESULTS = {
    PreconditionsMet: "met",
    PreconditionNotMet: "not met",
    PreconditionFailed: "failed",
    ResourceGone: "gone",
}


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests in asyncio."""
    return "asyncio"


def load_row(folder: Path, document: Mapping[str, Any], env: Mapping[str, str]) -> AdapterConfig:
    """Load an adapter; JSON is YAML."""
    file = folder / "adapter.yaml"
    file.write_text(msgspec.json.encode(document).decode())
    loaded = load_adapter(file, LoadOptions(env))
    assert loaded.config is not None, [str(each) for each in loaded.problems]
    return loaded.config


def api_of(row: Mapping[str, Any]) -> RecordedApi:
    """Answer as a row says: by path, status and body."""
    responses = [
        {"match": {"urlPattern": f"{path}$"}, "responses": [{"statusCode": status, "body": body}]}
        for path, (status, body) in row.get("api", {}).items()
    ]
    recording = load_recording(msgspec.json.encode({"responses": responses}).decode(), "api.json").recording
    assert recording is not None
    return RecordedApi(recording)


def texts_of(row: Mapping[str, Any]) -> LocalTexts:
    objects = row.get("objects", {})

    async def get_object(kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        found = objects.get(f"{kind}/{namespace}/{name}")
        return None if found is None else {"metadata": {"name": name}, **found}

    return LocalTexts(get_object)


@pytest.mark.anyio
@pytest.mark.parametrize("row", read_rows("params"))
async def test_params(row: dict[str, Any], tmp_path: Path) -> None:
    for name, text in row.get("files", {}).items():
        (tmp_path / name).write_text(text)
    if "large_file" in row:
        (tmp_path / row["large_file"]).write_bytes(b"x" * (1024 * 1024 + 1))
    params = msgspec.json.decode(msgspec.json.encode(row["params"]).replace(b"FOLDER", str(tmp_path).encode()))
    adapter = {"name": "test", "env": row.get("allowed", [])}
    env = row.get("env", {})
    document = {"adapter": adapter, "params": params, "clients": row.get("clients", {})}
    config = load_row(tmp_path, document, env)
    event = row.get("event", {})
    result = await resolve_params(config, event, ParamPorts(api_of(row), texts_of(row), env), NOW)
    resolved = result.resolved if isinstance(result, ParamFailure) else result
    own = {name: value for name, value in resolved.variables.items() if name not in starting_variables(config, {}, {})}
    assert own == row["variables"]
    assert [type(each) for each in own.values()] == [type(each) for each in row["variables"].values()]
    if "secret" in row:
        assert sorted(resolved.secrets.names) == sorted(row["secret"])
    if "failure" in row:
        assert isinstance(result, ParamFailure)
        assert [result.param, row["failure"][1] in result.message] == [row["failure"][0], True], result.message
        assert result.is_gone == row.get("is_gone", False)
    else:
        assert isinstance(result, Resolved)


@pytest.mark.anyio
@pytest.mark.parametrize("row", read_rows("preconditions"))
async def test_preconditions(row: dict[str, Any], tmp_path: Path) -> None:
    variables = row.get("variables", {})
    names = [*variables, *row.get("allow", ())]
    params = [{"name": name, "source": f"event.{name}"} for name in names]
    document = {"adapter": {"name": "test"}, "params": params, "preconditions": row["preconditions"]}
    config = load_row(tmp_path, document, {})
    secrets = Secrets((name, value) for name, value in variables.items() if is_secret_name(name))
    before = Resolved({**starting_variables(config, {}, {}), **variables}, secrets)
    result = await check_preconditions(config, before, api_of(row), NOW)
    reason = getattr(result, "reason", getattr(result, "message", ""))
    assert (RESULTS[type(result)], row.get("reason", "") in reason) == (row["result"], True), reason
    if isinstance(result, PreconditionNotMet):
        assert result.cause == row.get("cause", "condition")
        assert result.name in reason
    added = {name: value for name, value in result.resolved.variables.items() if name not in before.variables}
    if row["result"] == "met":
        assert added == row.get("captured", {})
    if "lines" in row:
        assert [list(line) for line in result.lines] == row["lines"]


@pytest.mark.parametrize("row", read_rows("urls"))
def test_urls(row: dict[str, Any]) -> None:
    found = resolve_url(row["text"], row["base"], row.get("version", "v1"))
    if "fault" in row:
        assert row["fault"] in found.fault
    else:
        assert found == (row["url"], row["own"], "")
