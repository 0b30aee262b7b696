"""Reads the decisions of a sentinel, with every error in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hyperfleet.aggregation import BodyProblem
from hyperfleet.documents.wording import quote, suggest
from hyperfleet.events.looking import DEFAULT_SENTINEL
from hyperfleet.model.report import ADAPTER_PATTERN, MAX_ADAPTER_NAME
from hyperfleet.sentinel.scan import LookVerdict

MAX_LOOKS: Final = 1_000  # a whole page of `:due`
MAX_RECEIPT: Final = 64
NAME_RULE: Final = f"1 to {MAX_ADAPTER_NAME} letters, digits and -_., the first and the last a letter or digit"

_KEYS: Final = ("sentinel", "looks")
_LOOK_KEYS: Final = ("id", "receipt", "rule", "data")


def is_name(text: object) -> bool:
    """Tell whether a text can be the name of a sentinel, a member or a rule."""
    return isinstance(text, str) and len(text) <= MAX_ADAPTER_NAME and ADAPTER_PATTERN.fullmatch(text) is not None


def read_looks(body: object) -> tuple[str, tuple[LookVerdict, ...], list[BodyProblem]]:
    """Read the name of a sentinel and its decisions."""
    reader = _Reader()
    fields = reader.fields(body, "", _KEYS)
    if reader.errors and not fields:
        return "", (), reader.errors
    name = fields.get("sentinel", DEFAULT_SENTINEL)
    if not is_name(name):
        reader.refuse("/sentinel", "BadFormat", f"sentinel must have {NAME_RULE}")
    looks = fields.get("looks")
    if not isinstance(looks, list) or not 1 <= len(looks) <= MAX_LOOKS:
        reader.refuse("/looks", "WrongType", f"looks is required: a list of 1 to {MAX_LOOKS} decisions")
        looks = []
    verdicts = tuple([reader.verdict(each, f"/looks/{place}") for place, each in enumerate(looks)])
    reader.refuse_repetitions(verdicts)
    return str(name), verdicts, reader.errors


class _Reader:
    """Reads one body and collects its errors."""

    def __init__(self) -> None:
        self.errors: list[BodyProblem] = []

    def fields(self, value: object, at: str, known: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            self.refuse(at, "WrongType", "this must be an object" if at else "the body must be an object")
            return {}
        for key in value:
            if key not in known:
                self.refuse(f"{at}/{key}", "UnknownField", f"unknown field {quote(key)}{suggest(key, known)}")
        return value

    def verdict(self, value: object, at: str) -> LookVerdict:
        fields = self.fields(value, at, _LOOK_KEYS)
        if not isinstance(value, dict):
            return LookVerdict("", None)
        id_, rule = fields.get("id"), fields.get("rule")
        receipt, data = fields.get("receipt", ""), fields.get("data", {})
        if not isinstance(id_, str) or not 1 <= len(id_) <= 128:
            self.refuse(f"{at}/id", "WrongType", "id is required: the id of a resource")
        if rule is not None and not is_name(rule):
            self.refuse(f"{at}/rule", "BadFormat", f"rule must be null or have {NAME_RULE}")
        if not isinstance(receipt, str) or len(receipt) > MAX_RECEIPT:
            self.refuse(f"{at}/receipt", "WrongType", "receipt must be that of :due")
        if not isinstance(data, dict):
            self.refuse(f"{at}/data", "WrongType", "data must be an object")
        return LookVerdict(
            str(id_), None if rule is None else str(rule), str(receipt), data if isinstance(data, dict) else {}
        )

    def refuse_repetitions(self, verdicts: tuple[LookVerdict, ...]) -> None:
        seen: set[str] = set()
        for place, verdict in enumerate(verdicts):
            if verdict.id in seen:
                message = f"{quote(verdict.id[:128])} is decided on twice"
                self.refuse(f"/looks/{place}/id", "Repeated", message)
            seen.add(verdict.id)

    def refuse(self, at: str, code: str, message: str) -> None:
        self.errors.append(BodyProblem(at, code, message))
