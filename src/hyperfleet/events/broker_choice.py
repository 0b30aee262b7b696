"""Which broker events go to: what the block `pubsub` of the policy and the settings say together. Pure."""

from __future__ import annotations

from msgspec import Struct

from hyperfleet.messaging import Provider, PubSubBlock, RetryPolicy, TopicNames

_NEEDED: dict[Provider, str] = {"rabbitmq": "pubsub.url", "gcp-pubsub": "pubsub.project"}


class BrokerChoice(Struct, frozen=True):
    """The broker, its topics, and what is wrong with the configuration but does not stop the start."""

    provider: Provider = "in-process"
    topics: TopicNames = TopicNames()
    retry: RetryPolicy = RetryPolicy()
    warning: str = ""


def choose_broker(block: PubSubBlock | None, addressed: frozenset[Provider]) -> BrokerChoice:
    """Choose a broker; `addressed` are the providers that the settings give an address of.

    A policy that names a broker without an address starts on the in-process broker, with a warning: events are kept
    and can be pulled, so nothing is lost while the address is added.
    """
    wanted = block or PubSubBlock()
    provider: Provider = "in-process"
    if wanted.provider is not None:
        provider = wanted.provider
    elif len(addressed) > 1:
        warning = "several brokers have an address: say which one in pubsub.provider of the policy"
        return BrokerChoice("in-process", wanted.topics, wanted.retry, warning)
    elif addressed:
        provider = min(addressed)
    if provider == "in-process" or provider in addressed:
        return BrokerChoice(provider, wanted.topics, wanted.retry)
    warning = f"the policy says {provider}, but {_NEEDED[provider]} is not set: events stay in this server's own queues"
    return BrokerChoice("in-process", wanted.topics, wanted.retry, warning)
