"""A private Kubernetes API for tests and `bench/`: etcd and kube-apiserver on loopback, gone when their user is gone.

There are no controllers, no scheduler and no nodes: nothing makes pods of a Deployment, a Job never ends by itself, and
a namespace that is deleted stays in phase Terminating. As `servers.py` it knows no pytest, and touches no cluster of
others but the one that `HYPERFLEET_TEST_KUBECONFIG` names.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.certificates import Authority
from tests.programs import build_directory
from tests.servers import ServerError, ServerMissingError, SharedServer, free_port, temporary_directory

KUBERNETES_CONFIG: Final = "HYPERFLEET_TEST_KUBECONFIG"  # the kubeconfig of a cluster to use instead of a private one
KUBERNETES_BINARIES: Final = "KUBEBUILDER_ASSETS"  # the only directory to look for binaries in

_PATIENCE: Final = 120.0  # seconds; a start takes 2, on a busy machine many more


class KubernetesServer:
    """An API server with an etcd of its own. Both die with the thread that called `start`.

    The contexts of its kubeconfig are its users: `admin` may do everything, `visitor` nothing, both with tokens;
    `certified` has a client certificate, and may do nothing either until somebody binds a role.
    """

    def __init__(self, directory: Path, *, options: Sequence[str] = ()) -> None:
        """Use an empty directory; `options` are further flags of kube-apiserver."""
        binaries = find_kubernetes()
        self._directory: Final = directory
        self._options: Final = options
        self._etcd: Final = _Program(binaries / "etcd", directory / "etcd.log")
        self._api: Final = _Program(binaries / "kube-apiserver", directory / "kube-apiserver.log")
        self._etcd_url: Final = f"http://127.0.0.1:{free_port()}"
        self._peer_url: Final = f"http://127.0.0.1:{free_port()}"
        self._port: Final = free_port()
        self.url: Final = f"https://127.0.0.1:{self._port}"
        self.tokens: Final = {name: secrets.token_hex(16) for name in ("admin", "visitor")}
        self._authority: Final = Authority(directory)
        self.authority_file: Final = self._authority.file
        self.kubeconfig: Final = directory / "kubeconfig"
        self._write_files()

    def start(self) -> None:
        """Start both programs, and return when the API is ready."""
        self._etcd.start(self._etcd_arguments())
        self.start_api()

    def start_api(self) -> None:
        """Start the API server alone: etcd kept the objects while it was away."""
        self._api.start(self._api_arguments())
        context = ssl.create_default_context(cafile=self.authority_file)
        request = Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {self.tokens['admin']}"})  # noqa: S310 - https
        limit = time.monotonic() + _PATIENCE
        while not _is_answered(request, context):
            self._etcd.check()
            self._api.check()
            if time.monotonic() > limit:
                raise ServerError(f"the Kubernetes API is not ready:\n{self._api.log()}")
            time.sleep(0.05)

    def kill_api(self) -> None:
        """Kill the API server alone: connections break, nothing can be finished."""
        self._api.kill()

    def stop(self) -> None:
        """Stop both programs; what they stored goes with the directory, so nothing needs to be finished."""
        self._api.kill()
        self._etcd.kill()

    def compact(self) -> None:
        """Let etcd forget all versions but the current ones."""
        revision = self._ask_etcd("maintenance/status", {})["header"]["revision"]
        self._ask_etcd("kv/compaction", {"revision": revision, "physical": True})

    def _ask_etcd(self, path: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        request = Request(f"{self._etcd_url}/v3/{path}", json.dumps(body).encode())  # noqa: S310 - our own etcd
        with urlopen(request, timeout=_PATIENCE) as response:  # noqa: S310 - as above
            answer: dict[str, dict[str, str]] = json.load(response)
        return answer

    def _etcd_arguments(self) -> list[str]:
        return [
            f"--data-dir={self._directory / 'etcd'}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls={self._peer_url}",
            f"--initial-advertise-peer-urls={self._peer_url}",
            f"--initial-cluster=default={self._peer_url}",
            "--unsafe-no-fsync",  # it guards against a power cut, and no test outlives one
            "--log-level=error",
        ]

    def _api_arguments(self) -> list[str]:
        return [
            f"--etcd-servers={self._etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            "--endpoint-reconciler-type=none",  # it refuses loopback addresses
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--tls-cert-file={self._directory / 'server.pem'}",
            f"--tls-private-key-file={self._directory / 'server.key'}",
            f"--client-ca-file={self.authority_file}",
            f"--token-auth-file={self._directory / 'tokens'}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",  # no controller makes the accounts that it asks for
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._directory / 'accounts.key'}",
            f"--service-account-signing-key-file={self._directory / 'accounts.key'}",
            *self._options,
        ]

    def _write_files(self) -> None:
        self._authority.issue("server")
        self._authority.issue("certified")
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (self._directory / "accounts.key").write_bytes(key.private_bytes(*form))
        rows = [f"{self.tokens['admin']},admin,admin,system:masters", f"{self.tokens['visitor']},visitor,visitor"]
        (self._directory / "tokens").write_text("\n".join(rows))
        self.kubeconfig.write_text(json.dumps(self._describe_access()))  # JSON is YAML

    def _describe_access(self) -> dict[str, object]:
        certificate = {"client-certificate": "certified.pem", "client-key": "certified.key"}
        users = {**{name: {"token": token} for name, token in self.tokens.items()}, "certified": certificate}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "admin",
            "clusters": [
                {"name": "tests", "cluster": {"server": self.url, "certificate-authority": str(self.authority_file)}}
            ],
            "users": [{"name": name, "user": user} for name, user in users.items()],
            "contexts": [{"name": name, "context": {"cluster": "tests", "user": name}} for name in users],
        }


class SharedKubernetes(SharedServer):
    """The Kubernetes API of a test run; its address is the path of a kubeconfig."""

    def __init__(self) -> None:
        super().__init__(KUBERNETES_CONFIG, _run_shared)


@contextmanager
def _run_shared() -> Iterator[str]:
    with temporary_kubernetes() as server:
        yield str(server.kubeconfig)


@contextmanager
def temporary_kubernetes(*, options: Sequence[str] = ()) -> Iterator[KubernetesServer]:
    """Run an empty Kubernetes API for the length of a block; several may run at once."""
    with temporary_directory() as directory:
        server = KubernetesServer(directory, options=options)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def find_kubernetes() -> Path:
    """Return the directory with kube-apiserver and etcd."""
    named = os.environ.get(KUBERNETES_BINARIES)
    place = Path(named) if named else build_directory("kubernetes")
    if all(os.access(place / program, os.X_OK) for program in ("kube-apiserver", "etcd")):
        return place
    raise ServerMissingError(
        f"kube-apiserver and etcd are not {'in $' + KUBERNETES_BINARIES if named else 'built'}; to enable: "
        f".ci/servers, which builds them in 6 minutes, or {KUBERNETES_CONFIG}=kubeconfig of a cluster for tests"
    )


class _Program:
    """A program that runs until it is killed, or until the thread that started it ends."""

    def __init__(self, file: Path, log: Path) -> None:
        self._file = file
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, arguments: Sequence[str]) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the binary that find_kubernetes found
                [str(shutil.which("setpriv")), "--pdeathsig=KILL", str(self._file), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, which still need the server to tidy up
            )

    def check(self) -> None:
        """Raise if the program has ended."""
        if self._process is None or self._process.poll() is not None:
            raise ServerError(f"{self._file.name} did not start:\n{self.log()}")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")[-3000:]


def _is_answered(request: Request, context: ssl.SSLContext) -> bool:
    try:
        with urlopen(request, timeout=5, context=context) as response:  # noqa: S310 - https, see above
            return bool(response.status == 200)
    except (OSError, HTTPException):
        return False
