"""What the demo suggests to try: questions in the order in which somebody who was woken up would ask them.

Each comes as a command of ours and as one for curl. Tests run all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from hyperfleet.simulator.chance import Chance
from hyperfleet.simulator.fleet import wish_for_cluster
from hyperfleet.simulator.stories import PARTS

_WIDTH: Final = 27  # of the names in the list of who is who


class Question(Struct, frozen=True):
    """A question, and two ways to ask it; {names} in braces are those of clusters by their part in the show."""

    text: str
    command: str
    curl: str


QUESTIONS: Final = (
    Question("What is there?", "get clusters", "'{api}/clusters?fields=name,status.phase'"),
    Question(
        "What is broken?",
        "get clusters --where Ready!=True",
        "'{api}/clusters?conditions=Ready!=True&orderBy=severity&fields=name,status.phase'",
    ),
    Question("What has the same cause?", "problems", "'{api}/problems'"),
    Question(
        "Why is it broken, and what would help?",
        "explain cluster {failing}",
        "-H 'Accept: text/plain' '{api}/clusters/{failing_id}:explain'",
    ),
    Question("Everything about it, please.", "describe cluster {failing}", "'{api}/clusters/{failing_id}/statuses'"),
    Question("Since when?", "history cluster {failing}", "'{api}/clusters/{failing_id}/history?subject=phase,Ready'"),
    Question("Who reports, who is in the way?", "top", "'{api}/adapters'"),
    Question(
        "How was it an hour ago?",
        "get cluster {failing} --at 1h",
        "'{api}/clusters/{failing_id}?at=1h&fields=name,status.phase'",
    ),
    Question(
        "What has changed since?",
        "diff cluster {failing} --from 1h",
        "-H 'Accept: text/plain' '{api}/clusters/{failing_id}:diff?from=1h'",
    ),
    Question(
        "What cannot make up its mind?",
        "get clusters --flapping",
        "'{api}/clusters?flapping=any&fields=name,status.phaseFlapping'",
    ),
    Question(
        "Tell me when it is ready, or why it will not be.",
        "wait cluster {arriving} --for condition=Ready --timeout 5m",
        "'{api}/clusters/{arriving_id}:wait?for=condition=Ready&failOn=phase=Failed&timeout=5m'",
    ),
    Question(
        "Tell me whatever happens.",
        "watch clusters",
        "--no-buffer '{api}/clusters?watch=true&fields=name,status.phase'",
    ),
    Question(
        "What would change if nobody had to wait for hypershift?",
        "rules simulate -f {policy}",
        "-X POST '{api}/policy:simulate' -H 'Content-Type: application/yaml' --data-binary @{policy}",
    ),
)


def name_parts(seed: int, clusters: int) -> dict[str, str]:
    """Return the name of the first cluster that has each part."""
    names: dict[str, str] = {}
    for number, part in enumerate(PARTS[:clusters]):
        names.setdefault(part.name, wish_for_cluster(Chance(seed, f"cluster-{number}").of("wish"), number).name)
    return names


def describe_parts(names: dict[str, str]) -> Iterator[str]:
    """Say who is who."""
    told = {part.name: part.tells for part in reversed(PARTS)}
    for part, name in names.items():
        yield f"  {name:<{_WIDTH}} {told[part]}"


def ask(question: Question, program: str, values: dict[str, str], *, with_curl: bool) -> str:
    """Write a question as a command to paste."""
    if with_curl:
        return f"curl {question.curl.format_map(values)}"
    return f"{program} {question.command.format_map(values)}"


def is_answerable(question: Question, values: dict[str, str]) -> bool:
    """Tell whether everybody whom a question is about is there: a small fleet does not have all parts."""
    try:
        question.command.format_map(values)
        question.curl.format_map(values)
    except KeyError:
        return False
    return True
