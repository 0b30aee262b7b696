"""The views of a running simulation."""

from __future__ import annotations

from hyperfleet.cli.sim_view import SimulationSnapshot, draw_bar, write_line, write_panel

SNAPSHOT = SimulationSnapshot(
    title="40 clusters, seed 7",
    virtual=3723.4,
    seconds=62.05,
    reports=1234,
    rate=20.4,
    p50=0.0042,
    p99=0.131,
    outcomes={"aggregated": 1200, "discarded": 34},
    discards={"OutOfOrder": 34},
    phases={"Failed": 10, "Ready": 30},
    causes=("dns Route53Throttled ×7: Rate exceeded", "infrastructure VpcLimitExceeded ×3: no more", "a", "b"),
)


def test_a_line() -> None:
    assert write_line(SNAPSHOT) == "1h2m3s  1234 reports (20/s)  p50 4.2ms, p99 131ms  Ready 30, Failed 10"


def test_a_line_shows_errors() -> None:
    snapshot = SimulationSnapshot("", 0.0, 0.0, 0, 0.0, 0.0, 0.0, errors={"Overloaded": 2}, is_away=True)
    expected = "0s  0 reports (0/s)  p50 0.0ms, p99 0.0ms  no clusters yet  errors: Overloaded 2"
    assert write_line(snapshot) == f"{expected}  the server does not answer"


def test_a_panel() -> None:
    assert write_panel(SNAPSHOT, has_colour=False) == [
        "40 clusters, seed 7: 1h2m3s simulated in 1m2s",
        "  fleet     " + 36 * "R" + 12 * "F",
        "            Ready 30, Failed 10",
        "  reports   1234 in all, 20 a second; p50 4.2ms, p99 131ms",
        "  outcomes  aggregated 1200, discarded 34",
        "  discards  OutOfOrder 34",
        "  broken    dns Route53Throttled ×7: Rate exceeded",
        "            infrastructure VpcLimitExceeded ×3: no more",
        "            a",
    ]


def test_a_panel_of_nothing() -> None:
    lines = write_panel(SimulationSnapshot("x", 0.0, 0.0, 0, 0.0, 0.0, 0.0, is_away=True), has_colour=True)
    assert "  fleet     " + 48 * "·" in lines
    assert lines[-1] == "  the server does not answer; waiting for it"


def test_every_phase_is_visible_in_the_bar() -> None:
    assert draw_bar({"Ready": 9999, "Failed": 1}, has_colour=False) == 48 * "R" + "F"
    assert draw_bar({"Ready": 1, "Failed": 1}, has_colour=True) == f"\x1b[32m{24 * '█'}\x1b[0m\x1b[31m{24 * '█'}\x1b[0m"
