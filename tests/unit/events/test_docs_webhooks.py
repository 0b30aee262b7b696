"""docs/webhooks.md: its settings load, and its check of a signature accepts ours and nothing else."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hyperfleet.event_system import check_webhook_files
from hyperfleet.events.webhook_delivery import sign
from hyperfleet.settings import resolve

PAGE = (Path(__file__).parents[3] / "docs" / "webhooks.md").read_text()
KEY = b"0123456789abcdef"


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_settings_load(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text(block("yaml"))
    (tmp_path / "webhook.key").write_bytes(KEY)
    settings = resolve({}, {}, str(tmp_path / "settings.yaml")).settings
    check_webhook_files(settings)
    assert [each.name for each in settings.webhooks] == ["incidents", "chat", "alerts", "audit"]


def test_the_signature_is_checked() -> None:
    names: dict[str, Any] = {}
    exec(block("python"), names)  # noqa: S102  # the page is ours
    is_genuine, now = names["is_genuine"], datetime.now(UTC)
    signature = sign(KEY, b"{}", now)
    assert is_genuine(KEY, signature, b"{}")
    assert not is_genuine(KEY, signature, b"[]")
    assert not is_genuine(b"another key of 16", signature, b"{}")
    assert not is_genuine(KEY, sign(KEY, b"{}", now - timedelta(hours=1)), b"{}"), "too old"
