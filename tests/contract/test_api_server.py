"""What only a real API server shows: credentials, refusals, restarts, versions that it no longer has."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from hyperfleet.backends.kubernetes.api_server import ApiServerClient
from hyperfleet.backends.kubernetes.kubeconfig import load_access, read_kubeconfig, read_service_account
from hyperfleet.errors import (
    AccessError,
    KubernetesForbidden,
    KubernetesUnreachable,
    ObjectInvalid,
    ObjectNotFound,
    VersionExpired,
)
from hyperfleet.kubernetes.informer import Change, Informer, SharedInformers
from hyperfleet.kubernetes.port import ObjectKind, ObjectRef, Selection
from tests.certificates import Authority
from tests.kubernetes_objects import (
    CONFIG_MAP,
    MANAGER,
    NAMESPACE,
    WIDGET,
    config_map,
    connect_to,
    definition,
    deployment,
    install,
    namespace,
    until,
    until_true,
    widget,
)
from tests.kubernetes_server import KubernetesServer, temporary_kubernetes

pytestmark = pytest.mark.anyio
DEFAULT = ObjectRef(NAMESPACE, "", "default")


@pytest.fixture(scope="module")
def server(kubernetes_binaries: Path) -> Iterator[KubernetesServer]:
    """Give a server for this file. Its users are known, and it may be restarted between two tests."""
    with temporary_kubernetes() as server:
        yield server


@pytest.fixture
async def client(server: KubernetesServer, anyio_backend: str) -> AsyncIterator[ApiServerClient]:
    client = connect_to(server.kubeconfig)
    yield client
    await client.close()


@pytest.fixture
async def place(client: ApiServerClient) -> str:
    """Give the name of an empty namespace."""
    name = f"test-{uuid4().hex[:12]}"
    await client.apply(namespace(name), manager=MANAGER)
    return name


async def read_default(client: ApiServerClient) -> str:
    """Read an object that needs permission, and close the client."""
    try:
        return str((await client.get(DEFAULT))["metadata"]["name"])
    finally:
        await client.close()


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_field_that_the_kind_does_not_have_is_named(client: ApiServerClient, place: str) -> None:
    with pytest.raises(ObjectInvalid, match=r"\.spec\.typo"):
        await client.apply(deployment(place, "web", typo=1), manager=MANAGER)


async def test_the_reason_of_the_server_is_kept(client: ApiServerClient, place: str) -> None:
    with pytest.raises(ObjectInvalid, match=r"spec\.replicas: Invalid value: -1: must be greater than or equal to 0"):
        await client.apply(deployment(place, "web", replicas=-1), manager=MANAGER)


async def test_a_user_without_rights_is_told_so(server: KubernetesServer) -> None:
    with pytest.raises(KubernetesForbidden, match='User "visitor" cannot get resource "namespaces"'):
        await read_default(connect_to(server.kubeconfig, "visitor"))


async def test_a_kind_that_is_no_longer_served_is_noticed(client: ApiServerClient, place: str) -> None:
    kind = ObjectKind(f"{uuid4().hex[:8]}.hyperfleet.io/v1", "Gadget")
    manifest = definition(kind)
    await install(client, manifest)
    await client.delete(ObjectRef.of(manifest))

    async def is_unknown() -> bool:
        try:
            await client.list(Selection(kind))
        except Exception as error:  # noqa: BLE001  # while it is removed, the server gives several answers
            return type(error).__name__ == "KindUnknown"
        return False

    await until_true(is_unknown)


# ── access ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_client_certificate_is_accepted(server: KubernetesServer, client: ApiServerClient) -> None:
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "certified"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "certified"}],
    }
    with pytest.raises(KubernetesForbidden, match='User "certified"'):
        await read_default(connect_to(server.kubeconfig, "certified"))
    await client.apply(binding, manager=MANAGER)

    async def is_allowed() -> bool:
        try:
            return await read_default(connect_to(server.kubeconfig, "certified")) == "default"
        except KubernetesForbidden:
            return False

    await until_true(is_allowed)


async def test_a_service_account_reads_its_token_again(server: KubernetesServer, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(server.authority_file.read_bytes())
    (tmp_path / "namespace").write_text("some-place")
    token = tmp_path / "token"
    token.write_text("expired")
    port = server.url.rpartition(":")[2]
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
    access = load_access(environment=environment, service_account=tmp_path)
    assert (access.namespace, access.server) == ("some-place", server.url)
    client = ApiServerClient(access)
    with pytest.raises(KubernetesForbidden):
        await client.get(DEFAULT)
    token.write_text(server.tokens["admin"])
    assert await read_default(client) == "default"


async def test_a_plugin_gives_tokens(server: KubernetesServer, tmp_path: Path) -> None:
    """The plugin first gives a token that is not accepted. It is asked twice, not for every request."""
    (tmp_path / "tokens").write_text(f"wrong\n{server.tokens['admin']}\n")
    (tmp_path / "plugin.py").write_text(
        "import json, os, sys\n"
        "question = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "token, *others = open(sys.argv[1]).read().split()\n"
        "open(sys.argv[1], 'w').write('\\n'.join(others))\n"
        "assert question['spec']['cluster']['server'].startswith('https://') and os.environ['EXTRA'] == 'yes'\n"
        "status = {'token': token}\n"
        "print(json.dumps({'apiVersion': question['apiVersion'], 'kind': 'ExecCredential', 'status': status}))\n"
    )
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(tmp_path / "plugin.py"), str(tmp_path / "tokens")],
        "env": [{"name": "EXTRA", "value": "yes"}],
        "provideClusterInfo": True,
    }
    client = ApiServerClient(read_kubeconfig([write_kubeconfig(tmp_path, server, {"exec": plugin})]))
    await asyncio.gather(*(client.get(DEFAULT) for _ in range(5)))
    assert await read_default(client) == "default"
    assert not (tmp_path / "tokens").read_text()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["/nowhere/plugin"], "/nowhere/plugin cannot be run: No such file or directory. Get it from us"),
        (["/bin/sh", "-c", "echo broken >&2; exit 3"], "/bin/sh ended with 3: broken"),
        (["/bin/sh", "-c", "echo no"], "/bin/sh did not print an ExecCredential"),
        (["/bin/sh", "-c", "echo '{\"status\": {}}'"], "/bin/sh printed no token"),
    ],
)
async def test_a_plugin_that_fails_is_named(
    server: KubernetesServer, tmp_path: Path, command: list[str], message: str
) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": command[0],
        "args": command[1:],
        "installHint": "Get it from us",
    }
    client = ApiServerClient(read_kubeconfig([write_kubeconfig(tmp_path, server, {"exec": plugin})]))
    with pytest.raises(KubernetesForbidden, match=message):
        await read_default(client)


async def test_another_user_is_impersonated(server: KubernetesServer, tmp_path: Path) -> None:
    user = {"token": server.tokens["admin"], "as": "guest", "as-groups": ["one", "two"]}
    with pytest.raises(KubernetesForbidden, match='User "guest"'):
        await read_default(ApiServerClient(read_kubeconfig([write_kubeconfig(tmp_path, server, user)])))


async def test_a_server_with_a_certificate_of_others_is_not_trusted(server: KubernetesServer, tmp_path: Path) -> None:
    other = {"certificate-authority": str(Authority(tmp_path, "other").file)}
    path = write_kubeconfig(tmp_path, server, {"token": server.tokens["admin"]}, other)
    with pytest.raises(KubernetesUnreachable, match="certificate verify failed"):
        await read_default(ApiServerClient(read_kubeconfig([path])))
    path = write_kubeconfig(tmp_path, server, {"token": server.tokens["admin"]}, {"insecure-skip-tls-verify": True})
    assert await read_default(ApiServerClient(read_kubeconfig([path]))) == "default"


async def test_the_name_in_the_certificate_can_be_given(server: KubernetesServer, tmp_path: Path) -> None:
    trusted = {"certificate-authority": str(server.authority_file)}
    user = {"token": server.tokens["admin"]}
    path = write_kubeconfig(tmp_path, server, user, {**trusted, "tls-server-name": "localhost"})
    assert await read_default(ApiServerClient(read_kubeconfig([path]))) == "default"
    path = write_kubeconfig(tmp_path, server, user, {**trusted, "tls-server-name": "elsewhere"})
    with pytest.raises(KubernetesUnreachable, match="elsewhere"):
        await read_default(ApiServerClient(read_kubeconfig([path])))


async def test_a_service_account_without_a_token_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="token cannot be read"):
        read_service_account(tmp_path, {"KUBERNETES_SERVICE_HOST": "127.0.0.1"})


def write_kubeconfig(
    directory: Path, server: KubernetesServer, user: Mapping[str, object], cluster: Mapping[str, object] | None = None
) -> Path:
    """Write a kubeconfig with one context."""
    trust = {"certificate-authority": str(server.authority_file)} if cluster is None else cluster
    content = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server.url, **trust}}],
        "users": [{"name": "it", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    path = directory / "kubeconfig"
    path.write_text(json.dumps(content))
    return path


# ── servers that go away ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_server_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    """Nothing answers at the address; every call ends in its time."""

    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(ignore, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    path = tmp_path / "kubeconfig"
    cluster = {"name": "it", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "it", "context": {"cluster": "it"}}
    path.write_text(json.dumps({"current-context": "it", "clusters": [cluster], "contexts": [context]}))
    with pytest.raises(KubernetesUnreachable, match=r"did not answer within 0\.2 s"):
        await read_default(connect_to(path, timeout=0.2))
    silent.close()
    await silent.wait_closed()
    with pytest.raises(KubernetesUnreachable, match="cannot be reached"):
        await read_default(connect_to(path))


async def test_calls_and_informers_survive_a_restart(server: KubernetesServer) -> None:
    client, name = connect_to(server.kubeconfig), f"test-{uuid4().hex[:12]}"
    await client.apply(namespace(name), manager=MANAGER)
    await client.apply(config_map(name, "before"), manager=MANAGER)
    informers = SharedInformers(client)
    changes: list[Change] = []
    selection = Selection(CONFIG_MAP, name)
    informer = informers.follow(selection, changes.append)
    assert informers.follow(selection) is informer
    await informer.wait_synced()
    server.kill_api()
    await until(lambda: isinstance(informer.error, KubernetesUnreachable))
    with pytest.raises(KubernetesUnreachable):
        await client.get(DEFAULT)
    server.start_api()
    made = await client.apply(config_map(name, "after"), manager=MANAGER)
    await until(lambda: informer.get(ObjectRef.of(made)) == made)
    assert informer.error is None
    await informers.release(selection)
    await client.delete(ObjectRef.of(made))
    await until(lambda: informer.get(ObjectRef.of(made)) is None)
    assert [(each.ref.name, each.after is None) for each in changes] == [
        ("before", False),
        ("after", False),
        ("after", True),
    ]
    await informers.release(selection, changes.append)
    assert informers.informers() == []
    await client.close()


@pytest.fixture
def forgetful_server(kubernetes_binaries: Path) -> Iterator[KubernetesServer]:
    """Give a server without a cache: it asks etcd, which forgets versions when we say so."""
    with temporary_kubernetes(options=["--watch-cache=false"]) as server:
        yield server


async def test_old_versions_expire(forgetful_server: KubernetesServer) -> None:
    """An informer that was away lists again; a list whose next page has expired begins again."""
    client = connect_to(forgetful_server.kubeconfig, page=1)
    await client.apply(namespace("test"), manager=MANAGER)
    names = [f"object-{number:02d}" for number in range(20)]
    for name in names:
        await client.apply(config_map("test", name), manager=MANAGER)
    selection = Selection(CONFIG_MAP, "test")
    informer = Informer(client, selection)
    await run_until(informer, lambda: informer.is_synced)
    changes: list[Change] = []
    informer.add_handler(changes.append)
    del changes[:]
    old = (await client.list(selection)).version

    await client.delete(ObjectRef(CONFIG_MAP, "test", names[0]))
    await client.apply(config_map("test", names[1], {"k": "v"}), manager=MANAGER)
    forgetful_server.compact()
    with pytest.raises(VersionExpired):
        async with client.watch(selection, old) as events:
            await anext(events)
    await run_until(informer, lambda: len(changes) == 2)
    assert [(each.ref.name, each.after is None) for each in changes] == [(names[0], True), (names[1], False)]
    assert len(informer.items()) == 19

    listing = asyncio.create_task(client.list(selection))
    while not listing.done():
        await client.apply(config_map("default", "other", {"now": str(uuid4())}), manager=MANAGER)
        await asyncio.to_thread(forgetful_server.compact)
    assert [each["metadata"]["name"] for each in listing.result().items] == names[1:]
    await client.close()


async def run_until(informer: Informer, condition: Callable[[], bool]) -> None:
    """Run an informer until something holds. It resumes where it was when it is run again."""
    task = asyncio.create_task(informer.run())
    await until(condition)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_two_clusters_are_apart(server: KubernetesServer, kubernetes_binaries: Path) -> None:
    first = connect_to(server.kubeconfig)
    with temporary_kubernetes() as other:
        second = connect_to(other.kubeconfig)
        await install(second, definition())
        await second.apply(widget("default", "a", spec={}), manager=MANAGER)
        assert len((await second.list(Selection(WIDGET))).items) == 1
        for client in (first, second):
            await client.apply(config_map("default", "where", {"url": server.url}), manager=MANAGER)
        await first.delete(ObjectRef(CONFIG_MAP, "default", "where"))
        assert await second.get(ObjectRef(CONFIG_MAP, "default", "where"))
        with pytest.raises(ObjectNotFound):
            await first.get(ObjectRef(CONFIG_MAP, "default", "where"))
        await second.close()
    await first.close()
