"""What the demo suggests to try: questions in the order an on-call engineer would ask them.

Each has a hyperfleet command and a curl command. Tests run all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from hyperfleet.simulator.fleet import desired_cluster
from hyperfleet.simulator.lifecycles import DEMO_ROLES
from hyperfleet.simulator.randomness import RandomStream

_WIDTH: Final = 27  # of the names in the list of clusters


class TourQuestion(Struct, frozen=True):
    """A question and two commands that answer it; {name} stands for the cluster with that demo role."""

    text: str
    command: str
    curl: str


QUESTIONS: Final = (
    TourQuestion("What is there?", "get clusters", "'{api}/clusters?fields=name,status.phase'"),
    TourQuestion(
        "What is broken?",
        "get clusters --where Ready!=True",
        "'{api}/clusters?conditions=Ready!=True&orderBy=severity&fields=name,status.phase'",
    ),
    TourQuestion("What has the same cause?", "problems", "'{api}/problems'"),
    TourQuestion(
        "Why is it broken, and what would help?",
        "explain cluster {failing}",
        "-H 'Accept: text/plain' '{api}/clusters/{failing_id}:explain'",
    ),
    TourQuestion(
        "Show me everything about it.", "describe cluster {failing}", "'{api}/clusters/{failing_id}/statuses'"
    ),
    TourQuestion(
        "Since when?", "history cluster {failing}", "'{api}/clusters/{failing_id}/history?subject=phase,Ready'"
    ),
    TourQuestion("Which adapters report, and which ones block?", "top", "'{api}/adapters'"),
    TourQuestion(
        "What was its state an hour ago?",
        "get cluster {failing} --at 1h",
        "'{api}/clusters/{failing_id}?at=1h&fields=name,status.phase'",
    ),
    TourQuestion(
        "What has changed since?",
        "diff cluster {failing} --from 1h",
        "-H 'Accept: text/plain' '{api}/clusters/{failing_id}:diff?from=1h'",
    ),
    TourQuestion(
        "Which clusters are flapping?",
        "get clusters --flapping",
        "'{api}/clusters?flapping=any&fields=name,status.phaseFlapping'",
    ),
    TourQuestion(
        "Tell me when it is ready, or why it will not be.",
        "wait cluster {provisioning} --for condition=Ready --timeout 5m",
        "'{api}/clusters/{provisioning_id}:wait?for=condition=Ready&failOn=phase=Failed&timeout=5m'",
    ),
    TourQuestion(
        "Show every change as it happens.",
        "watch clusters",
        "--no-buffer '{api}/clusters?watch=true&fields=name,status.phase'",
    ),
    TourQuestion(
        "What are adapters told, as it happens?",
        "pubsub listen",
        "-X PUT '{api}/subscriptions/tour' -H 'Content-Type: application/json' -d '{{}}'",
    ),
    TourQuestion(
        "What would change if hypershift were not required?",
        "rules simulate -f {policy}",
        "-X POST '{api}/policy:simulate' -H 'Content-Type: application/yaml' --data-binary @{policy}",
    ),
)


def name_roles(seed: int, clusters: int) -> dict[str, str]:
    """Return the name of the first cluster of each role."""
    names: dict[str, str] = {}
    for number, role in enumerate(DEMO_ROLES[:clusters]):
        random = RandomStream(seed, f"cluster-{number}").derive("wish")
        names.setdefault(role.name, desired_cluster(random, number).name)
    return names


def describe_roles(names: dict[str, str]) -> Iterator[str]:
    """Describe each of these clusters."""
    summaries = {role.name: role.summary for role in reversed(DEMO_ROLES)}
    for role, name in names.items():
        yield f"  {name:<{_WIDTH}} {summaries[role]}"


def format_command(question: TourQuestion, program: str, values: dict[str, str], *, with_curl: bool) -> str:
    """Return the command that answers a question, ready to paste."""
    if with_curl:
        return f"curl {question.curl.format_map(values)}"
    return f"{program} {question.command.format_map(values)}"


def is_answerable(question: TourQuestion, values: dict[str, str]) -> bool:
    """Return whether the clusters of a question exist: a small fleet does not have all roles."""
    try:
        question.command.format_map(values)
        question.curl.format_map(values)
    except KeyError:
        return False
    return True
