"""YAML text to typed, immutable values; every problem of the text is reported with its place.

In the order a newcomer meets it: `load` is the front door for a text of one document; behind it `read` makes
nodes of text, `bind` makes a struct of nodes, and `Places` finds where a value was written. `durations` has the type
for 10m and 1h30m, `schema` gives editors the same rules. Nothing here knows what a document is for, reads a file, or
raises for the content of a document.
"""

from hyperfleet.document_problem import DocumentPlace, DocumentProblem, has_errors
from hyperfleet.documents.binder import Bound, bind, good_items, salvage
from hyperfleet.documents.loader import LoadedDocument, load
from hyperfleet.documents.nodes import YamlDocument
from hyperfleet.documents.places import Places
from hyperfleet.documents.reader import YamlReading, read

__all__ = [
    "Bound",
    "DocumentPlace",
    "DocumentProblem",
    "LoadedDocument",
    "Places",
    "YamlDocument",
    "YamlReading",
    "bind",
    "good_items",
    "has_errors",
    "load",
    "read",
    "salvage",
]
