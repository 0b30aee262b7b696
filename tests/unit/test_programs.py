"""Programs that tests start are found where `.ci/servers` puts them, and Go is found before it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import ROOT, build_directory, find_program, read_version, without_privileges

VARIABLE = "HYPERFLEET_TEST_HELM"


def write_program(path: Path, text: str) -> Path:
    """Write a shell script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def run_script(name: str, *arguments: str, path: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run a script of `.ci` with programs of a folder before those of the machine."""
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(cache)}
    command = [str(ROOT / ".ci" / name), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603  # ours


def test_a_built_program_is_found_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv(VARIABLE, raising=False)
    assert find_program("helm", VARIABLE) is None
    built = write_program(tmp_path / "hyperfleet" / f"helm-{read_version('helm')}" / "helm", "true")
    assert find_program("helm", VARIABLE) == str(built)
    assert build_directory("helm") == built.parent


def test_what_a_variable_names_and_what_is_on_the_path_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = write_program(tmp_path / "bin/helm", "true")
    monkeypatch.setenv("PATH", str(found.parent))
    monkeypatch.delenv(VARIABLE, raising=False)
    assert find_program("helm", VARIABLE) == str(found)
    monkeypatch.setenv(VARIABLE, "/somewhere/helm")
    assert find_program("helm", VARIABLE) == "/somewhere/helm"


def test_go_on_the_path_is_taken_if_it_is_new_enough(tmp_path: Path) -> None:
    found = write_program(tmp_path / "bin/go", "echo go1.30.2")
    done = run_script("go", "1.26", path=found.parent, cache=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{found}\n")


def test_go_of_the_cache_is_taken_where_the_other_is_too_old(tmp_path: Path) -> None:
    old = write_program(tmp_path / "bin/go", "echo go1.9.7")
    cached = write_program(tmp_path / "hyperfleet" / f"go-{read_version('go')}" / "go/bin/go", "echo go1.27.3")
    done = run_script("go", "1.26", path=old.parent, cache=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{cached}\n")


def test_helm_is_built_into_the_cache_and_leaves_nothing_else(tmp_path: Path) -> None:
    """With a toolchain that only writes down what it was asked for: the real build takes minutes."""
    build = [
        "mkdir -p $GOBIN $GOCACHE",
        "echo $@ >$GOBIN/asked",
        "echo echo built >$GOBIN/helm",
        "chmod 755 $GOBIN/helm",
    ]
    go = write_program(tmp_path / "bin/go", "\n".join(["[ $1 = env ] && echo go1.30 && exit", *build]))
    script = "for file in versions programs/common.sh programs/helm.sh; do source .ci/$file; done; install_helm"
    environment = {**os.environ, "PATH": f"{go.parent}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path)}
    for _ in range(2):  # the second time as if two runs had built it at once
        done = subprocess.run(["/bin/bash", "-c", script], cwd=ROOT, env=environment, capture_output=True, check=False)  # noqa: S603
        assert (done.returncode, done.stderr) == (0, b"")
    (built,) = (tmp_path / "hyperfleet").iterdir()
    assert built.name == f"helm-{read_version('helm')}"
    assert (built / "asked").read_text().split()[-1] == f"helm.sh/helm/v3/cmd/helm@v{read_version('helm')}"
    assert os.access(built / "helm", os.X_OK)


def test_nothing_is_installed_where_everything_is_there(tmp_path: Path) -> None:
    for name in ("postgres", "rabbitmq-server", "promtool", "curl", "zsh", "fish", "helm", "pstest"):
        write_program(tmp_path / "bin" / name, "true")
    write_program(tmp_path / "hyperfleet" / f"kubernetes-{read_version('kubernetes')}" / "kube-apiserver", "true")
    done = run_script("servers", path=tmp_path / "bin", cache=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_permissions_apply_without_privileges(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o500)
    script = f"open({str(folder / 'file')!r}, 'w')"
    done = subprocess.run(  # noqa: S603  # our own interpreter
        without_privileges([sys.executable, "-c", script]), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "PermissionError" in done.stderr
