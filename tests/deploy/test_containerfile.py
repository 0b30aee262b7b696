"""The Containerfile, read as text: what it copies exists, what it runs is ours, what it leaves behind is small."""

from __future__ import annotations

import re
import tomllib

import click
import pytest

from hyperfleet.cli import command
from hyperfleet.errors import SettingsError
from hyperfleet.settings import CONFIG_VARIABLE, SETTINGS, parse_address, parse_database, resolve
from tests.deploy.chart import ROOT, read_defaults
from tests.deploy.containerfile import FILE, texts

SETTINGS_FILE = str(ROOT / "deploy/settings.yaml")
INSECURE = {"HYPERFLEET_INSECURE_LISTEN": "true"}


def test_what_is_copied_exists_and_is_sent_to_the_builder() -> None:
    sent = re.findall(r"^!(\S+)$", FILE.with_name("Containerfile.dockerignore").read_text("utf-8"), re.MULTILINE)
    sources = [
        source
        for stage in (0, 1)
        for text in texts("COPY", stage)
        if not text.startswith("--from=")
        for source in text.split()[:-1]
    ]
    assert len(sources) >= 5
    assert set(sources) == set(sent)
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_everything_that_the_package_is_built_from_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    copied = {source for text in texts("COPY", 0) for source in text.split()[:-1]}
    assert {"pyproject.toml", "uv.lock", "src", project["readme"], *project["license-files"]} <= copied


def test_the_lock_file_decides_what_is_installed() -> None:
    syncs = [text for text in texts("RUN", 0) if text.startswith("uv sync")]
    assert len(syncs) == 2
    assert all("--frozen" in text and "--no-dev" in text for text in syncs)
    assert all("--extra server" in text for text in syncs)  # without it only the libraries would run
    assert "--no-editable" in syncs[-1]  # the sources are left behind


def test_the_last_stage_installs_nothing() -> None:
    (run,) = texts("RUN")
    assert re.findall(r"\b(apt-get|apk|pip install|uv|gcc|curl)\b", run) == []
    assert "pip uninstall" in run
    assert [text for text in texts("COPY") if text.startswith("--from=")] == [
        "--from=build /opt/hyperfleet /opt/hyperfleet"
    ]


def test_the_environment_runs_where_it_was_made() -> None:
    (built,) = re.findall(r"UV_PROJECT_ENVIRONMENT=(\S+)", " ".join(texts("ENV", 0)))
    assert f"PATH={built}/bin:$PATH" in " ".join(texts("ENV"))
    assert len({text.split()[0] for stage in (0, 1) for text in texts("FROM", stage)}) == 1, "one Python for both"


def test_it_runs_a_command_of_ours() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert texts("ENTRYPOINT") == [f'["{next(iter(scripts))}"]']
    assert texts("CMD") == ['["serve"]']
    assert "serve" in command.list_commands(click.Context(command))


def test_it_is_not_root_and_owns_the_data() -> None:
    (user,) = texts("USER")
    number = user.partition(":")[0]
    assert int(number) > 0
    assert f"--owner={number} " in texts("RUN")[0]
    assert texts("VOLUME") == texts("WORKDIR") == ["/var/lib/hyperfleet"]


def test_its_variables_are_settings() -> None:
    known = {CONFIG_VARIABLE, *(setting.variable for setting in SETTINGS)}
    assert set(re.findall(r"HYPERFLEET_\w+", FILE.read_text("utf-8"))) <= known
    assert f"{CONFIG_VARIABLE}=/etc/hyperfleet/settings.yaml" in " ".join(texts("ENV"))
    assert "deploy/settings.yaml /etc/hyperfleet/settings.yaml" in texts("COPY")


def test_its_settings_are_those_of_a_container() -> None:
    settings = resolve({}, INSECURE, SETTINGS_FILE).settings
    address = parse_address(settings.listen)
    assert not address.is_loopback
    assert [str(address.port)] == texts("EXPOSE") == [str(read_defaults()["containerPort"])]
    assert parse_database(settings.database).location.startswith(texts("VOLUME")[0] + "/")


def test_nobody_is_let_in_by_accident() -> None:
    with pytest.raises(SettingsError) as caught:
        resolve({}, {}, SETTINGS_FILE)
    assert [problem.code for problem in caught.value.problems] == ["Exposed"]
