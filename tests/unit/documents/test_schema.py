"""The JSON Schema of a struct: valid itself, and written for editors."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from jsonschema import Draft202012Validator
from msgspec import Meta, Struct

from hyperfleet.documents.durations import EXAMPLES, PATTERN, Duration
from hyperfleet.documents.schema import BOOLEAN_KEY_NOTE, DIALECT, describe_schema


class Inner(Struct, frozen=True, rename={"true_": "true"}, forbid_unknown_fields=True):
    """What happens then."""

    true_: str = ""
    every: Duration = timedelta(seconds=90)


class Outer(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """All there is."""

    name: Annotated[str, Meta(title="Name", description="What it is called.", pattern="^[a-z]+$")]
    stale_threshold: Annotated[Duration, Meta(description="When news is old.")] = timedelta(minutes=10)
    timeout: Duration | None = None
    retry: Duration | None = timedelta(hours=1)
    inner: Inner = Inner()
    format: str = "duration"
    default: tuple[Inner, ...] = ()


def outer() -> dict[str, Any]:
    """Return the schema of Outer."""
    return describe_schema(Outer, id_="https://example.com/outer.json", title="The outer one")


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(outer())


def test_the_top_names_dialect_address_and_title() -> None:
    schema = outer()
    assert schema.pop("$defs").keys() == {"Inner", "Outer"}
    assert schema == {
        "$schema": DIALECT,
        "$id": "https://example.com/outer.json",
        "title": "The outer one",
        "$ref": "#/$defs/Outer",
    }
    assert describe_schema(Inner, id_="x")["title"] == "Inner"


def test_docstrings_and_meta_become_text_for_editors() -> None:
    definition = outer()["$defs"]["Outer"]
    assert definition["description"] == "All there is."
    assert definition["additionalProperties"] is False
    assert definition["required"] == ["name"]
    assert definition["properties"]["name"] == {
        "title": "Name",
        "description": "What it is called.",
        "type": "string",
        "pattern": "^[a-z]+$",
    }


def test_durations_are_ours() -> None:
    properties = outer()["$defs"]["Outer"]["properties"]
    duration = {"title": "Duration", "type": "string", "pattern": PATTERN, "examples": list(EXAMPLES)}
    assert properties["staleThreshold"] == {**duration, "description": "When news is old.", "default": "10m"}
    assert properties["timeout"] == {"anyOf": [duration, {"type": "null"}], "default": None}
    assert properties["retry"] == {"anyOf": [duration, {"type": "null"}], "default": "1h"}
    assert outer()["$defs"]["Inner"]["properties"]["every"]["default"] == "1m30s"


def test_composed_defaults_are_left_to_their_parts() -> None:
    properties = outer()["$defs"]["Outer"]["properties"]
    assert properties["inner"] == {"$ref": "#/$defs/Inner"}
    assert properties["default"]["default"] == []


def test_a_field_may_be_called_like_a_keyword() -> None:
    assert outer()["$defs"]["Outer"]["properties"]["format"] == {"type": "string", "default": "duration"}


def test_boolean_keys_carry_a_note() -> None:
    assert outer()["$defs"]["Inner"]["properties"]["true"]["$comment"] == BOOLEAN_KEY_NOTE
