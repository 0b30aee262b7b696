"""A kubeconfig file as people and programs write it. What we do not use is left out; unknown keys are allowed."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field


class ClusterEntry(Struct, frozen=True, rename="kebab"):
    """Where a cluster is, and how its certificate is checked."""

    server: str
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class ExecVariable(Struct, frozen=True):
    """A variable of the environment of a plugin."""

    name: str
    value: str


class ExecEntry(Struct, frozen=True, rename="camel"):
    """A program that prints credentials."""

    command: str
    api_version: str
    args: tuple[str, ...] | None = None
    env: tuple[ExecVariable, ...] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False


class UserEntry(Struct, frozen=True, rename="kebab"):
    """How to show who we are."""

    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: ExecEntry | None = None
    username: str = ""
    auth_provider: Any = None
    as_user: str = field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] | None = None


class ContextEntry(Struct, frozen=True):
    """A cluster and a user."""

    cluster: str
    user: str = ""
    namespace: str = ""


class NamedCluster(Struct, frozen=True):
    """A cluster and its name."""

    name: str
    cluster: ClusterEntry


class NamedUser(Struct, frozen=True):
    """A user and its name."""

    name: str
    user: UserEntry | None = None


class NamedContext(Struct, frozen=True):
    """A context and its name."""

    name: str
    context: ContextEntry


class Kubeconfig(Struct, frozen=True, rename="kebab"):
    """One file."""

    current_context: str = ""
    clusters: tuple[NamedCluster, ...] | None = None
    users: tuple[NamedUser, ...] | None = None
    contexts: tuple[NamedContext, ...] | None = None
