"""`hyperfleet sentinel`: its page is true, and rules of files lead to events."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from hyperfleet.sentinel.rule_file import load_rules
from hyperfleet.services.look_planning import find_problems
from tests.unit.cli.scene import Scene
from tests.unit.cli.terminal import Terminal

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/sentinel.md").read_text()
CONSOLE = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```", re.DOTALL | re.MULTILINE)
YAML = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)
CURL = re.compile(r"^\$ curl -s '?localhost:8000/v1(\S+?)'?\n# (\d+)$", re.MULTILINE)


def events_of(terminal: Terminal) -> list[dict[str, Any]]:
    """Return the events that wait for the adapter dns."""
    answer = terminal.server.post("/subscriptions/dns:pull", {"max": 100}).json()
    return [each["event"] for each in answer["messages"]]


def test_the_commands_of_the_page_write_what_it_shows(terminal: Terminal, scene: Scene) -> None:
    shown = CONSOLE.findall(PAGE)
    assert len(shown) == 3
    for command, expected in shown:
        done = terminal.run(*shlex.split(command)[1:])
        assert (done.code, done.out) == (0, expected), command


def test_the_requests_of_the_page_are_answered(terminal: Terminal, scene: Scene) -> None:
    requests = CURL.findall(PAGE)
    assert len(requests) == 2
    for path, status in requests:
        assert terminal.server.get(path).status_code == int(status)


def test_the_rules_of_the_page_are_those_of_the_example() -> None:
    (shown,) = YAML.findall(PAGE)
    written = (ROOT / "examples/sentinel/rules.yaml").read_text()
    of_page, of_file = (load_rules(text, "x.yaml", find_problems) for text in (shown, written))
    assert of_page.problems == of_file.problems == ()
    assert of_page.rules is not None
    assert of_file.rules is not None
    assert of_page.rules.rules == of_file.rules.rules


@pytest.mark.parametrize(
    ("file", "count", "reason"),
    [("rules.yaml", 4, "failed"), ("go.yaml", 1, "message-decision")],
)
def test_rules_of_a_file_are_followed(terminal: Terminal, scene: Scene, file: str, count: int, reason: str) -> None:
    terminal.server.put("/subscriptions/dns", {})
    done = terminal.run("sentinel", "-f", str(ROOT / "examples/sentinel" / file), "--once", "--name", "mine")
    assert done.code == 0, done.err
    assert f"asked for {count}" in done.err
    events = events_of(terminal)
    assert len(events) == count
    assert {event["source"].rpartition("/")[2] for event in events} == {"mine"}
    payments = scene.clusters["payments"]["id"]
    (event,) = [each for each in events if each["data"]["id"] == payments]
    assert event["data"]["reason"] == reason
    assert terminal.server.get("/sentinels").json()["items"] == [], "it has left"


def test_without_a_file_the_server_s_rules_are_followed_and_shared(terminal: Terminal, scene: Scene) -> None:
    terminal.server.put("/subscriptions/dns", {})
    terminal.server.request("PUT", "/sentinels/default/members/other")
    done = terminal.run("sentinel", "--once")
    assert done.code == 0, done.err
    looked = len(done.out.splitlines())
    assert len(events_of(terminal)) == looked
    rest = terminal.run("sentinel", "--dry-run", "--no-headers").out.splitlines()
    assert len(rest) == 4 - looked, "it belongs to the other member"


def test_every_problem_of_a_file_is_named(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("rules:\n- {name: a, state: ready, when: 'resource.x ==', after: 1s}\n- {name: A, state: no}\n")
    done = terminal.run("sentinel", "-f", str(file))
    assert done.code == 2
    for place in ("rules.yaml:2", "rules.yaml:3"):
        assert place in done.err
    assert done.err.count("Error:") >= 4


def test_a_dry_run_publishes_nothing(terminal: Terminal, scene: Scene) -> None:
    terminal.server.put("/subscriptions/dns", {})
    for more in (
        (),
        ("-f", str(ROOT / "examples/sentinel/rules.yaml")),
        ("-f", str(ROOT / "examples/sentinel/go.yaml")),
    ):
        before = terminal.run("sentinel", "--dry-run", *more)
        assert terminal.run("sentinel", "--dry-run", *more).out == before.out
    assert events_of(terminal) == []
    assert terminal.server.get("/sentinels").json()["items"] == []
