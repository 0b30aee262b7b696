"""A connection to RabbitMQ that cannot be made."""

from __future__ import annotations

import gc

import pytest
from aio_pika import Connection

from hyperfleet.backends.rabbitmq_link import Link
from hyperfleet.errors import BrokerUnavailable
from tests.servers import free_port

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests in asyncio."""
    return "asyncio"


async def test_an_attempt_that_failed_is_closed() -> None:
    """Otherwise the library closes it when it is collected, and warns of a coroutine if no loop runs there."""
    port = free_port()
    with pytest.raises(BrokerUnavailable):
        await Link(f"amqp://fleet@127.0.0.1:{port}/", "test", 1.0).connection()
    mine = [each for each in gc.get_objects() if isinstance(each, Connection) and each.url.port == port]
    assert all(each.is_closed for each in mine)
