"""A failure that repeats does not fill the log."""

from __future__ import annotations

import logging

import pytest

from hyperfleet.services.repeated_warning import RepeatedWarning


def test_a_failure_is_logged_once_until_it_changes_or_ends(caplog: pytest.LogCaptureFixture) -> None:
    warning = RepeatedWarning(logging.getLogger("tests"))
    for text in ("away", "away", "away", "refused", "refused"):
        warning.log(text)
    warning.end()
    warning.log("refused")
    assert [each.message for each in caplog.records] == [
        "away",
        "refused (2 more times since the last line)",
        "refused",
    ]
