"""What became of each resource that a command was to change: told one by one, and the exit code of all together.

One that fails does not keep the others from being done. Used by `apply`, `create`, `label` and `delete`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from hyperfleet.cli import exits
from hyperfleet.cli.failures import code_of
from hyperfleet.cli.output.printer import list_document, print_document
from hyperfleet.errors import DocumentError, HyperFleetError

if TYPE_CHECKING:
    from hyperfleet.cli.manifests import Manifest
    from hyperfleet.cli.output.formats import Output
    from hyperfleet.cli.session import Session

FORMATS: Final = ("table", "name", "json", "yaml", "jsonpath")
# What is wrong with one resource only; anything else would be wrong with the next one, too.
_OF_ONE: Final = (exits.USAGE, exits.NOT_FOUND, exits.REFUSED, exits.TIMEOUT)


class Outcomes:
    """Tells of each resource as it is done; programs get all of them in the end."""

    def __init__(self, session: Session, output: Output) -> None:
        """Begin with nothing done."""
        self._session = session
        self._output = output
        self._documents: list[Any] = []  # of those that are done
        self.code = exits.OK

    def tell(self, name: str, action: str, document: Any) -> None:
        """Say what became of one: `name` as commands take it, the `document` for programs."""
        if self._output.format.is_table:
            self._session.write(f"{name} {action}")
        elif self._output.format.name == "name":
            self._session.write(name)
        self._documents.append(document)

    def add_line(self, line: str) -> None:
        """Say more of the last one to people."""
        if self._output.format.is_table:
            self._session.write(line)

    @contextmanager
    def attempt(self, manifest: Manifest | None = None, *, about: str = "") -> Iterator[None]:
        """Do one of them in a block; say what is wrong with it, at its place in a manifest, and go on with the next."""
        try:
            yield
        except HyperFleetError as error:
            code = code_of(error)
            if code not in _OF_ONE:
                raise
            for sentence in _sentences(error, manifest):
                self._session.say(f"Error: {about}: {sentence}" if about else f"Error: {sentence}")
            self.code = self.code or code

    def close(self) -> int:
        """Write what programs get: the one document, or a list; return the exit code."""
        if not self._output.format.is_table and self._output.format.name != "name" and self._documents:
            whole = self._documents[0] if len(self._documents) == 1 else list_document("", self._documents)
            print_document(self._session, self._output, whole)
        return self.code


def _sentences(error: HyperFleetError, manifest: Manifest | None) -> Iterator[str]:
    """Say what is wrong; what the server points to, with its place in the file."""
    if isinstance(error, DocumentError):
        yield from map(str, error.problems)
        return
    if manifest is None:
        yield str(error)
        return
    faults = [each for each in getattr(error, "errors", ()) if each.pointer]
    for fault in faults:
        yield f"{manifest.place(fault.pointer)}: {manifest}: {fault.message}"
    if not faults:
        yield f"{manifest.place('/name')}: {manifest}: {error}"
