"""A relay, or a consumer that crashes, in a process of its own: `python -m tests.e2e.event_process`."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

from hyperfleet.backends.clock import SystemClock
from hyperfleet.backends.rabbitmq import RabbitBroker
from hyperfleet.backends.rabbitmq_topology import RabbitOptions
from hyperfleet.bootstrap import open_store
from hyperfleet.events.relay import Relay
from hyperfleet.messaging import Subscription, TopicNames
from tests.e2e.event_audit import origin_of

_SURVIVED = 40  # messages that a consumer handles before it crashes, on average


async def run_relay(rabbit: str, events: str, updates: str, database: str, holder: str) -> None:
    """Publish until this process is ended; print who publishes when that changes."""
    store = open_store(database, 2)
    await store.open()
    broker = RabbitBroker(RabbitOptions(url=rabbit, topics=TopicNames(cluster_events=events, status_updates=updates)))
    relay = Relay(store, broker, SystemClock(), holder, origin_of)
    store.on_foreign_commit(relay.loop.nudge)
    await relay.start()
    was_publishing = None
    while True:
        if relay.is_publishing != was_publishing:
            was_publishing = relay.is_publishing
            print("publishing" if was_publishing else "waiting", flush=True)  # noqa: T201 - for the test
        await asyncio.sleep(0.05)


async def run_consumer(rabbit: str, events: str, updates: str, file: str) -> None:
    """Write the ids of messages to a file; crash now and then between that and the acknowledgement."""
    broker = RabbitBroker(RabbitOptions(url=rabbit, topics=TopicNames(cluster_events=events, status_updates=updates)))
    with Path(file).open("a") as done:
        async with broker.receive(Subscription("audit"), prefetch=8) as deliveries:
            async for delivery in deliveries:
                done.write(f"{delivery.message.id}\n")
                done.flush()
                if random.random() < 1 / _SURVIVED:
                    os.kill(os.getpid(), signal.SIGKILL)
                await delivery.ack()


if __name__ == "__main__":
    work = {"relay": run_relay, "consumer": run_consumer}[sys.argv[1]]
    asyncio.run(work(*sys.argv[2:]))  # type: ignore[operator]
