"""The syntax of --faults."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.simulator.fault_profiles import NO_FAULTS, TYPICAL_FAULTS
from hyperfleet.simulator.faults import FAULTS, parse_faults

ADAPTERS = ("validation", "dns", "infrastructure", "hypershift")


@pytest.mark.parametrize(
    ("text", "adapter", "field", "value", "because"),
    [
        ("dns=fail:0.1", "dns", "fail", 0.1, "a probability"),
        ("dns=fail:25%", "dns", "fail", 0.25, "a probability in percent"),
        ("dns=fail", "dns", "fail", 0.1, "the default"),
        ("infrastructure=slow:3x", "infrastructure", "slow", 3.0, "a factor"),
        ("infrastructure=slow:0.5", "infrastructure", "slow", 0.5, "a factor needs no x"),
        ("hypershift=flap", "hypershift", "flap", 90.0, "the default"),
        ("validation=silent:10m", "validation", "silent", 600.0, "a time"),
        ("skew:dns=+90s", "dns", "skew", 90.0, "the fault may come first"),
        ("dns=skew:+90s", "dns", "skew", 90.0, "a plus before a number is its sign"),
        ("dns=skew:-2m", "dns", "skew", -120.0, "a clock may be behind"),
        ("dns=fail:1+skew:+90s+stuck", "dns", "stuck", True, "several faults of one adapter"),
        ("dns=fail:1+skew:+90s+stuck", "dns", "skew", 90.0, "several faults of one adapter"),
        ("*=lost:0.5", "hypershift", "lost", 0.5, "all adapters"),
        ("dns=lost:0.1,*=lost:0.5", "dns", "lost", 0.1, "a name wins over *, in any order"),
        (" dns = fail:1 , validation=absent ", "dns", "fail", 1.0, "spaces are ignored"),
    ],
)
def test_terms_are_parsed(text: str, adapter: str, field: str, value: object, because: str) -> None:
    parsed = parse_faults(text, ADAPTERS)
    assert parsed.problems == ()
    assert getattr(parsed.faults.profile_of(adapter), field) == value, because


def test_the_default_faults_are_typical_and_none_turns_them_off() -> None:
    assert parse_faults("", ADAPTERS).faults.profile_of("dns") == TYPICAL_FAULTS
    assert parse_faults("none", ADAPTERS).faults.profile_of("dns") == NO_FAULTS
    only = parse_faults("none,dns=fail:1", ADAPTERS).faults
    assert only.profile_of("validation") == NO_FAULTS
    assert only.profile_of("dns").lost == 0


def test_all_problems_are_reported() -> None:
    text = "dsn=fail,dns=fial:0.1,dns=fail:2,validation=slow:fast,hypershift,dns=skew,dns=silent:5,dns=stuck:yes,dns="
    assert parse_faults(text, ADAPTERS).problems == (
        '"dsn=fail": no adapter "dsn" is simulated, did you mean "dns"?',
        '"dns=fial:0.1": "fial" is not a fault, did you mean "fail"?',
        '"dns=fail:2": expected a probability such as 0.1 or 10%, found "2"',
        '"validation=slow:fast": expected a factor from 0.01x to 1000x, found "fast"',
        '"hypershift": expected ADAPTER=FAULT such as dns=fail:0.1, or "none"',
        '"dns=skew": skew needs a value, as in skew:+90s',
        '"dns=silent:5": a duration needs a unit (ms, s, m or h): "5" could be 5s or 5m',
        '"dns=stuck:yes": it takes no value, found "yes"',
        '"dns=": "" is not a fault; there are ' + ", ".join(fault.name for fault in FAULTS),
    )


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_example_can_be_read(fault: object) -> None:
    example = getattr(fault, "example")  # noqa: B009  # pytest's parameters have no type
    assert parse_faults(f"dns={example}", ADAPTERS).problems == ()


@given(st.text(max_size=40))
def test_no_text_raises(text: str) -> None:
    parse_faults(text, ADAPTERS)
