"""Opens the broker that was chosen, with what the settings and a broker.yaml of the Go programs say of it.

Part of the composition root. A driver is imported only if its broker is chosen.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from hyperfleet.document_problem import DocumentProblem
from hyperfleet.errors import SettingsError
from hyperfleet.events.broker_choice import BrokerChoice
from hyperfleet.messaging import Broker, Provider, Topic
from hyperfleet.settings import Named, PubSubSettings
from hyperfleet.settings.broker_file import load_broker_file
from hyperfleet.settings.broker_sections import GoogleSection, RabbitSection
from hyperfleet.settings.google_options import make_pubsub_options

_LOG: Final = logging.getLogger(__name__)


class BrokerAddresses(Struct, frozen=True):
    """How brokers can be reached; None: no address is given."""

    rabbitmq: RabbitSection | None = None
    google: GoogleSection | None = None

    @property
    def providers(self) -> frozenset[Provider]:
        """Return the brokers that have an address."""
        found: list[tuple[Provider, object]] = [("rabbitmq", self.rabbitmq), ("gcp-pubsub", self.google)]
        return frozenset(provider for provider, section in found if section is not None)


def read_addresses(settings: PubSubSettings, environment: Mapping[str, str]) -> BrokerAddresses:
    """Read the settings, or the broker.yaml that they name; raises `SettingsError` with its problems."""
    if settings.broker_file is not None:
        file = load_broker_file(Path(settings.broker_file), environment)
        for difference in file.differences:
            _LOG.warning("%s", difference)
        return BrokerAddresses(file.rabbitmq) if file.type == "rabbitmq" else BrokerAddresses(google=file.google)
    return BrokerAddresses(
        None if settings.url is None else RabbitSection(url=settings.url, exchange_type="topic"),
        None if settings.project is None else GoogleSection(project_id=settings.project),
    )


def open_external(
    choice: BrokerChoice, addresses: BrokerAddresses, on_unroutable: Callable[[Topic, int], None]
) -> Broker | None:
    """Return the broker that was chosen, not yet connected; None: the in-process one."""
    if choice.provider == "rabbitmq" and addresses.rabbitmq is not None:
        return _open_rabbitmq(choice, addresses.rabbitmq, on_unroutable)
    if choice.provider == "gcp-pubsub" and addresses.google is not None:
        return _open_google(choice, addresses.google)
    return None


def _open_rabbitmq(choice: BrokerChoice, section: RabbitSection, on_unroutable: Callable[[Topic, int], None]) -> Broker:
    from hyperfleet.backends.rabbitmq import RabbitBroker
    from hyperfleet.backends.rabbitmq_topology import RabbitOptions

    options = RabbitOptions(
        url=section.url,
        topics=choice.topics,
        retry=choice.retry,
        exchange=section.exchange,
        exchange_type=section.exchange_type,
        queue=section.queue,
        routing_key=section.routing_key,
        prefetch=section.prefetch_count,
    )
    broker = RabbitBroker(options)
    broker.on_unroutable = on_unroutable
    return broker


def _open_google(choice: BrokerChoice, section: GoogleSection) -> Broker:
    from hyperfleet.backends.google_pubsub import PubSubBroker
    from hyperfleet.backends.google_pubsub_options import find_problems

    options = make_pubsub_options(section.project_id, choice.topics, choice.retry, section)
    if problems := find_problems(options):
        place = Named("pubsub.project", 0, 0)
        raise SettingsError([DocumentProblem(place, problem, "NotAllowed") for problem in problems])
    return PubSubBroker(options)
