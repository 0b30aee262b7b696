"""Message templates of a rule: `{{.FailedCount}} of {{.TotalCount}} adapters not ready`.

The loader parses them and refuses unknown variables; `template_values` has the value of each.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct

VARIABLES: Final[Mapping[str, str]] = {
    "FailedCount": "how many adapters are responsible for the outcome",
    "FailedAdapterNames": "their names",
    "TotalCount": "how many adapters are required",
    "UnhealthyAdapterNames": "the adapters with Health=False",
    "WorkingCount": "how many required adapters are Running",
    "AdapterFailureMessage": "the message of the first responsible adapter",
    "FirstFailureMessage": "the message of the first responsible adapter that failed",
    "AwaitedAdapterNames": "the responsible adapters that have not reported a result yet",
    "Error": "why the rule could not be evaluated (in `unknown`)",
    "Summary": "the merged message (in `summary` rules)",
}

_PLACEHOLDER: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_VARIABLE: Final = re.compile(r"\s*\.([A-Za-z]\w*)\s*")


class Template(Struct, frozen=True):
    """A reason, and a message: plain text, or with a `%s` for each variable."""

    reason: str
    message: str = ""
    variables: tuple[str, ...] = ()


class Templates(Struct, frozen=True):
    """The templates of one rule, by outcome; a missing one has a default."""

    true: Template | None = None
    false: Template | None = None
    in_progress: Template | None = None
    unknown: Template | None = None


def parse_template(reason: str, message: str) -> Template:
    """Parse a message that has passed `find_template_faults`."""
    variables = tuple(found[1].strip()[1:] for found in _PLACEHOLDER.finditer(message))
    if not variables:
        return Template(reason, message)
    texts = _PLACEHOLDER.split(message)[::2]  # every second part is the text between braces
    return Template(reason, "%s".join(text.replace("%", "%%") for text in texts), variables)


def find_template_faults(message: str, *, allowed: Collection[str] = ()) -> Iterator[tuple[int, str]]:
    """Yield each invalid placeholder: its offset in the message, and what is wrong.

    `allowed` names the special variables that have a value here: `Error`, `Summary`.
    """
    for found in _PLACEHOLDER.finditer(message):
        name = _VARIABLE.fullmatch(found[1])
        if name is None:
            yield found.start(), f"{found[0]} is not a variable; write {{{{.Name}}}}"
        elif name[1] not in VARIABLES:
            yield found.start(), f"unknown template variable {name[1]}; known are {', '.join(VARIABLES)}"
        elif name[1] in _SPECIAL and name[1] not in allowed:
            yield found.start(), f"{name[1]} is empty here: it is {VARIABLES[name[1]]}"
    rest = _PLACEHOLDER.sub(lambda found: " " * len(found[0]), message)
    if (offset := rest.find("{{")) >= 0:
        yield offset, "{{ without }}: a variable is written {{.Name}}"


_SPECIAL: Final = frozenset({"Error", "Summary"})


def default_reason(type_: str) -> str:
    """Make a valid reason from a condition type."""
    name = re.sub(r"[^A-Za-z0-9]", "", type_.rpartition("/")[2])
    return name if name[:1].isalpha() else f"Condition{name}"
