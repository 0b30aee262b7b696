"""The words of computed messages."""

import pytest

from hyperfleet.conditions.message import fit, list_names, name_objects, nest
from hyperfleet.conditions.plural import pluralize
from hyperfleet.model.condition import MAX_MESSAGE


@pytest.mark.parametrize(
    ("message", "nested", "because"),
    [
        ("", "", "nothing to say"),
        ("plain", " plain", "a single line stays on the line"),
        ("a*b", " a*b", "an asterisk is no bullet"),
        ("*b", " *b", "a bullet needs a blank after it"),
        ("* one", "\n  * one", "a bullet gets its own line"),
        ("\t* one", "\n  \t* one", "an indented bullet keeps its indentation"),
        ("\f*\tone", "\n  \f*\tone", "every blank of Go counts"),
        ("* one\n* two", "\n  * one\n  * two", "bullets go one level down"),
        ("* one\n  * two", "\n  * one\n    * two", "existing levels are kept"),
        ("one\ntwo", "\n  * one\n  * two", "plain lines become bullets"),
        ("head\n* one\n* two", "\n  * head\n    * one\n    * two", "bullets go below their heading"),
        ("head\n* one\nfoot", "\n  * head\n    * one\n  * foot", "a plain line further on is a heading too"),
        ("* one\n\u00a0* two", "\n  * one\n  * \u00a0* two", "a no-break space is no blank in Go"),
    ],
)
def test_nest(message: str, nested: str, because: str) -> None:
    assert nest(message) == nested, because


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Machine", "Machines"),
        ("MachineDeployment", "MachineDeployments"),
        ("MachinePool", "MachinePools"),
        ("MachineSet", "MachineSets"),
        ("NetworkPolicy", "NetworkPolicies"),
        ("Gateway", "Gateways"),
        ("Key", "Keys"),
        ("Convoy", "Convoys"),
        ("Buy", "Buys"),
        ("ClusterClass", "ClusterClasses"),
        ("Mesh", "Meshes"),
        ("Batch", "Batches"),
        ("Box", "Boxes"),
        ("Endpoints", "Endpoints"),
        ("SearchIndex", "SearchIndices"),
        ("Index", "Indices"),
        ("BuildStatus", "BuildStatuses"),
        ("", "s"),
        ("machine", "machines"),
    ],
)
def test_plural(kind: str, plural: str) -> None:
    assert pluralize(kind) == plural


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a"], "Machine a"),
        (["a", "b"], "Machines a, b"),
        (["a", "b", "c"], "Machines a, b, c"),
        (["a", "b", "c", "d"], "Machines a, b, c, ... (1 more)"),
    ],
)
def test_name_objects(names: list[str], text: str) -> None:
    assert name_objects("Machine", names) == text


def test_another_limit_for_names() -> None:
    assert list_names(["a", "b"], 1) == "a, ... (1 more)"


def test_a_message_that_fits_is_left_alone() -> None:
    assert fit("x" * MAX_MESSAGE) == "x" * MAX_MESSAGE


def test_a_message_that_does_not_fit_is_cut_and_marked() -> None:
    cut = fit("x" * (MAX_MESSAGE + 1))
    assert len(cut) == MAX_MESSAGE
    assert cut.startswith("xxx")
    assert cut.endswith("x... (cut at 32768 characters)")
    assert fit(cut) == cut
