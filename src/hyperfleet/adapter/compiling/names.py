"""The variables of an adapter file: which exist, and which of them are there at a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hyperfleet.adapter.templates import ITEM
from hyperfleet.documents.wording import suggest

BUILT_IN: Final = ("adapter", "config", "env", "event", "resources", "externalResources")
_OBJECTS: Final = ("resources", "externalResources")
_ADAPTER: Final = (
    *("name", "version", "executionStatus", "resourcesSkipped", "skipReason", "errorReason", "errorMessage"),
    *("executionError", "resourceErrors"),
)


class KnownNames:
    """Grows while a file is compiled, in the order of the steps of an event."""

    def __init__(
        self,
        *,
        declared: Iterable[str] = (),
        objects: Iterable[str] = (),
        allowed_env: Iterable[str] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Know all names of the file; at first only the built-in ones are visible."""
        self.declared = frozenset(declared)
        self.objects = frozenset(objects)
        self.allowed_env = frozenset(allowed_env)
        self._settings = settings or {}
        self._visible = set(BUILT_IN)
        self._in_templates: set[str] = set()

    def reveal(self, name: str) -> None:
        """Make a variable visible from here on."""
        self._visible.add(name)

    def reveal_in_templates(self, name: str) -> None:
        """Make a payload visible to templates from here on, and to expressions once all payloads are built."""
        self._in_templates.add(name)

    def reveal_payloads(self) -> None:
        """Make all payloads visible to expressions."""
        self._visible |= self._in_templates

    def is_visible(self, name: str) -> bool:
        """Tell whether a variable is visible to expressions here."""
        return name in self._visible

    def find_fault(self, path: tuple[str, ...], *, is_template: bool = False) -> str:
        """Return what is wrong with the last name of a path; empty if nothing is, or if that cannot be known."""
        root, *members = path
        if not members:
            return self._find_root_fault(root, is_template=is_template)
        if members[0] == ITEM:
            return ""
        if root == "config":
            return self._find_setting_fault(path)
        if len(members) > 1:
            return ""
        if root in _OBJECTS and members[0] not in self.objects:
            return f"there is no resource {members[0]}{self._hint(members[0], self.objects)}"
        if root == "env" and members[0] not in self.allowed_env:
            return f"the variable {members[0]} may not be read: add it to adapter.env, or make it a param"
        if root == "adapter" and members[0] not in _ADAPTER:
            return f"adapter has no {members[0]}{self._hint(members[0], _ADAPTER)}"
        return ""

    def _find_root_fault(self, name: str, *, is_template: bool) -> str:
        visible = self._visible | self._in_templates if is_template else self._visible
        if name in visible or name == ITEM:
            return ""
        if name in self._in_templates:
            return f"{name} is a payload: expressions see it only in post actions"
        if name in self.declared:
            return f"{name} is defined only after this place"
        if name == "params":
            return "there is no variable params: a param is used by its own name"
        return f"there is no variable {name}{self._hint(name, visible)}"

    def _find_setting_fault(self, path: tuple[str, ...]) -> str:
        value: Any = self._settings
        for index, name in enumerate(path[1:], start=1):
            if not isinstance(value, Mapping):
                return ""  # reported for the shorter path, or below a value that is no map
            if name not in value:
                is_last = index == len(path) - 1
                return f"{'.'.join(path)} is not in the config" if is_last else ""
            value = value[name]
        return ""

    @staticmethod
    def _hint(name: str, known: Iterable[str]) -> str:
        return suggest(name, tuple(sorted(known)))
