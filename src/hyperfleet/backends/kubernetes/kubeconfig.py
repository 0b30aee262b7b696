"""Finds and reads how to reach a cluster: a kubeconfig, or the service account of the pod that we run in.

A given path wins over `$KUBECONFIG`, that over the service account, and that over `~/.kube/config`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

from msgspec import Struct, structs

from hyperfleet.backends.kubernetes.access import ClientCertificate, ClusterAccess, ExecPlugin, StaticToken, TokenFile
from hyperfleet.backends.kubernetes.kubeconfig_document import ClusterEntry, ExecEntry, Kubeconfig, UserEntry
from hyperfleet.documents import DocumentProblem, load
from hyperfleet.documents.wording import list_choices, quote
from hyperfleet.errors import AccessError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
T = TypeVar("T")

_MAX_BYTES: Final = 4_000_000  # of one file; those of large organisations have some 100 kB


def load_access(
    path: str = "",
    context: str = "",
    *,
    environment: Mapping[str, str],
    service_account: Path = SERVICE_ACCOUNT,
) -> ClusterAccess:
    """Return how to reach the cluster of a context, or of the current one."""
    named = path or environment.get("KUBECONFIG", "")
    if named:
        return read_kubeconfig([Path(each).expanduser() for each in named.split(":") if each], context)
    if "KUBERNETES_SERVICE_HOST" in environment and not context:
        return read_service_account(service_account, environment)
    default = Path(environment.get("HOME", "~")).expanduser() / ".kube/config"
    if not default.exists():
        raise AccessError("no cluster is named: give a kubeconfig, set KUBECONFIG, or run inside a cluster")
    return read_kubeconfig([default], context)


def read_service_account(directory: Path, environment: Mapping[str, str]) -> ClusterAccess:
    """Return how a pod reaches the cluster that it runs in."""
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    namespace = directory / "namespace"
    _read(directory / "token")  # the file must be there now, not only at the first request
    return ClusterAccess(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=_read(namespace).decode().strip() if namespace.exists() else "default",
        authority=_read(directory / "ca.crt"),
        credentials=TokenFile(directory / "token"),
    )


class _Entry(Struct, Generic[T], frozen=True):
    """An entry of a kubeconfig, and the directory of its file: paths are relative to it."""

    value: T
    directory: Path


def read_kubeconfig(paths: Sequence[Path], context: str = "") -> ClusterAccess:
    """Return how to reach the cluster of a context; of entries of one name in several files the first one counts."""
    files = {path: _parse(path) for path in paths if path.exists() or len(paths) == 1}
    where = ", ".join(map(str, paths))
    if not files:
        raise AccessError(f"none of these kubeconfig files exists: {where}")
    wanted = context or next((file.current_context for file in files.values() if file.current_context), "")
    if not wanted:
        raise AccessError(f"{where}: no context is chosen, and there is no current-context")
    contexts = _merge(files, lambda file: {each.name: each.context for each in file.contexts or ()})
    clusters = _merge(files, lambda file: {each.name: each.cluster for each in file.clusters or ()})
    users = _merge(files, lambda file: {each.name: each.user or UserEntry() for each in file.users or ()})
    chosen = _find(contexts, "context", wanted, where).value
    cluster = _find(clusters, "cluster", chosen.cluster, where)
    access = structs.replace(_read_cluster(cluster), namespace=chosen.namespace or "default")
    return _add_user(access, _find(users, "user", chosen.user, where), cluster) if chosen.user else access


def _merge(files: Mapping[Path, Kubeconfig], entries: Callable[[Kubeconfig], dict[str, T]]) -> dict[str, _Entry[T]]:
    merged: dict[str, _Entry[T]] = {}
    for path, file in files.items():
        for name, value in entries(file).items():
            merged.setdefault(name, _Entry(value, path.parent))
    return merged


def _find(entries: Mapping[str, _Entry[T]], what: str, name: str, where: str) -> _Entry[T]:
    if name not in entries:
        known = f"it has {list_choices(sorted(entries))}" if entries else "it has none"
        raise AccessError(f"{where}: there is no {what} {quote(name)}; {known}")
    return entries[name]


def _parse(path: Path) -> Kubeconfig:
    try:
        text = _read(path).decode()
    except UnicodeDecodeError as error:
        raise AccessError(f"{path}: not a text in UTF-8") from error
    loaded = load(text, Kubeconfig, file=str(path))
    if loaded.value is None:
        raise AccessError("\n".join(map(_describe, loaded.problems)))
    return loaded.value


def _describe(problem: DocumentProblem) -> str:
    """Describe a problem without the line that it is in, and without the value of a user: both may be secrets."""
    is_of_user = problem.place.path.startswith("/users/")
    message = f"{problem.place.path} is not what it should be" if is_of_user else problem.message
    return f"{problem.place}: {message}"


# ── entries ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_cluster(entry: _Entry[ClusterEntry]) -> ClusterAccess:
    cluster = entry.value
    if not cluster.server.startswith(("https://", "http://")):
        raise AccessError(f"the server of a cluster must be a URL with https or http, found {quote(cluster.server)}")
    return ClusterAccess(
        server=cluster.server.rstrip("/"),
        authority=_read_either(
            cluster.certificate_authority_data, cluster.certificate_authority, entry.directory, "certificate-authority"
        ),
        is_insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url,
    )


def _add_user(access: ClusterAccess, entry: _Entry[UserEntry], cluster: _Entry[ClusterEntry]) -> ClusterAccess:
    user = entry.value
    if user.auth_provider is not None or user.username:
        what = "auth-provider" if user.auth_provider is not None else "username"
        raise AccessError(
            f"{what} in a kubeconfig is not supported, nor is it by Kubernetes any more; use exec or a token"
        )
    groups = [("Impersonate-Group", group) for group in user.as_groups or ()]
    impersonation = [("Impersonate-User", user.as_user), ("Impersonate-Uid", user.as_uid), *groups]
    return structs.replace(
        access,
        credentials=_read_credentials(user, entry.directory, cluster.value),
        certificate=_read_certificate(user, entry.directory),
        headers=[(name, value) for name, value in impersonation if value],
    )


def _read_credentials(
    user: UserEntry, directory: Path, cluster: ClusterEntry
) -> StaticToken | TokenFile | ExecPlugin | None:
    if user.token_file:
        return TokenFile(directory / user.token_file)
    if user.token:
        return StaticToken(user.token)
    return _read_plugin(user.exec, directory, cluster) if user.exec else None


def _read_plugin(plugin: ExecEntry, directory: Path, cluster: ClusterEntry) -> ExecPlugin:
    if plugin.api_version not in ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"):
        raise AccessError(f"exec: the apiVersion {quote(plugin.api_version)} is not supported")
    information = {
        "server": cluster.server,
        "certificate-authority-data": cluster.certificate_authority_data,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "tls-server-name": cluster.tls_server_name,
        "proxy-url": cluster.proxy_url,
    }
    return ExecPlugin(
        api_version=plugin.api_version,
        command=str(directory / plugin.command) if "/" in plugin.command else plugin.command,
        arguments=plugin.args or (),
        environment={each.name: each.value for each in plugin.env or ()},
        hint=plugin.install_hint,
        cluster={key: value for key, value in information.items() if value} if plugin.provide_cluster_info else None,
    )


def _read_certificate(user: UserEntry, directory: Path) -> ClientCertificate | None:
    certificate = _read_either(user.client_certificate_data, user.client_certificate, directory, "client-certificate")
    key = _read_either(user.client_key_data, user.client_key, directory, "client-key")
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise AccessError(f"{'client-key' if key is None else 'client-certificate'} is missing")
    return ClientCertificate(certificate, key)


def _read_either(data: str, path: str, directory: Path, name: str) -> bytes | None:
    """Return what is in the file itself, or else in the file that it names."""
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise AccessError(f"{name}-data is not base64") from error
    return _read(directory / path) if path else None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise AccessError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > _MAX_BYTES:
        raise AccessError(f"{path} has more than {_MAX_BYTES} bytes")
    return content
