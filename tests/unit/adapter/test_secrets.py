"""Secrets are kept out of texts, in every form in which they may be written."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.adapter.api_recorded import RecordedApi, RecordedFile
from hyperfleet.adapter.loading import LoadOptions, load_adapter
from hyperfleet.adapter.params import ParamFailure, ParamPorts, resolve_params
from hyperfleet.adapter.secrets import MIN_LENGTH, Secrets
from hyperfleet.adapter.text_reading import LocalTexts
from hyperfleet.services.secret_keys import REDACTED
from tests.conformance.adapter.test_steps import NOW

KEY = "-----BEGIN KEY-----\nAAAABBBBCCCCDDDDEEEE\nFFFFGGGGHHHHIIIIJJJJ\n-----END KEY-----\n"


@pytest.mark.parametrize(
    "text",
    [
        "token s3cr3t!é here",
        json.dumps({"a": "s3cr3t!é"}),
        json.dumps({"a": "s3cr3t!é"}, ensure_ascii=False),
        f"?token={quote('s3cr3t!é')}",
        base64.b64encode("s3cr3t!é".encode()).decode(),
    ],
)
def test_a_secret_is_found_in_every_form(text: str) -> None:
    shown = Secrets([("token", "s3cr3t!é")]).redact(text)
    assert "[redacted]" in shown
    assert "s3cr3t" not in shown


def test_a_key_in_an_indented_block_is_found_line_by_line() -> None:
    block = "data: |\n" + "".join(f"    {line}\n" for line in KEY.splitlines())
    assert "AAAABBBB" not in Secrets([("key", KEY)]).redact(block)
    assert "FFFFGGGG" not in Secrets([("key", KEY)]).redact(block)


def test_variables_are_hidden_by_name_whatever_they_are() -> None:
    secrets = Secrets([("pin", 12), ("map", {"a": ["hunter2"]})])
    shown = secrets.redact_variables({"pin": 12, "map": {"a": ["hunter2"]}, "copy": "x hunter2", "n": 12})
    assert shown == {"pin": "[redacted]", "map": "[redacted]", "copy": "x [redacted]", "n": 12}
    assert repr(secrets) == "<2 secrets>"


def test_a_longer_secret_is_replaced_before_a_part_of_it() -> None:
    secrets = Secrets([("a", "hunter2"), ("b", "hunter2-and-more")])
    assert secrets.redact("hunter2-and-more, hunter2") == "[redacted], [redacted]"


@given(st.text(min_size=MIN_LENGTH, max_size=30), st.text(max_size=20), st.text(max_size=20))
def test_no_secret_stays_in_a_text(value: str, before: str, after: str) -> None:
    shown = Secrets([("x", value)]).redact(f"{before}{value}{after}")
    assert all(value not in part for part in shown.split(REDACTED))


@pytest.mark.anyio
async def test_the_message_of_a_failure_has_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        msgspec.json.encode(
            {
                "adapter": {"name": "a"},
                "params": [
                    {"name": "dbPassword", "source": "event.password"},
                    {
                        "name": "x",
                        "required": True,
                        "source": {"api_call": {"method": "GET", "url": "ftp://{{ .dbPassword }}/x"}},
                    },
                ],
            }
        ).decode()
    )
    config = load_adapter(file, LoadOptions()).config
    assert config is not None
    ports = ParamPorts(RecordedApi(RecordedFile()), LocalTexts(), {})
    failure = await resolve_params(config, {"password": "hunter2"}, ports, NOW)
    assert isinstance(failure, ParamFailure)
    assert "hunter2" not in str(failure)
    assert str(failure).startswith("param x: ")
