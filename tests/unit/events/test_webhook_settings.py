"""The settings of webhooks: every problem is named at its place, and no secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperfleet.errors import SettingsError
from hyperfleet.event_system import check_webhook_files
from hyperfleet.settings import Settings, resolve

GOOD = """
webhooks:
  - name: ops
    url: https://hooks.example.org/s3cr3t
    secretFile: key
    tenants: [red]
    filter:
      {kinds: [Cluster], labelSelector: "env in (prod, stage)", phases: [Failed], conditions: [Ready], causes: [dns]}
"""
BAD = """
webhooks:
  - name: ops
    url: http://hooks.example.org/s3cr3t
  - name: ops
    url: https://10.0.0.1/s3cr3t
    format: slack
    filter:
      kinds: [Clusters]
      labelSelector: "env in prod"
      conditions: ["not a type"]
  - name: alerts
    url: "https:///s3cr3t"
    format: alertmanager
    send: [problems, changes]
  - {name: port, url: "https://example.org:port/s3cr3t", format: slack}
  - {name: local, url: "https://localhost/s3cr3t", format: slack}
  - {name: mapped, url: "https://[::ffff:10.0.0.1]/s3cr3t", format: slack}
"""


def settings_of(text: str, directory: Path) -> Settings:
    file = directory / "settings.yaml"
    file.write_text(text)
    return resolve({}, {}, str(file)).settings


def problems_of(text: str, directory: Path) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        settings_of(text, directory)
    assert "s3cr3t" not in str(caught.value)
    return [str(problem).removeprefix(f"{directory}/settings.yaml:") for problem in caught.value.problems]


def test_good_settings(tmp_path: Path) -> None:
    (webhook,) = settings_of(GOOD, tmp_path).webhooks
    assert webhook.secret_file == str(tmp_path / "key"), "relative to the settings file"
    assert webhook.address == "https://hooks.example.org"
    assert "s3cr3t" not in repr(settings_of(GOOD, tmp_path))
    assert "s3cr3t" not in repr(webhook)


def test_all_problems_with_their_places(tmp_path: Path) -> None:
    assert problems_of(BAD, tmp_path) == [
        "3:5: ops: CloudEvents are signed; name the file with the key in secretFile",
        "4:10: the URL must begin with https://, found http:// (http needs allowPrivate)",
        "5:11: there are two webhooks ops; names must differ",
        "6:10: 10.0.0.1 is not a public address; to send there all the same, set allowPrivate: true",
        '9:15: unknown kind "Clusters", did you mean "Cluster"? Known are Cluster, NodePool',
        '10:22: at character 8: found "prod", expected ( and a list of values',
        '11:20: "not a type" is not a condition type such as Ready',
        "13:10: this is not a URL with a host; expected https://…",
        "15:11: Alertmanager takes problems only: a change neither starts nor ends",
        "16:23: this is not a URL with a host and a port",
        "17:24: localhost is not a public address; to send there all the same, set allowPrivate: true",
        "18:25: ::ffff:10.0.0.1 is not a public address; to send there all the same, set allowPrivate: true",
    ]


def test_private_addresses_can_be_allowed(tmp_path: Path) -> None:
    text = "webhooks: [{name: a, url: 'http://10.0.0.1/', format: slack, allowPrivate: true}]"
    assert settings_of(text, tmp_path).webhooks[0].allow_private


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "key").mkdir()
    with pytest.raises(SettingsError, match="Is a directory"):
        check_webhook_files(settings_of(GOOD, tmp_path))


def test_the_files_are_checked(tmp_path: Path) -> None:
    settings = settings_of(GOOD + "    caFile: ca.pem", tmp_path)
    with pytest.raises(SettingsError) as caught:
        check_webhook_files(settings)
    missing = [f"{tmp_path}/{file}: webhooks: ops: No such file or directory" for file in ("key", "ca.pem")]
    assert [str(problem) for problem in caught.value.problems] == missing
    (tmp_path / "key").write_text("short\n")
    (tmp_path / "ca.pem").write_text("not a certificate")
    with pytest.raises(SettingsError, match="needs 16 to 4096 bytes, this has 5") as caught:
        check_webhook_files(settings)
    assert len(caught.value.problems) == 2
    (tmp_path / "key").write_text("x" * 16)
    check_webhook_files(settings_of(GOOD, tmp_path))
