"""`hyperfleet sim`: its options and its summary. The end-to-end tests run it against real servers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hyperfleet.cli import run
from hyperfleet.cli.connection import ServerConnection
from hyperfleet.cli.session import CliSession
from hyperfleet.cli.sim import SimOptions, SpeedType, _read_options, _write, sim
from hyperfleet.cli.simulating import open_async
from hyperfleet.simulator.stats import SimulationResults
from hyperfleet.simulator.timeline import FOREVER


def session() -> CliSession:
    return CliSession({}, lambda: datetime(2025, 10, 17, tzinfo=UTC))


@pytest.mark.parametrize(("text", "speed"), [("1", 1.0), ("60x", 60.0), ("0.5", 0.5), ("max", 0.0)])
def test_a_speed(text: str, speed: float) -> None:
    assert SpeedType().convert(text, None, None) == speed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--speed", "0"], 'expected a factor from 0.001 to 100000, such as 60, or max, found "0"'),
        (["--speed", "ma"], 'expected a factor from 0.001 to 100000, such as 60, or max, found "ma"'),
        (["--heartbeat", "10ms"], "--heartbeat must be at least 1s"),
        (["--patience", "0"], "--patience must be at least 1s"),
        (["--clusters", "0"], "0 is not in the range"),
        (["--duration", "soon"], 'expected a duration such as 10m or 1h30m, found "soon"'),
        (["--faults", "monitoring=fail"], 'no adapter "monitoring" is simulated'),
        (["--server", "ftp://x"], "ftp"),
    ],
)
def test_errors_are_reported(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", *arguments], session()) == 2
    assert message in capsys.readouterr().err


def options_of(*arguments: str) -> SimOptions:
    values = sim.make_context("sim", list(arguments)).params
    return SimOptions(**{name: value for name, value in values.items() if name != "output"})


def test_only_a_paced_simulation_may_be_endless() -> None:
    assert _read_options(options_of()).duration == FOREVER
    assert _read_options(options_of("--speed", "max")).duration == 3600.0
    assert _read_options(options_of("--speed", "max", "--duration", "2h")).duration == 7200.0
    assert _read_options(options_of("--duration", "0")).duration == 0.0


def test_more_adapters_have_more_names() -> None:
    assert _read_options(options_of("--adapters", "5", "--faults", "monitoring=fail:1")).adapters == 5


def test_the_request_timeout_is_used() -> None:
    for given, timeout in ((None, 30.0), (timedelta(seconds=2), 2.0)):
        fleet = open_async(ServerConnection("http://127.0.0.1:1", "--server"), 60.0, given)
        assert (fleet._link.retry.timeout, fleet._link.retry.deadline) == (timeout, 60.0)


RESULTS = SimulationResults(
    virtual_seconds=7260.0,
    seconds=61.5,
    requests=500,
    reports=1234,
    reports_per_second=20.1,
    outcomes={"aggregated": 1200, "discarded": 34},
    discards={"OutOfOrder": 34},
    actions={"created": 12, "deleted": 1},
    errors={},
    resynchronised=2,
    latency_ms={"p50": 2.5, "p90": 5.0, "p99": 12.0},
    phases={"Ready": 10, "Failed": 2},
)


def test_the_summary_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    _write(session(), RESULTS, "text")
    assert capsys.readouterr().out.splitlines() == [
        "simulated      2h1m in 1m1s",
        "requests       500; p50 2.5ms, p99 12.0ms",
        "reports        1234, 20 a second",
        "outcomes       aggregated 1200, discarded 34",
        "discards       OutOfOrder 34",
        "people         created 12, deleted 1",
        "resynchronised 2",
        "phases         Ready 10, Failed 2",
    ]


def test_the_summary_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    _write(session(), RESULTS, "json")
    output = capsys.readouterr().out
    assert '"virtualSeconds": 7260.0' in output
    assert '"latencyMs"' in output
