"""The entry point: the text of one document to one typed value.

Policy, settings and adapter configurations come in through here. For a text with several documents use
`reader.read` and `binder.bind`. A document with problems is a result, not an exception: the caller adds
what it finds itself and raises its own `DocumentError` with everything at once.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

from hyperfleet.document_problem import DocumentPlace, DocumentProblem
from hyperfleet.documents.binder import bind
from hyperfleet.documents.nodes import ScalarNode, YamlDocument
from hyperfleet.documents.places import Places
from hyperfleet.documents.reader import read

T = TypeVar("T")


class LoadedDocument(Struct, Generic[T], frozen=True):
    """The result of loading: the value (None if there is an error), every problem, and the places."""

    value: T | None
    problems: tuple[DocumentProblem, ...]
    places: Places


def load(text: str, type_: type[T], *, file: str) -> LoadedDocument[T]:
    """Read the one document in `text` as a value of `type_`; `file` is the name that problems carry."""
    reading = read(text, file)
    problems = list(reading.problems)
    if not reading.documents:
        if not problems:
            problems.append(DocumentProblem(DocumentPlace(file, 1, 1), "the document is empty", code="Empty"))
        return LoadedDocument(None, tuple(problems), Places(YamlDocument(file, text, ScalarNode(1, 1, 0, "", None))))
    document, *others = reading.documents
    problems += [_one_too_many(other) for other in others[:1]]
    value, found = bind(document, type_)
    problems = sorted([*problems, *found])
    return LoadedDocument(None if problems else value, tuple(problems), Places(document))


def _one_too_many(document: YamlDocument) -> DocumentProblem:
    place = Places(document).value("")
    return DocumentProblem(place, "expected one document, here a second one begins", code="TooManyDocuments")
