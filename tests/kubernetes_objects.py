"""Objects for tests of Kubernetes: manifests, kinds of their own, and waiting for what an API server does by itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from hyperfleet.backends.kubernetes.api_server import ApiServerClient
from hyperfleet.backends.kubernetes.kubeconfig import load_access
from hyperfleet.errors import KindUnknown, KubernetesError
from hyperfleet.kubernetes.port import KubernetesObject, ObjectClient, ObjectKind, ObjectRef

MANAGER: Final = "tests"
NAMESPACE: Final = ObjectKind("v1", "Namespace")
CONFIG_MAP: Final = ObjectKind("v1", "ConfigMap")
DEPLOYMENT: Final = ObjectKind("apps/v1", "Deployment")
WIDGET: Final = ObjectKind("tests.hyperfleet.io/v1", "Widget")

_PATIENCE: Final = 60.0  # seconds; everything that is waited for happens within one, unless the machine is very busy


def connect_to(kubeconfig: Path, context: str = "", *, page: int = 500, timeout: float = 30.0) -> ApiServerClient:
    """Make a client of the cluster of a kubeconfig."""
    return ApiServerClient(load_access(str(kubeconfig), context, environment=os.environ), page=page, timeout=timeout)


@contextmanager
def temporary_namespace(kubeconfig: Path) -> Iterator[str]:
    """Make a namespace in a real cluster. Not for coroutines: it runs an event loop of its own."""
    name = f"test-{uuid4().hex[:12]}"

    async def change(action: Callable[[ApiServerClient], Awaitable[object]]) -> None:
        client = connect_to(kubeconfig)
        await action(client)
        await client.close()

    asyncio.run(change(lambda client: client.apply(namespace(name), manager=MANAGER)))
    try:
        yield name
    finally:  # in a private API it stays, because no controller removes it
        asyncio.run(change(lambda client: client.delete(ObjectRef(NAMESPACE, "", name))))


def namespace(name: str) -> KubernetesObject:
    """Return the manifest of a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def config_map(place: str, name: str, data: dict[str, str] | None = None, **metadata: Any) -> KubernetesObject:
    """Return the manifest of a ConfigMap."""
    content = {} if data is None else {"data": data}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": place, "name": name, **metadata},
        **content,
    }


def deployment(place: str, name: str, image: str = "web:1", **spec: Any) -> KubernetesObject:
    """Return the manifest of a Deployment."""
    labels = {"app": name}
    containers = [{"name": "web", "image": image}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": place, "name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
            **spec,
        },
    }


def widget(place: str, name: str, **fields: Any) -> KubernetesObject:
    """Return the manifest of an object of our own kind."""
    metadata = {"namespace": place, "name": name}
    return {"apiVersion": WIDGET.api_version, "kind": WIDGET.kind, "metadata": metadata, **fields}


def definition(kind: ObjectKind = WIDGET, *, scope: str = "Namespaced") -> KubernetesObject:
    """Return a CustomResourceDefinition that allows any fields in spec and status."""
    group, _, version = kind.api_version.partition("/")
    plural = f"{kind.kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.kind.lower(), "kind": kind.kind},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


async def install(client: ObjectClient, manifest: KubernetesObject) -> None:
    """Apply a CustomResourceDefinition, and return when its kind can be used."""
    await client.apply(manifest, manager=MANAGER, force=True)
    spec = manifest["spec"]
    kind = ObjectKind(f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"])

    async def is_served() -> bool:
        try:
            await client.discover(kind)
            await client.get(ObjectRef(kind, "default" if spec["scope"] == "Namespaced" else "", "none"))
        except KindUnknown:
            return False
        except KubernetesError:
            return True
        return True

    await until_true(is_served)


async def until(condition: Callable[[], bool]) -> None:
    """Return when something holds."""
    async with asyncio.timeout(_PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


async def until_true(condition: Callable[[], Awaitable[bool]]) -> None:
    """Return when a coroutine returns true."""
    async with asyncio.timeout(_PATIENCE):
        while not await condition():
            await asyncio.sleep(0.05)
