"""How to reach a cluster is found in files; what is wrong with them is said with its place, and secrets stay secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperfleet.backends.kubernetes.access import ExecPlugin, StaticToken, TokenFile
from hyperfleet.backends.kubernetes.connection import connect
from hyperfleet.backends.kubernetes.kubeconfig import load_access, read_kubeconfig
from hyperfleet.errors import AccessError
from tests.certificates import Authority

TEXT = """\
apiVersion: v1
kind: Config
current-context: first
preferences: {}
clusters:
- name: one
  cluster: {server: "https://one.example:6443/", certificate-authority-data: UEVN}
- name: two
  cluster: {server: "https://two.example", tls-server-name: inner, proxy-url: "http://proxy.example"}
users:
- name: alice
  user: {token: very-secret}
- name: robot
  user: {tokenFile: tokens/robot}
- name: cloud
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./login, args: [--very-secret, x], env: null}
contexts:
- {name: first, context: {cluster: one, user: alice, namespace: team}}
- {name: second, context: {cluster: two, user: robot}}
- {name: third, context: {cluster: two, user: cloud}}
- {name: anonymous, context: {cluster: two}}
- {name: lost, context: {cluster: three}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "config"
    file.write_text(TEXT)
    return file


def test_the_current_context_is_used(path: Path) -> None:
    access = load_access(str(path), environment={})
    assert (access.server, access.namespace, access.authority) == ("https://one.example:6443", "team", b"PEM")
    assert access.credentials == StaticToken("very-secret")


def test_a_context_is_chosen_and_paths_are_relative_to_the_file(path: Path) -> None:
    access = load_access(str(path), "second", environment={})
    assert (access.server_name, access.proxy, access.namespace) == ("inner", "http://proxy.example", "default")
    assert access.credentials == TokenFile(path.parent / "tokens/robot")
    plugin = load_access(str(path), "third", environment={}).credentials
    assert isinstance(plugin, ExecPlugin)
    assert (plugin.command, plugin.arguments) == (str(path.parent / "login"), ("--very-secret", "x"))
    assert load_access(str(path), "anonymous", environment={}).credentials is None


def test_secrets_are_not_shown(path: Path) -> None:
    for context in ("first", "third"):
        access = load_access(str(path), context, environment={})
        assert "very-secret" not in f"{access!r} {access.credentials!r}"


def test_where_it_is_looked_for(path: Path, tmp_path: Path) -> None:
    assert load_access(environment={"KUBECONFIG": str(path)}).namespace == "team"
    (tmp_path / ".kube").mkdir()
    path.rename(tmp_path / ".kube/config")
    assert load_access(environment={"HOME": str(tmp_path)}).namespace == "team"
    with pytest.raises(AccessError, match="no cluster is named"):
        load_access(environment={"HOME": str(tmp_path / "elsewhere")})


def test_several_files_are_merged_and_the_first_counts(path: Path, tmp_path: Path) -> None:
    (tmp_path / "before").write_text("contexts: [{name: first, context: {cluster: two, namespace: mine}}]")
    named = f"{tmp_path}/missing:{tmp_path}/before:{path}"
    access = load_access(environment={"KUBECONFIG": named})
    assert (access.server, access.namespace) == ("https://two.example", "mine")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "config:1:1: the document is empty"),
        ("clusters: {}\nusers: 5", r"config:1:11: .*\n.*config:2:8: "),
        ("{very-secret: [", "config:"),
        ("users: [{name: a, user: {token: 7777}}]", "config:1:33: /users/0/user/token is not what it should be"),
        ("contexts: []", "there is no current-context"),
        ("current-context: a", 'there is no context "a"; it has none'),
    ],
)
def test_a_file_that_is_none_is_refused(path: Path, text: str, message: str) -> None:
    check_message(path, text, message)


ALICE = "{token: very-secret}"


@pytest.mark.parametrize(
    ("part", "instead", "message"),
    [
        ("current-context: first", "current-context: frist", 'no context "frist"; it has "anonymous", '),
        ("current-context: first", "current-context: lost", 'no cluster "three"; it has "one", "two"'),
        ("user: alice", "user: alcie", 'no user "alcie"; it has "alice", '),
        ("https://one", "one", "must be a URL with https or http"),
        ("UEVN", "'!'", "is not base64"),
        (ALICE, "{username: alice, password: very-secret}", "username .* not supported"),
        (ALICE, "{auth-provider: {name: gcp}}", "auth-provider .* not supported"),
        (ALICE, "{client-key-data: c2VjcmV0}", "client-certificate is missing"),
        (ALICE, "{client-certificate: none.pem}", r"none\.pem cannot be read: No such"),
        (
            ALICE,
            "{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: a}}",
            r'the apiVersion "client\.authentication\.k8s\.io/v1alpha1" is not supported',
        ),
    ],
)
def test_what_is_wrong_is_said(path: Path, part: str, instead: str, message: str) -> None:
    check_message(path, TEXT.replace(part, instead), message)


def check_message(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(AccessError, match=message) as caught:
        load_access(str(path), environment={})
    assert "very-secret" not in str(caught.value)
    assert "7777" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="none/config cannot be read: No such file"):
        read_kubeconfig([tmp_path / "none/config"])
    with pytest.raises(AccessError, match="none of these kubeconfig files exists"):
        read_kubeconfig([tmp_path / "a", tmp_path / "b"])


@pytest.mark.parametrize("password", [None, b"locked"])
def test_certificates_that_cannot_be_used_are_refused(tmp_path: Path, password: bytes | None) -> None:
    certificate, key = Authority(tmp_path).issue("client", password=password)
    if password is None:
        key.write_text("no key")
    user = f"{{client-certificate: {certificate.name}, client-key: {key.name}}}"
    (tmp_path / "config").write_text(
        "current-context: it\n"
        "clusters: [{name: it, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        f"users: [{{name: it, user: {user}}}]\n"
        "contexts: [{name: it, context: {cluster: it, user: it}}]\n"
    )
    with pytest.raises(AccessError, match=r"the certificates for .* cannot be used"):
        connect(read_kubeconfig([tmp_path / "config"]))
