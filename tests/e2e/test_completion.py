"""Completion in a real bash, against a real server: what Tab offers is what comes back in COMPREPLY."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server import Server, command, run_command, running

pytestmark = pytest.mark.skipif(
    shutil.which("bash") is None, reason="Server missing: bash was not found; to enable: apt-get install bash"
)

# Loads the script as a person would, asks what Tab would ask, prints what it would offer.
SCRIPT = """
source <(hyperfleet completion bash)
complete -p hyperfleet >&2
COMP_WORDS=("$@")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
compopt() { local IFS=" "; echo "compopt $*"; }
_hyperfleet_completion hyperfleet
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server with some names to complete."""
    directory = tmp_path_factory.mktemp("completion")
    with running(directory, f"sqlite:{directory}/fleet.db") as started:
        for line in ("create cluster payments -l env=prod", "create cluster parcels", "create cluster shop"):
            assert run_command(*line.split(), server=started.url).returncode == 0
        assert run_command("create", "nodepool", "workers", "-c", "payments", server=started.url).returncode == 0
        yield started


def complete(server: str, home: Path, *words: str) -> list[str]:
    """Return what bash would offer for the last word."""
    environment = {
        "PATH": f"{Path(command()[0]).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "HYPERFLEET_SERVER": server,
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    done = subprocess.run(  # noqa: S603  # our own script
        [shutil.which("bash") or "bash", "--norc", "-ic", SCRIPT, "bash", "hyperfleet", *words],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
    )
    assert "complete -o nosort -F _hyperfleet_completion hyperfleet" in done.stderr
    assert "Traceback" not in done.stderr
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["de"], ["describe", "delete", "demo"]),
        (["get", "clu"], ["cluster", "clusters"]),
        (["get", "cluster", "pa"], ["parcels", "payments"]),
        (["get", "cluster", "payments", ""], ["parcels", "shop"]),
        (["describe", "cluster/sh"], ["cluster/shop"]),
        (["delete", "nodepool", ""], ["payments/workers"]),
        (["edit", "nodepool", "-c", "payments", "w"], ["workers"]),
        (["get", "nodepools", "--cluster", "s"], ["shop"]),
        (["get", "clusters", "-l", "e"], ["env=prod"]),
        (["get", "clusters", "-o", "j"], ["json", "jsonpath"]),
        (["get", "clusters", "--pha"], ["--phase"]),
        (["get", "clusters", "--phase", "F"], ["Failed"]),
        (["wait", "payments", "--adapter", "d"], ["dns"]),
        (["top", "val"], ["validation"]),
        (["rules", "si"], ["simulate"]),
        (["db", "v"], ["verify", "version"]),
        (["apply", "-f", ""], ["compopt -o default"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["get", "nonsense", ""], []),
    ],
    ids=" ".join,
)
def test_tab(server: Server, tmp_path: Path, words: list[str], offered: list[str]) -> None:
    found = complete(server.url, tmp_path, *words)
    assert sorted(found) == sorted(offered)


def test_contexts_are_completed_without_a_server(tmp_path: Path) -> None:
    (tmp_path / ".config/hyperfleet").mkdir(parents=True)
    (tmp_path / ".config/hyperfleet/config.yaml").write_text(
        "contexts: {prod: {server: 'https://fleet.example.com'}}\n"
    )
    assert complete("http://127.0.0.1:1", tmp_path, "config", "use-context", "") == ["prod"]
    assert complete("http://127.0.0.1:1", tmp_path, "get", "clusters", "--context", "p") == ["prod"]


def test_a_server_that_is_away_offers_nothing_and_says_nothing(tmp_path: Path) -> None:
    assert complete("http://127.0.0.1:1", tmp_path, "get", "cluster", "") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_that_asks_us(shell: str) -> None:
    done = run_command("completion", shell)
    assert done.returncode == 0
    assert f"hyperfleet completion {shell} --answer" in done.stdout
    assert "_complete=" not in done.stdout, "not click's own way"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_can_read_the_script(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"Server missing: {shell} was not found; to enable: apt-get install {shell}")
    file = tmp_path / "script"
    file.write_text(run_command("completion", shell).stdout)
    done = subprocess.run([program, "-n", str(file)], capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stderr) == (0, "")
