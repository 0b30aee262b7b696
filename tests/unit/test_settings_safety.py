"""Settings of limits, redaction and the audit log as people write them in the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperfleet.errors import SettingsError
from hyperfleet.settings import resolve


def test_lists_and_numbers_that_may_be_absent_are_plain_text_in_the_environment() -> None:
    settings = resolve(
        {},
        {
            "HYPERFLEET_LIMITS_MAX_REQUESTS_PER_SECOND": "50",
            "HYPERFLEET_REDACTION_KEYS": "pin, doorCode",
            "HYPERFLEET_TRUSTED_PROXIES": "10.0.0.0/8,fd00::1",
            "HYPERFLEET_AUDIT_TO": "audit.log",
        },
    ).settings
    assert settings.limits.max_requests_per_second == 50
    assert settings.limits.max_burst is None
    assert settings.redaction.keys == ("pin", "doorCode")
    assert settings.trusted_proxies == ("10.0.0.0/8", "fd00::1")
    assert settings.audit.to == str(Path.cwd() / "audit.log")


@pytest.mark.parametrize("word", ["log", "none"])
def test_two_words_are_no_files(word: str) -> None:
    assert resolve({}, {"HYPERFLEET_AUDIT_TO": word}).settings.audit.to == word


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("HYPERFLEET_TRUSTED_PROXIES", "10.0.0.1/8", "has host bits set"),
        ("HYPERFLEET_TRUSTED_PROXIES", "proxy.example.com", "expected an address or a network such as 10.0.0.0/8"),
        ("HYPERFLEET_LIMITS_MAX_REQUESTS_PER_SECOND", "0", "1"),
        ("HYPERFLEET_LIMITS_MAX_REQUESTS_PER_SECOND", "many", "whole number"),
    ],
)
def test_what_is_wrong_is_told_with_the_name_of_the_variable(variable: str, text: str, message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        resolve({}, {variable: text})
    (problem,) = raised.value.problems
    assert str(problem.place) == variable
    assert message in problem.message
