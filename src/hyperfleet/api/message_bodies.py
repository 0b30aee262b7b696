"""Reads the bodies of requests about subscriptions, with every error in them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, get_args

from msgspec import Struct

from hyperfleet.aggregation import BodyProblem
from hyperfleet.documents.wording import quote, suggest
from hyperfleet.messaging import TOPICS, Topic

MAX_PULL: Final = 1_000
MAX_WAIT: Final = 20  # seconds, below the usual time limits of proxies
MAX_DEADLINE: Final = 600
DEFAULT_DEADLINE: Final = 60
MAX_RECEIPTS: Final = 1_000
MAX_ERROR: Final = 2_000

assert get_args(Topic) == TOPICS  # noqa: S101  # the schema and the check must name the same


class Pull(Struct, frozen=True):
    """How many messages to pull, how long they may take, and how long to wait for the first one."""

    limit: int = 10
    deadline: timedelta = timedelta(seconds=DEFAULT_DEADLINE)
    wait: int = 0


class Nack(Struct, frozen=True):
    """Deliveries that were not handled, and why. `is_poison`: to deliver them again does not help."""

    receipts: tuple[str, ...] = ()
    error: str = ""
    is_poison: bool = False


class MessageBodyReader:
    """Reads one body and collects its errors."""

    def __init__(self, body: object, known: tuple[str, ...]) -> None:
        """Read an object with these fields; an unknown one is an error."""
        self.errors: list[BodyProblem] = []
        self._fields: Mapping[str, Any] = {}
        if not isinstance(body, dict):
            self._refuse("", "WrongType", "the body must be an object")
            return
        self._fields = body
        for key in body:
            if key not in known:
                self._refuse(f"/{key}", "UnknownField", f"unknown field {quote(key)}{suggest(key, known)}")

    def number(self, name: str, default: int, most: int, least: int = 1) -> int:
        """Read a whole number."""
        value = self._fields.get(name, default)
        is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())  # 3.0 is whole in JSON
        if is_whole and not isinstance(value, bool) and least <= value <= most:
            return int(value)
        self._refuse(f"/{name}", "OutOfRange", f"{name} must be a whole number from {least} to {most}")
        return default

    def flag(self, name: str) -> bool:
        """Read true or false."""
        value = self._fields.get(name, False)
        if not isinstance(value, bool):
            self._refuse(f"/{name}", "WrongType", f"{name} must be true or false")
        return value is True

    def text(self, name: str, most: int) -> str:
        """Read a text."""
        value = self._fields.get(name, "")
        if isinstance(value, str) and len(value) <= most:
            return value
        self._refuse(f"/{name}", "WrongType", f"{name} must be a text of at most {most} characters")
        return ""

    def topic(self) -> Topic:
        """Read the name of a topic."""
        value = self._fields.get("topic", TOPICS[0])
        for topic in TOPICS:
            if value == topic:
                return topic
        self._refuse("/topic", "UnknownValue", f"topic must be one of {', '.join(TOPICS)}")
        return TOPICS[0]

    def receipts(self) -> tuple[str, ...]:
        """Read the receipts, which are required."""
        value = self._fields.get("receipts")
        is_list = isinstance(value, list) and 1 <= len(value) <= MAX_RECEIPTS
        if is_list and all(isinstance(each, str) and len(each) <= 64 for each in value or ()):
            return tuple(value or ())
        message = f"receipts is required: a list of 1 to {MAX_RECEIPTS} receipts of pulled messages"
        self._refuse("/receipts", "WrongType" if "receipts" in self._fields else "MissingField", message)
        return ()

    def _refuse(self, at: str, code: str, message: str) -> None:
        self.errors.append(BodyProblem(at, code, message))


def read_pull(body: object) -> tuple[Pull, list[BodyProblem]]:
    """Read how much to pull."""
    reader = MessageBodyReader(body, ("max", "ackDeadlineSeconds", "waitSeconds"))
    pull = Pull(
        reader.number("max", 10, MAX_PULL),
        timedelta(seconds=reader.number("ackDeadlineSeconds", DEFAULT_DEADLINE, MAX_DEADLINE)),
        reader.number("waitSeconds", 0, MAX_WAIT, least=0),
    )
    return pull, reader.errors


def read_ack(body: object) -> tuple[tuple[str, ...], list[BodyProblem]]:
    """Read which deliveries were handled."""
    reader = MessageBodyReader(body, ("receipts",))
    return reader.receipts(), reader.errors


def read_nack(body: object) -> tuple[Nack, list[BodyProblem]]:
    """Read which deliveries were not handled."""
    reader = MessageBodyReader(body, ("receipts", "error", "deadLetter"))
    return Nack(reader.receipts(), reader.text("error", MAX_ERROR), reader.flag("deadLetter")), reader.errors


def read_replay(body: object) -> tuple[int, list[BodyProblem]]:
    """Read how many dead letters to put back."""
    reader = MessageBodyReader(body, ("max",))
    return reader.number("max", MAX_PULL, MAX_PULL), reader.errors


def read_subscription(body: object) -> tuple[Topic, list[BodyProblem]]:
    """Read the topic of a new subscription."""
    reader = MessageBodyReader(body, ("topic",))
    return reader.topic(), reader.errors
