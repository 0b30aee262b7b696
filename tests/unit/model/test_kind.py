"""The registry of kinds: clusters and node pools, and what a configuration adds."""

from __future__ import annotations

import pytest

from hyperfleet.model.kind import CLUSTER, NODE_POOL, Kind, Kinds

DATABASE = Kind("Database", "databases", "db", parent="Cluster")


def test_clusters_and_their_node_pools_are_known() -> None:
    kinds = Kinds()
    assert list(kinds) == [CLUSTER, NODE_POOL]
    assert kinds.get("Cluster") == CLUSTER
    assert kinds.get("NodePool") == NODE_POOL
    assert kinds.children_of("Cluster") == (NODE_POOL,)
    assert kinds.children_of("NodePool") == ()


def test_cluster_ids_have_the_documented_form() -> None:
    """docs/semantics.md §8: `cls-…`."""
    assert CLUSTER.id_prefix == "cls"
    assert (CLUSTER.plural, NODE_POOL.plural) == ("clusters", "nodepools")
    assert (CLUSTER.parent, NODE_POOL.parent) == (None, "Cluster")


def test_an_unknown_kind_is_none() -> None:
    assert Kinds().get("Database") is None
    assert Kinds().children_of("Database") == ()


def test_kinds_can_be_added_without_changing_the_registry() -> None:
    kinds = Kinds()
    more = kinds.with_kinds(DATABASE, Kind("Backup", "backups", "bak", parent="Database"))
    assert [kind.name for kind in more] == ["Cluster", "NodePool", "Database", "Backup"]
    assert more.children_of("Cluster") == (NODE_POOL, DATABASE)
    assert [kind.name for kind in more.children_of("Database")] == ["Backup"]
    assert list(kinds) == [CLUSTER, NODE_POOL]


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (Kind("Cluster", "others", "oth"), "name 'Cluster' is already taken"),
        (Kind("Other", "clusters", "oth"), "plural 'clusters' is already taken"),
        (Kind("Other", "others", "cls"), "id_prefix 'cls' is already taken"),
        (Kind("Other", "others", "oth", parent="Nobody"), "its parent Nobody is not a known kind"),
    ],
)
def test_what_does_not_fit_is_refused(kind: Kind, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Kinds().with_kinds(kind)


def test_a_kind_cannot_be_its_own_parent() -> None:
    with pytest.raises(ValueError, match="parent"):
        Kinds((Kind("Loop", "loops", "loop", parent="Loop"),))


def test_a_parent_must_come_before_its_children() -> None:
    with pytest.raises(ValueError, match="parent"):
        Kinds((NODE_POOL, CLUSTER))
