"""A small fleet in many states, for tests of output; the same in every run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hyperfleet.events.webhook_state import WebhookState
from tests.unit.cli.terminal import Terminal

ADAPTERS = ("validation", "dns", "infrastructure", "hypershift")


class Scene:
    """The resources of the fleet, by name."""

    def __init__(self, terminal: Terminal) -> None:
        self.server = terminal.server
        self.clusters: dict[str, Any] = {}
        self.pools: dict[str, Any] = {}

    def create(self, name: str, **labels: str) -> Any:
        """Create a cluster."""
        self.clusters[name] = self.server.create(name, labels=labels)
        return self.clusters[name]

    def report(self, name: str, adapter: str, available: str, **more: Any) -> None:
        """Report on a cluster."""
        self.server.report(self.clusters[name], adapter, available, **more)


def set_up(terminal: Terminal) -> Scene:
    """Let two hours and some minutes pass in which the fleet comes about."""
    scene = Scene(terminal)
    scene.create("payments", env="prod", region="eu-west-1")
    scene.create("ledger", env="test", region="eu-west-1")
    terminal.pass_time(hours=2)
    scene.create("shop", env="prod", region="us-east-1")
    scene.report("payments", "validation", "True/JobSucceeded/Job completed successfully after 115 seconds")
    for adapter in ADAPTERS:
        scene.report("shop", adapter, "True/Done/All is well")
    terminal.pass_time(minutes=3)
    scene.create("search", env="test", region="us-east-1")
    scene.report("search", "validation", "True/JobSucceeded/Job completed successfully")
    scene.report("search", "dns", "False/JobRunning/3 of 5 records created")
    scene.report("payments", "dns", "False/Throttled/zone payments: 17 of 20 calls failed")
    scene.report("ledger", "dns", "False/Throttled/zone ledger: 3 of 20 calls failed")
    for name in ("workers", "infra", "gpu"):
        scene.pools[name] = terminal.server.create_pool(scene.clusters["payments"], name)
    scene.pools["shop/workers"] = terminal.server.create_pool(scene.clusters["shop"], "workers")
    for name in ("workers", "infra", "shop/workers"):
        terminal.server.report(scene.pools[name], "nodepool", "True/Ready/All machines are there")
    terminal.server.report(scene.pools["gpu"], "nodepool", "False/QuotaExceeded/no GPUs left in eu-west-1")
    disable_webhook(scene)
    terminal.pass_time(seconds=66)
    return scene


def disable_webhook(scene: Scene) -> None:
    """Let the webhook `ops` have failed for a day."""
    server, now = scene.server, scene.server.clock.now()
    failed = WebhookState(
        sent_time=now - timedelta(hours=25),
        failing_since=now - timedelta(days=1),
        disabled_time=now,
        last_error="https://hooks.example.org answered 500",
    )
    server.run(server.store.save_webhook("ops", failed.encode()))
