"""Output of live commands: `get -w`, `watch`, `events` and the views that are redrawn."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from hyperfleet.cli import run
from hyperfleet.cli.session import CliSession
from hyperfleet.documents import read
from tests.unit.cli.scene import Scene
from tests.unit.cli.terminal import Step, Terminal, nothing


def recover(scene: Scene, name: str = "ledger") -> None:
    """Let dns succeed."""
    scene.report(name, "dns", "True/Done/5 records created")


def test_a_watch_writes_the_list_and_then_every_change(terminal: Terminal, scene: Scene) -> None:
    done = terminal.run("get", "cl", "-w", then=[("synced", lambda: recover(scene)), ("modified", nothing)])
    assert (done.code, done.err) == (130, "\n")
    assert done.out == (
        "NAME       PHASE          READY   AVAILABLE   ADAPTERS   REASON            SINCE   AGE\n"
        "ledger     Failed         False   False       0/1        AdaptersFailed    66s     124m\n"
        "payments   Failed         False   False       1/2        AdaptersFailed    66s     124m\n"
        "search     Provisioning   False   False       1/2        AdaptersMissing   66s     66s\n"
        "shop       Ready          True    True        4/4        <none>            4m6s    4m6s\n"
        "ledger     Provisioning   False   False       1/1        AdaptersMissing   0s      124m\n"
    )


def test_a_resource_that_leaves_shows_it_instead_of_its_phase(terminal: Terminal, scene: Scene) -> None:
    arguments = ("get", "cl", "--phase", "Failed", "-w", "--output-watch-events", "--no-headers")
    done = terminal.run(*arguments, then=[("synced", lambda: recover(scene)), ("deleted", nothing)])
    assert done.out == (
        "ADDED      ledger     Failed   False   False   0/1   AdaptersFailed   66s   124m\n"
        "ADDED      payments   Failed   False   False   1/2   AdaptersFailed   66s   124m\n"
        "DELETED    ledger     Provisioning (no longer matches)   False   False   1/1   AdaptersMissing   0s    124m\n"
    )


def test_a_removed_cluster_is_shown(terminal: Terminal, scene: Scene) -> None:
    def remove() -> None:
        path = f"/clusters/{scene.clusters['search']['id']}"
        terminal.server.delete(path)
        terminal.server.post(f"{path}/force-delete", {"reason": "test"})

    done = terminal.run(
        "get", "cl", "-w", "--watch-only", "-o", "name", then=[("synced", remove), ("event: deleted", nothing)]
    )
    assert done.out == "cluster/search\ncluster/search\n", "marked, then gone"


def test_a_watch_of_one_ends_when_it_is_gone(terminal: Terminal, scene: Scene) -> None:
    def remove() -> None:
        path = f"/clusters/{scene.clusters['search']['id']}"
        terminal.server.delete(path)
        terminal.server.post(f"{path}/force-delete", {"reason": "test"})

    done = terminal.run("get", "cluster", "search", "-w", then=[("synced", remove), ("what never comes", nothing)])
    assert done.code == 0
    assert [line.split()[1] for line in done.out.splitlines()] == ["PHASE", "Provisioning", "Deleting", "Removed"]


def test_documents_of_a_watch_follow_each_other(terminal: Terminal, scene: Scene) -> None:
    arguments = ("watch", "cl", "-l", "env=test", "--output-watch-events", "-o", "json")
    done = terminal.run(*arguments, then=[("synced", lambda: recover(scene)), ("modified", nothing)])
    decoder, text, found = json.JSONDecoder(), done.out, []
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        found.append((document["type"], document["object"]["name"]))
        text = text[end:]
    assert found == [("ADDED", "ledger"), ("ADDED", "search"), ("MODIFIED", "ledger")]


@pytest.mark.parametrize(
    "line", ["get cluster ledger -w", "events cluster ledger", "describe ledger -w", "progress ledger -w", "top -w"]
)
def test_yaml_documents_are_separated(terminal: Terminal, scene: Scene, line: str) -> None:
    steps: list[Step] = [("synced", lambda: recover(scene)), ("modified", nothing)]
    done = terminal.run(*line.split(), "-o", "yaml", then=steps)
    documents = read(done.out, "stdout")
    assert not documents.problems
    assert len(documents.documents) == (1 if line.startswith("events") else 2)


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("watch cluster/ledger -o jsonpath={.name}:{.status.phase}", ["ledger:Failed", "ledger:Provisioning"]),
        (
            "watch cluster/ledger -o custom-columns=NAME:.name,PHASE:.status.phase",
            ["NAME     PHASE", "ledger   Failed", "ledger   Provisioning"],
        ),
        (
            "get cluster ledger -w --output-watch-events -o custom-columns=PHASE:.status.phase",
            ["EVENT      PHASE", "ADDED      Failed", "MODIFIED   Provisioning"],
        ),
        ("events cluster ledger -o jsonpath={.event}:{.object.status.phase}", ["modified:Provisioning"]),
    ],
)
def test_custom_columns_are_watched(terminal: Terminal, scene: Scene, line: str, written: list[str]) -> None:
    done = terminal.run(*line.split(), then=[("synced", lambda: recover(scene)), ("modified", nothing)])
    assert (done.code, done.out.splitlines(), done.err) == (130, written, "\n")


def test_wide_tables_are_watched(terminal: Terminal, scene: Scene) -> None:
    line = ("watch", "cluster/ledger", "-o", "wide")
    done = terminal.run(*line, then=[("synced", lambda: recover(scene)), ("modified", nothing)])
    heads, *rows = done.out.splitlines()
    assert heads.split()[-3:] == ["GENERATION", "ID", "MESSAGE"]
    assert [" cls-0002   " in row for row in rows] == [True, True]


def test_one_resource_is_watched_by_name(terminal: Terminal, scene: Scene) -> None:
    done = terminal.run("watch", "cluster/ledger", then=[("synced", lambda: recover(scene)), ("modified", nothing)])
    assert [line.split()[:2] for line in done.out.splitlines()[1:]] == [
        ["ledger", "Failed"],
        ["ledger", "Provisioning"],
    ]


def test_adapters_are_watched(terminal: Terminal, scene: Scene) -> None:
    done = terminal.run("get", "adapters", "-w", then=[("synced", nothing)])
    assert [line.split()[0] for line in done.out.splitlines()][:3] == ["NAME", "dns", "hypershift"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("get", "all", "-w"), "only one kind or one resource"),
        (("get", "cl", "-w", "--limit", "3"), "--watch and --limit cannot be combined"),
        (("get", "cl", "-w", "--sort-by", "name"), "--watch and --sort-by cannot be combined"),
        (("watch", "cl", "--updated-since", "5m"), "--updated-since is for lists"),
        (("watch", "cluster", "nope"), 'there is no cluster with the name or id "nope"'),
        (("events", "adapters"), '"adapters" is not a kind of resource here'),
        (("events", "--after", "3", "--bookmark", "file"), "--after and --bookmark cannot be combined"),
        (("describe", "adapter", "dns", "-w"), "--watch is not for adapters"),
        (("describe", "adapter"), "name one adapter"),
    ],
)
def test_invalid_watches_are_refused_at_once(terminal: Terminal, arguments: tuple[str, ...], said: str) -> None:
    done = terminal.run(*arguments)
    assert done.code in (2, 4)
    assert said in done.err


def test_a_watch_on_a_terminal_is_redrawn_in_place_worst_first(terminal: Terminal, scene: Scene) -> None:
    terminal.width, terminal.environment["NO_COLOR"] = 100, "1"
    done = terminal.run("watch", then=[("synced", lambda: recover(scene)), ("modified", nothing)])
    assert done.code == 130
    last = done.out[done.out.rindex("NAME") :].split()
    assert last.index("payments") < last.index("ledger") < last.index("shop")


# ── the log ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_log_shows_what_changed(terminal: Terminal, scene: Scene) -> None:
    done = terminal.run("events", then=[("synced", lambda: recover(scene)), ("modified", nothing)])
    assert done.out == (
        "2025-10-17T14:04:06Z  22  MODIFIED  cluster/ledger  "
        "phase Failed → Provisioning; AdaptersFailed True → False; dns Failed → Completed\n"
    )


def test_the_log_resumes_after_a_position(terminal: Terminal, scene: Scene) -> None:
    done = terminal.run("events", "cluster", "search", "--after", "9", then=[("Running", nothing)])
    positions = [line.split()[1] for line in done.out.splitlines()]
    assert positions == sorted(positions, key=int)
    assert positions[0] == "10"


def test_a_bookmark_keeps_the_position(terminal: Terminal, scene: Scene, tmp_path: Path) -> None:
    file = tmp_path / "position"
    arguments = ("events", "--bookmark", str(file), "-o", "json")
    first = terminal.run(*arguments, then=[("synced", lambda: recover(scene)), ("modified", nothing)])
    (event,) = map(json.loads, first.out.splitlines())
    assert (event["event"], event["object"]["name"]) == ("modified", "ledger")
    assert file.read_text() == f"{event['position']}\n"
    recover(scene, "payments")
    again = terminal.run(*arguments, then=[("modified", nothing)])
    assert [json.loads(line)["object"]["name"] for line in again.out.splitlines()] == ["payments"]


def test_a_bookmark_is_kept_before_anything_happens(terminal: Terminal, scene: Scene, tmp_path: Path) -> None:
    arguments = ("events", "--bookmark", str(tmp_path / "position"))
    assert terminal.run(*arguments, then=[("synced", nothing)]).out == ""
    recover(scene)
    again = terminal.run(*arguments, then=[("modified", nothing)])
    assert [line.split()[3] for line in again.out.splitlines()] == ["cluster/ledger"]


def test_an_invalid_bookmark_is_reported(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "position").write_text("here")
    done = terminal.run("events", "--bookmark", str(tmp_path / "position"))
    assert (done.code, "does not contain a position" in done.err) == (2, True)


def test_a_gap_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        match request.headers.get("last-event-id"):
            case "3":
                forgotten = {"code": "Forgotten", "status": 410, "title": "Gone", "detail": "pruned"}
                return httpx.Response(410, json=forgotten)
            case None if "watch" in request.url.params:
                stream = (
                    'event: added\ndata: {"id": "cls-1", "name": "old"}\n\nevent: synced\nid: 5\ndata: {}\n\n'
                    'event: added\nid: 6\ndata: {"id": "cls-2", "name": "new"}\n\n'
                )
                return httpx.Response(200, text=stream, headers={"content-type": "text/event-stream"})
            case None:
                return httpx.Response(200, json={"status": "alive"})
        raise KeyboardInterrupt

    environment = {"HYPERFLEET_SERVER": "http://127.0.0.1:8000"}
    code = run(["events", "--after", "3"], CliSession(environment, transport=httpx.MockTransport(answer)))
    out, err = capsys.readouterr()
    assert code == 130
    assert out.split()[1:] == ["6", "ADDED", "cluster/new"], "what was there already is no event"
    assert err.startswith("Warning: the server no longer keeps")


def part(id_: str, kind: str = "added", position: int | None = None) -> str:
    """Write an event of a stream."""
    number = f"id: {position}\n" if position else ""
    return f'event: {kind}\n{number}data: {{"id": "{id_}", "name": "{id_}"}}\n\n'


class Forgetful(httpx.BaseTransport):
    """A server that ends every watch, and forgets what was; somebody presses Ctrl-C when nothing is left to tell."""

    def __init__(self, *streams: str) -> None:
        self._streams = list(streams)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a watch with the next stream, unless it wants to go on."""
        if "watch" not in request.url.params:
            return httpx.Response(200, json={"status": "alive"})
        if not self._streams:
            raise KeyboardInterrupt
        if request.headers.get("last-event-id") not in (None, "3"):
            return httpx.Response(410, json={"code": "Forgotten", "status": 410, "title": "Gone"})
        return httpx.Response(200, text=self._streams.pop(0), headers={"content-type": "text/event-stream"})


class Counting(Forgetful):
    """… and counts who asks for the name of a cluster."""

    asked = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer; every cluster is called the same."""
        if request.url.path.endswith("/clusters/cls-1"):
            self.asked += 1
            return httpx.Response(200, json={"id": "cls-1", "name": "payments"})
        return super().handle_request(request)


def test_the_name_of_a_cluster_is_looked_up_once(capsys: pytest.CaptureFixture[str]) -> None:
    pool = '{"id": "np-1", "name": "workers", "metadata": {"clusterId": "cls-1", "generation": %d}}'
    parts = [f"event: modified\nid: {position}\ndata: {pool % position}\n\n" for position in (10, 11)]
    server = Counting(SYNCED + "".join(parts))
    session = CliSession({"HYPERFLEET_SERVER": "http://127.0.0.1:8000"}, transport=server)
    assert run(["get", "np", "-w", "-o", "name"], session) == 130
    assert capsys.readouterr().out == "nodepool/payments/workers\n" * 2
    assert server.asked == 1


SYNCED = "event: synced\nid: 9\ndata: {}\n\n"


@pytest.mark.parametrize(
    ("arguments", "streams", "told"),
    [
        pytest.param(
            ("events", "--after", "3"),
            (part("cls-1", "modified", 4), part("cls-1") + part("cls-2") + SYNCED),
            ["4 MODIFIED cluster/cls-1"],
            id="what was there before the log began is not new",
        ),
        pytest.param(
            ("get", "cl", "-w", "--watch-only", "-o", "name"),
            (SYNCED, part("cls-2") + SYNCED),
            ["cluster/cls-2"],
            id="what came while nobody listened is new, also if there was nothing before",
        ),
        pytest.param(
            ("get", "cl", "-w", "-o", "name"),
            (part("cls-1"), part("cls-2") + SYNCED),
            ["cluster/cls-2"],
            id="a list that broke off does not count",
        ),
    ],
)
def test_a_relist_shows_only_differences(
    arguments: tuple[str, ...], streams: tuple[str, ...], told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    session = CliSession({"HYPERFLEET_SERVER": "http://127.0.0.1:8000"}, transport=Forgetful(*streams))
    assert run(arguments, session) == 130
    assert [line.removeprefix("-").strip().replace("  ", " ") for line in capsys.readouterr().out.splitlines()] == told


# ── views that are redrawn ───────────────────────────────────────────────────────────────────────────────────────


def test_progress_is_shown_live(terminal: Terminal, scene: Scene) -> None:
    done = terminal.run("progress", "ledger", "-w", then=[("synced", lambda: recover(scene)), ("modified", nothing)])
    first, second = done.out.split("\n\n")
    assert "dns - failed (gen 1)\n   zone ledger: 3 of 20 calls failed" in first
    assert "dns - completed (gen 1)\n   5 records created" in second


def test_a_description_is_redrawn(terminal: Terminal, scene: Scene) -> None:
    done = terminal.run("describe", "ledger", "-w", then=[("synced", lambda: recover(scene)), ("modified", nothing)])
    assert [line.split()[1] for line in done.out.splitlines() if line.startswith("Cluster/")] == [
        "Failed",
        "Provisioning",
    ]


def test_top_is_redrawn(terminal: Terminal, scene: Scene) -> None:
    done = terminal.run("top", "-w", then=[("synced", nothing)])
    assert done.out.splitlines()[1].split()[:2] == ["dns", "66s"]
