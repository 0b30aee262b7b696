"""The commands of the guides (API, history, watching, simulation), sent one after the other to a fresh server."""

from __future__ import annotations

import json
import re
import shlex
from datetime import timedelta
from typing import Any

import httpx

from docs import generate
from hyperfleet.api.wire import BASE
from hyperfleet.events.making import Origin, messages_of
from hyperfleet.ports import ChangeQuery
from tests.api.fleet import ROOT, Fleet
from tests.api.listening import Connection

GUIDE = generate.API_GUIDE.read_text()
HISTORY_GUIDE = generate.API_GUIDE.with_name("history.md").read_text()
WATCH_GUIDE = generate.API_GUIDE.with_name("watch.md").read_text()
EVENT_GUIDE = generate.EVENT_GUIDE.read_text()
SIMULATION_GUIDE = generate.API_GUIDE.with_name("simulate.md").read_text()
COMMAND = re.compile(r"^\$ curl (.*?)\n# (\d+)$", re.DOTALL | re.MULTILINE)


def test_the_commands_are_answered_as_told(memory_client: Fleet) -> None:
    expected, real = shown_in(GUIDE), send_commands(memory_client, GUIDE).json()
    assert real.keys() == expected.keys()
    assert {**real, "requestId": "…", "errors": [{**each, "message": "…"} for each in real["errors"]]} == expected


def test_the_commands_of_the_history_guide_are_answered_as_told(memory_client: Fleet) -> None:
    real = send_commands(memory_client, HISTORY_GUIDE).json()
    (group,) = real["items"]
    for told, keys in ((group, ("since", "newest")), (group["resources"][0], ("id", "href", "since"))):
        assert all(told[key] for key in keys)
        told.update(dict.fromkeys(keys, "…"))
    assert real == shown_in(section(HISTORY_GUIDE, "What else has the same cause?"))


def test_transitions_look_as_the_history_guide_shows(memory_client: Fleet) -> None:
    told = section(HISTORY_GUIDE, "What changed anywhere?")
    send_commands(memory_client, HISTORY_GUIDE.partition("## Why does it have this status?")[0])
    real = memory_client.get("/transitions?subject=phase&movedTo=Failed").json()
    assert fits_words(real, shown_in(told)), real


def section(guide: str, title: str) -> str:
    """Return one section of a guide."""
    return guide.partition(f"## {title}")[2].partition("\n## ")[0]


def test_the_commands_of_the_guide_to_simulation_are_answered_as_told(memory_client: Fleet) -> None:
    first, rest = SIMULATION_GUIDE.split("```json", 1)
    real = send_commands(memory_client, first).json()
    (change,) = real["changes"]
    for told, keys in ((real, ("policy",)), (change, ("id", "href"))):
        assert all(told[key] for key in keys)
        told.update(dict.fromkeys(keys, "…"))
    assert real == shown_in(SIMULATION_GUIDE)
    send_commands(memory_client, rest)


def test_the_commands_of_the_guide_to_watching_are_answered_as_told(memory_client: Fleet) -> None:
    problem = send_commands(memory_client, WATCH_GUIDE).json()
    shown = shown_in(WATCH_GUIDE)
    assert problem.keys() == shown.keys()
    for name, value in shown.items():
        assert fits_words(problem[name], value), (name, problem[name])


def test_the_commands_of_the_guide_to_events_are_answered_as_told(memory_client: Fleet) -> None:
    subscribing, pulling = EVENT_GUIDE.split("Pull: ", 1)
    pulling, answering = pulling.split("```json", 1)
    send_commands(memory_client, subscribing)
    publish_log(memory_client)
    assert fits_words(send_commands(memory_client, pulling).json(), shown_in(EVENT_GUIDE))
    assert send_commands(memory_client, answering).json() == {"replayed": 0}
    assert memory_client.get("/subscriptions/dns").json()["inFlight"] == 0


def publish_log(client: Fleet) -> None:
    """Publish every change, as the relay does."""
    origin = Origin("memory", lambda kind, id_, parent: f"{BASE}/clusters/{id_}", lambda kind: None)
    page = client.run(client.store.read_changes(ChangeQuery(after=0)))
    messages = [message for change in page.changes for message in messages_of(change, origin)]
    client.run(client.store.queues.enqueue(messages))


def test_the_questions_of_the_quick_start_are_answered(memory_client: Fleet) -> None:
    page = (generate.API_GUIDE.parent / "quickstart.md").read_text()
    questions = re.findall(r"`GET (/v1/\S+)`", page)
    assert len(questions) >= 11
    cluster = memory_client.create("payments")
    memory_client.clock.pass_time(timedelta(hours=2))
    for adapter in ("validation", "dns"):
        memory_client.report(cluster, adapter, "True")
    for question in questions:
        if "watch=true" in question:
            with Connection(memory_client, question.removeprefix("/v1")) as stream:
                assert [heard.event for heard in stream.take_list()] == ["added", "synced"]
        else:
            answer = memory_client.get(ROOT + question.replace("{id}", cluster["id"]))
            assert answer.status_code == 200, (question, answer.text)


def fits_words(real: object, shown: object) -> bool:
    """Tell whether an answer is the one that is shown; … stands for anything."""
    if isinstance(shown, list) and isinstance(real, list):
        return len(real) == len(shown) and all(map(fits_words, real, shown))
    if isinstance(shown, dict) and isinstance(real, dict):
        return real.keys() == shown.keys() and all(fits_words(real[key], value) for key, value in shown.items())
    return re.fullmatch(re.escape(str(shown)).replace("…", ".*"), str(real)) is not None


def test_the_guide_shows_a_real_watch(memory_client: Fleet) -> None:
    shown = re.search(r"watch=true&(fields=\S+)'\n\n(.*?)^```$", WATCH_GUIDE, re.DOTALL | re.MULTILINE)
    assert shown
    cluster = memory_client.create("payments")
    with Connection(memory_client, f"/clusters?watch=true&{shown[1]}") as stream:
        stream.take_list()
        memory_client.report(cluster, "dns", "False/Broken")
        stream.take(1)
        told = stream.body.decode().removeprefix(":\n\n").replace(cluster["id"], "cls-…")
    assert told == f"{shown[2]}\n"


def shown_in(guide: str) -> dict[str, Any]:
    """Return the one answer that a guide shows: the last."""
    (shown,) = re.findall(r"^```json\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)
    return dict(json.loads(shown))


def send_commands(client: Fleet, guide: str) -> httpx.Response:
    """Send every command of a guide, which must be answered as it says; return the last answer."""
    ids: dict[str, str] = {}
    answer = None
    for command, status in COMMAND.findall(guide):
        for prefix, id_ in ids.items():
            command = command.replace(f"{prefix}-…", id_)  # noqa: PLW2901  # ids are known when they are made
        words = shlex.split(command.replace("\\\n", ""))
        options: dict[str, list[str]] = {"-X": [], "-H": [], "-d": []}
        (url,) = _take_options(words, options)
        answer = client.request(
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
    return answer


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
