"""The commands of docs/api.md, sent one after the other to a fresh server."""

from __future__ import annotations

import json
import re
import shlex

from docs import generate
from tests.api.fleet import ROOT, Fleet

GUIDE = generate.API_GUIDE.read_text()
COMMAND = re.compile(r"^\$ curl (.*?)\n# (\d+)$", re.DOTALL | re.MULTILINE)


def test_the_commands_are_answered_as_told(memory_client: Fleet) -> None:
    ids: dict[str, str] = {}
    answer = None
    for command, status in COMMAND.findall(GUIDE):
        for prefix, id_ in ids.items():
            command = command.replace(f"{prefix}-…", id_)  # noqa: PLW2901  # ids are known when they are made
        words = shlex.split(command.replace("\\\n", ""))
        options: dict[str, list[str]] = {"-X": [], "-H": [], "-d": []}
        (url,) = _take_options(words, options)
        answer = memory_client.request(
            (options["-X"] or ["GET"])[0],
            url.replace("localhost:8000", ROOT),
            headers=dict(header.split(": ") for header in options["-H"]),
            content="".join(options["-d"]).encode(),
        )
        assert answer.status_code == int(status), (command, answer.text)
        if answer.status_code == 201 and "location" in answer.headers:
            id_ = answer.json()["id"]
            ids.setdefault(id_.partition("-")[0], id_)
    assert answer is not None
    (shown,) = re.findall(r"^```json\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    expected, real = json.loads(shown), answer.json()
    assert real.keys() == expected.keys()
    assert {**real, "requestId": "…", "errors": [{**each, "message": "…"} for each in real["errors"]]} == expected


def _take_options(words: list[str], options: dict[str, list[str]]) -> list[str]:
    """Sort the words of a command into its options; return the others."""
    others, rest = [], iter(words)
    for word in rest:
        if word in options:
            options[word].append(next(rest))
        else:
            others.append(word)
    return others


def test_the_catalogue_is_current() -> None:
    assert generate.api_guide_text() == GUIDE, "run `make docs`"
