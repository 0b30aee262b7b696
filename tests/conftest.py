"""What all tests share: nothing is timed, because machines are noisy; speed is measured in `bench/`.

Also the servers that tests need: one for the whole run, made when the first test asks for it. What they are is in
`servers.py`; here is how pytest and its workers get at them, and how loudly they are missed. Long tests are left out of
an ordinary run, which says so at its end.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

import pytest
from hypothesis import Phase, settings

from tests.kubernetes_server import (
    KUBERNETES_CONFIG,
    KubernetesServer,
    SharedKubernetes,
    find_kubernetes,
    temporary_kubernetes,
)
from tests.rabbit_server import RABBIT_ADDRESS, RabbitServer, SharedRabbit, find_rabbit, temporary_rabbit
from tests.servers import (
    POSTGRES_ADDRESS,
    PostgresServer,
    ServerMissingError,
    SharedPostgres,
    SharedServer,
    ask_for_server,
    find_postgres,
    temporary_database,
    temporary_postgres,
)

settings.register_profile("default", deadline=None)
# For `make mutation`, which repeats the suite for each mutant: few examples, the same ones in every run, and no search
# for the smallest once one fails.
settings.register_profile(
    "mutation",
    deadline=None,
    max_examples=10,
    stateful_step_count=15,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

_SHARED: Final = pytest.StashKey[dict[str, SharedServer]]()
# These run on every store; that the stores behave alike, `contract` tests in every run.
_ON_EVERY_STORE: Final = frozenset({Path(__file__).parent / "api", Path(__file__).parent / "e2e"})
_SOCKET: Final = "_socket"  # ends the name under which a worker is told where to ask for a server
_MISSING: Final = "Server missing: "
_LEFT_OUT: Final = pytest.StashKey[int]()


class _Worker(Protocol):
    """What we use of pytest-xdist's side of a worker; the package has no types."""

    config: pytest.Config
    workerinput: dict[str, str]
    workeroutput: dict[str, int]


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the address of an empty database of the test's own."""
    with _lend_database(request) as url:
        yield url


@pytest.fixture(scope="module")
def lasting_postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the address of a database for all tests of a module."""
    with _lend_database(request) as url:
        yield url


@pytest.fixture
def postgres_server(postgres_binaries: Path) -> Iterator[PostgresServer]:
    """Give a durable server of the test's own, to be killed and started at will."""
    with temporary_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_binaries() -> Path:
    """Give the directory with the binaries, or skip: for tests that start servers themselves."""
    try:
        return find_postgres()
    except ServerMissingError as error:
        pytest.skip(f"{_MISSING}{error}")


@contextmanager
def _lend_database(request: pytest.FixtureRequest) -> Iterator[str]:
    """Lend an empty database of the run's server for a while."""
    if not os.environ.get(POSTGRES_ADDRESS):
        request.getfixturevalue("postgres_binaries")
    with temporary_database(_shared_server(request.config, "postgres")) as url:
        yield url


@pytest.fixture(scope="session")
def rabbit_url(request: pytest.FixtureRequest) -> str:
    """Give the address of the run's RabbitMQ; tests must use names of their own."""
    if not os.environ.get(RABBIT_ADDRESS):
        request.getfixturevalue("rabbit_scripts")
    return _shared_server(request.config, "rabbit")


@pytest.fixture
def rabbit_server(rabbit_scripts: Path) -> Iterator[RabbitServer]:
    """Give a RabbitMQ of the test's own, to be killed and started at will."""
    with temporary_rabbit() as server:
        yield server


@pytest.fixture(scope="session")
def rabbit_scripts() -> Path:
    """Give the directory with the scripts of RabbitMQ, or skip."""
    try:
        return find_rabbit()
    except ServerMissingError as error:
        pytest.skip(f"{_MISSING}{error}")


@pytest.fixture(scope="session")
def kubernetes(request: pytest.FixtureRequest) -> Path:
    """Give the kubeconfig of the run's Kubernetes API; tests must use namespaces and names of their own."""
    if not os.environ.get(KUBERNETES_CONFIG):
        request.getfixturevalue("kubernetes_binaries")
    return Path(_shared_server(request.config, "kubernetes"))


@pytest.fixture
def kubernetes_server(kubernetes_binaries: Path) -> Iterator[KubernetesServer]:
    """Give a Kubernetes API of the test's own, to be killed and started at will."""
    with temporary_kubernetes() as server:
        yield server


@pytest.fixture(scope="session")
def kubernetes_binaries() -> Path:
    """Give the directory with kube-apiserver and etcd, or skip."""
    try:
        return find_kubernetes()
    except ServerMissingError as error:
        pytest.skip(f"{_MISSING}{error}")


def _shared_server(config: pytest.Config, name: str) -> str:
    """Return the address of a server of the run; a worker of pytest-xdist asks the process that started it."""
    if hasattr(config, "workerinput"):
        return ask_for_server(config.workerinput[name + _SOCKET])
    return config.stash[_SHARED][name].url()


def pytest_configure(config: pytest.Config) -> None:
    """Make ready for tests that need a server; none is started yet."""
    config.addinivalue_line("markers", "postgres: needs a PostgreSQL server; set by itself where a fixture tells")
    config.addinivalue_line("markers", "rabbit: needs a RabbitMQ server; set by itself where a fixture tells")
    config.addinivalue_line("markers", "kubernetes: needs a Kubernetes API; set by itself where a fixture tells")
    if not hasattr(config, "workerinput"):
        config.stash[_SHARED] = {
            "postgres": SharedPostgres(),
            "rabbit": SharedRabbit(),
            "kubernetes": SharedKubernetes(),
        }
        for shared in config.stash[_SHARED].values():
            config.add_cleanup(shared.close)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: _Worker) -> None:
    """Tell a worker of pytest-xdist where to ask for the servers."""
    for name, shared in node.config.stash[_SHARED].items():
        node.workerinput[name + _SOCKET] = shared.listen()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what uses a server, so that `-m "not postgres"` leaves it out."""
    if {"postgres_url", "postgres_binaries"}.intersection(getattr(item, "fixturenames", ())):
        item.add_marker("postgres")
    if {"rabbit_url", "rabbit_scripts"}.intersection(getattr(item, "fixturenames", ())):
        item.add_marker("rabbit")
    if {"kubernetes", "kubernetes_binaries"}.intersection(getattr(item, "fixturenames", ())):
        item.add_marker("kubernetes")
    if item.get_closest_marker("postgres") and not _ON_EVERY_STORE.isdisjoint(item.path.parents):
        item.add_marker("long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out long tests, unless the command line selects by marker or names their file."""
    if config.option.markexpr:
        return
    named = {(config.invocation_params.dir / argument.partition("::")[0]).resolve() for argument in config.args}
    long = {item for item in items if item.get_closest_marker("long") and item.path not in named}
    config.stash[_LEFT_OUT] = len(long)
    config.hook.pytest_deselected(items=[item for item in items if item in long])
    items[:] = [item for item in items if item not in long]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let a worker of pytest-xdist tell how many tests it left out; all of them collect the same."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(_LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: _Worker) -> None:
    """Keep what a worker of pytest-xdist told."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    """Say at the very end, in capitals, what was skipped for want of a server."""
    yield
    skipped = (str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []))
    missing = Counter(text.partition(_MISSING)[2] for text in skipped if _MISSING in text)
    for reason, number in missing.items():
        what, _, remedy = reason.partition("; to enable: ")
        terminalreporter.write_line(f"{number} SKIPPED: {what.upper()}. TO ENABLE: {remedy}", red=True, bold=True)
    if left_out := terminalreporter.config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(f"{left_out} LONG TESTS WERE LEFT OUT. TO RUN THEM: make test-long", bold=True)
