"""The outcome of each resource that a command changes, and the exit code for all of them.

A failure does not stop the others. Used by `apply`, `create`, `label` and `delete`.
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
    from hyperfleet.cli.session import CliSession

FORMATS: Final = ("table", "name", "json", "yaml", "jsonpath")
# Errors of a single resource; any other error would affect the next one, too.
_OF_ONE: Final = (exits.USAGE, exits.NOT_FOUND, exits.REFUSED, exits.TIMEOUT)


class Outcomes:
    """Reports each resource as it is done; documents for programs are written at the end."""

    def __init__(self, session: CliSession, output: Output) -> None:
        """Begin without outcomes."""
        self._session = session
        self._output = output
        self._documents: list[Any] = []  # of the resources done
        self.code = exits.OK

    def report(self, name: str, action: str, document: Any) -> None:
        """Report one outcome: `name` as commands accept it, `document` for programs."""
        if self._output.format.is_table:
            self._session.write(f"{name} {action}")
        elif self._output.format.name == "name":
            self._session.write(name)
        self._documents.append(document)

    def add_line(self, line: str) -> None:
        """Add a line for people to the last outcome."""
        if self._output.format.is_table:
            self._session.write(line)

    @contextmanager
    def attempt(self, manifest: Manifest | None = None, *, about: str = "") -> Iterator[None]:
        """Report an error of one resource, with its position in a manifest, and continue with the next."""
        try:
            yield
        except HyperFleetError as error:
            code = code_of(error)
            if code not in _OF_ONE:
                raise
            for sentence in _sentences(error, manifest):
                self._session.message(f"Error: {about}: {sentence}" if about else f"Error: {sentence}")
            self.code = self.code or code

    def close(self) -> int:
        """Write the document, or a list of several; return the exit code."""
        if not self._output.format.is_table and self._output.format.name != "name" and self._documents:
            whole = self._documents[0] if len(self._documents) == 1 else list_document("", self._documents)
            print_document(self._session, self._output, whole)
        return self.code


def _sentences(error: HyperFleetError, manifest: Manifest | None) -> Iterator[str]:
    """Yield the messages of an error; those with a pointer get their position in the file."""
    if isinstance(error, DocumentError):
        yield from map(str, error.problems)
        return
    if manifest is None:
        yield str(error)
        return
    details = [each for each in getattr(error, "errors", ()) if each.pointer]
    for detail in details:
        yield f"{manifest.place(detail.pointer)}: {manifest}: {detail.message}"
    if not details:
        yield f"{manifest.place('/name')}: {manifest}: {error}"
