"""What has to be installed for what: each library runs with its extra alone, and the command says what it lacks.

Every import runs in a process of its own, in which packages that are not in the extra cannot be imported.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]

# Refuses every module that is neither Python's own, nor ours, nor of a package named in the first argument.
REFUSAL = """
import sys
allowed = {*sys.stdlib_module_names, "hyperfleet", *sys.argv.pop(1).split(",")}
class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refusal())
"""


def parse_requirement(requirement: str) -> tuple[str, frozenset[str]]:
    """Split a requirement into the normalized name of the package and its extras."""
    match = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", requirement)
    assert match, requirement
    return normalize(match[1]), frozenset(match[2].split(",") if match[2] else ())


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(extra: str = "") -> set[tuple[str, frozenset[str]]]:
    """Return the packages, with their extras, that an extra of ours declares itself or by including others."""
    found: set[tuple[str, frozenset[str]]] = set()
    for requirement in EXTRAS[extra] if extra else PROJECT["dependencies"]:
        name, extras = parse_requirement(requirement)
        found |= set().union(*map(declared, extras)) if name == "hyperfleet" else {(name, extras)}
    return found


@cache
def with_dependencies(package: str, extras: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return a package and everything that it needs itself, as far as this platform needs it."""
    found = {package}
    for requirement in requires(package) or ():
        marker = re.search(r";.*\bextra\b\s*==\s*['\"]([\w-]+)", requirement)
        name, needed_extras = parse_requirement(requirement)
        if (marker is None or marker[1] in extras) and name in modules_by_package():
            found |= with_dependencies(name, needed_extras)
    return frozenset(found)


def installed_with(extra: str | None) -> set[str]:
    """Return the modules that `pip install hyperfleet[extra]` brings; None: not even msgspec."""
    packages = set() if extra is None else declared() | (declared(extra) if extra else set())
    brought = set[str]().union(*(with_dependencies(*each) for each in packages))
    return {module for package in brought for module in modules_by_package()[package]}


@cache
def modules_by_package() -> dict[str, set[str]]:
    modules: dict[str, set[str]] = {}
    for module, packages in packages_distributions().items():
        for package in packages:
            modules.setdefault(normalize(package), set()).add(module)
    return modules


def run(
    code: str, *, extra: str | None, also: str = "", arguments: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run code in a process that has an extra and nothing else; `also` names one more module."""
    modules = ",".join(sorted(installed_with(extra) | {also}))
    return subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", REFUSAL + code, modules, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=ROOT,
    )


def test_the_package_itself_needs_msgspec_only() -> None:
    assert declared() == {("msgspec", frozenset())}
    assert with_dependencies("msgspec") == {"msgspec"}


CONDITIONS = """
from datetime import UTC, datetime
from hyperfleet.conditions import ClusterScope, ClusterStatus, compute_status, write_conditions
status = compute_status(ClusterScope(), ClusterStatus(), datetime.now(UTC))
assert len(write_conditions(status.conditions)) == 16
"""


KUBERNETES = """
import asyncio
from hyperfleet.backends.kubernetes.api_server import ApiServerClient
from hyperfleet.backends.kubernetes.dry_run import DryRunCluster
from hyperfleet.backends.kubernetes.kubeconfig import load_access
from hyperfleet.kubernetes.informer import SharedInformers
asyncio.run(DryRunCluster().apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}, manager="b"))
"""


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        ("", CONDITIONS),
        ("expr", 'from hyperfleet.expr import compile\nassert compile(\'"ab" matches "^a"\').evaluate({})\n'),
        ("policy", "from hyperfleet.aggregation import load_policies\nload_policies('requiredAdapters: [dns]')\n"),
        ("client", "from hyperfleet.client import Fleet\nFleet('http://127.0.0.1:8000').close()\n"),
        ("kubernetes", KUBERNETES),
        ("server", "import hyperfleet.serving, hyperfleet.bootstrap, hyperfleet.api.app\n"),
        ("server", "import hyperfleet.backends.google_pubsub_options\n"),
        ("pubsub", "import hyperfleet.backends.google_pubsub\n"),
    ],
)
def test_an_extra_is_enough_for_its_library(extra: str, code: str) -> None:
    done = run(code, extra=extra)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_client_without_its_extra_says_what_to_install() -> None:
    done = run("from hyperfleet.client import Fleet\nFleet('http://127.0.0.1:8000').clusters.list()\n", extra="")
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: hyperfleet.client needs httpx: pip install 'hyperfleet[client]'"
    )


def test_the_broker_google_pubsub_without_its_extra_says_what_to_install() -> None:
    done = run("import hyperfleet.backends.google_pubsub", extra="server")
    assert done.stderr.splitlines()[-1] == (
        "hyperfleet.errors.MissingPackage: the command needs the Python package google-cloud-pubsub, which is not "
        "installed. Install everything it needs: pip install 'hyperfleet[pubsub]'"
    )


def test_the_refusal_refuses() -> None:
    assert "No module named 'msgspec'" in run("import hyperfleet.conditions", extra=None).stderr
    assert "No module named 're2'" in run("import hyperfleet.expr", extra="").stderr


COMMAND = "from importlib.metadata import entry_points\n(entry,) = entry_points(name='hyperfleet')\nentry.load()()\n"
MODULE = "import runpy\nrunpy.run_module('hyperfleet', run_name='__main__')\n"


@pytest.mark.parametrize("code", [COMMAND, MODULE])
def test_the_command_without_its_extra_says_what_to_install(code: str) -> None:
    done = run(code, extra="", arguments=("get", "clusters"))
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr == (
        "Error: the command needs the Python package click, which is not installed. "
        "Install everything it needs: pip install 'hyperfleet[server]'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "package"), [(("get", "clusters"), "httpx"), (("rules", "check", "x.yaml"), "ruamel")]
)
def test_a_command_that_lacks_a_package_says_what_to_install(arguments: tuple[str, ...], package: str) -> None:
    done = run(COMMAND, extra="", also="click", arguments=arguments)
    assert done.returncode == 69
    assert f"needs the Python package {package}" in done.stderr
    assert "pip install 'hyperfleet[server]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_runs_with_its_extra() -> None:
    done = run(COMMAND, extra="server", arguments=("--version",))
    assert (done.returncode, done.stdout) == (0, f"hyperfleet, version {PROJECT['version']}\n")


def third_party_imports() -> set[str]:
    """Return the top-level modules that our code imports, anywhere in a file, and that are not Python's or ours."""
    found: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module or "").partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"hyperfleet", ""}


def test_everything_that_is_imported_is_declared() -> None:
    assert third_party_imports() - installed_with("tracing") - installed_with("pubsub") == set()
