"""The Kubernetes API that tests get: real, one for a run, missed loudly, gone when its user is gone."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hyperfleet.errors import ObjectNotFound
from hyperfleet.kubernetes.port import ObjectRef
from tests.kubernetes_objects import NAMESPACE, connect_to, temporary_namespace
from tests.kubernetes_server import (
    KUBERNETES_BINARIES,
    KUBERNETES_CONFIG,
    KubernetesServer,
    SharedKubernetes,
    find_kubernetes,
)
from tests.programs import ROOT, read_version
from tests.servers import ServerMissingError, ask_for_server

pytestmark = pytest.mark.anyio

# Prints its process and the ids of its two programs, then waits.
LEFT_ALONE = """
from pathlib import Path
from tests.kubernetes_server import temporary_kubernetes
with temporary_kubernetes() as server:
    me = Path(f"/proc/self/task/{__import__('os').getpid()}/children").read_text()
    print(server.kubeconfig.parent, me, flush=True)
    input()
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_tests_get_a_namespace_of_their_own(kubernetes: Path) -> None:
    with temporary_namespace(kubernetes) as first, temporary_namespace(kubernetes) as second:
        assert first != second


def test_all_processes_of_a_run_share_an_api(kubernetes: Path) -> None:
    """The fixture has one; that another process gets the same is what the socket is for."""
    os.environ[KUBERNETES_CONFIG], before = str(kubernetes), os.environ.get(KUBERNETES_CONFIG)
    try:
        shared = SharedKubernetes()
    finally:
        os.environ.pop(KUBERNETES_CONFIG)
        if before is not None:
            os.environ[KUBERNETES_CONFIG] = before
    try:
        assert ask_for_server(shared.listen()) == shared.url() == str(kubernetes)
    finally:
        shared.close()


async def test_the_version_is_the_one_that_is_pinned(kubernetes_server: KubernetesServer) -> None:
    done = subprocess.run(  # noqa: S603 - what find_kubernetes found
        [str(find_kubernetes() / "kube-apiserver"), "--version"], capture_output=True, text=True, check=True
    )
    if not os.environ.get(KUBERNETES_BINARIES):
        assert done.stdout == f"Kubernetes v{read_version('kubernetes')}\n"
    client = connect_to(kubernetes_server.kubeconfig)
    with pytest.raises(ObjectNotFound):
        await client.get(ObjectRef(NAMESPACE, "", "none"))
    await client.close()


def test_a_folder_without_the_programs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KUBERNETES_BINARIES, str(tmp_path))
    with pytest.raises(ServerMissingError, match=r"are not in \$KUBEBUILDER_ASSETS; to enable: "):
        find_kubernetes()


def test_what_is_skipped_without_kubernetes_is_told_in_capitals(tmp_path: Path) -> None:
    """Run one test of this file where nothing is built."""
    target = f"{Path(__file__).relative_to(ROOT)}::{test_tests_get_a_namespace_of_their_own.__name__}"
    nothing = {KUBERNETES_BINARIES: "", KUBERNETES_CONFIG: "", "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(  # noqa: S603 - our own tests
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", target],
        cwd=ROOT,
        env={**os.environ, **nothing},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-2] == (
        "1 SKIPPED: KUBE-APISERVER AND ETCD ARE NOT BUILT. TO ENABLE: .ci/servers, which builds them in 6 minutes, "
        "or HYPERFLEET_TEST_KUBECONFIG=kubeconfig of a cluster for tests"
    )


@pytest.mark.usefixtures("kubernetes_binaries")
def test_a_killed_run_leaves_no_server_and_no_files() -> None:
    with subprocess.Popen(  # noqa: S603 - a constant script
        [sys.executable, "-c", LEFT_ALONE], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        directory, *children = run.stdout.readline().split()
        assert len(children) == 3  # the one that removes the files, etcd and kube-apiserver
        handles = [os.pidfd_open(int(child)) for child in children]
        run.send_signal(signal.SIGKILL)
    for handle in handles:
        assert select.select([handle], [], [], 60)[0], "still alive"
        os.close(handle)
    assert not Path(directory).exists()
