"""The kinds that every cluster serves, for the dry run, which has no API server to ask. Data and one look-up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hyperfleet.kubernetes.port import ObjectKind, ServedKind

# Kinds in namespaces; those with * have a status. Plurals are regular, except for the ones below.
_NAMESPACED: Final = {
    "v1": "ConfigMap Secret ServiceAccount Event Endpoints LimitRange PodTemplate Pod* Service* "
    "PersistentVolumeClaim* ReplicationController* ResourceQuota*",
    "apps/v1": "ControllerRevision Deployment* StatefulSet* DaemonSet* ReplicaSet*",
    "batch/v1": "Job* CronJob*",
    "autoscaling/v2": "HorizontalPodAutoscaler*",
    "coordination.k8s.io/v1": "Lease",
    "discovery.k8s.io/v1": "EndpointSlice",
    "networking.k8s.io/v1": "Ingress* NetworkPolicy",
    "policy/v1": "PodDisruptionBudget*",
    "rbac.authorization.k8s.io/v1": "Role RoleBinding",
}
_OF_THE_CLUSTER: Final = {
    "v1": "Namespace* Node* PersistentVolume*",
    "admissionregistration.k8s.io/v1": "ValidatingWebhookConfiguration MutatingWebhookConfiguration",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition*",
    "networking.k8s.io/v1": "IngressClass",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "StorageClass CSIDriver",
}
_IRREGULAR: Final = {"Endpoints": "endpoints"}


def guess_plural(kind: str) -> str:
    """Return the plural that a kind has most likely."""
    word = kind.lower()
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2:-1] not in "aeiou" else f"{word}s"


def _list_kinds(table: Mapping[str, str], *, is_namespaced: bool) -> dict[ObjectKind, ServedKind]:
    return {
        kind: ServedKind(
            kind,
            _IRREGULAR.get(kind.kind, guess_plural(kind.kind)),
            is_namespaced=is_namespaced,
            has_status="*" in name,
        )
        for api_version, names in table.items()
        for name in names.split()
        for kind in [ObjectKind(api_version, name.rstrip("*"))]
    }


BUILT_IN: Final[Mapping[ObjectKind, ServedKind]] = {
    **_list_kinds(_NAMESPACED, is_namespaced=True),
    **_list_kinds(_OF_THE_CLUSTER, is_namespaced=False),
}
DEFINITION: Final = ObjectKind("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def read_definition(definition: Mapping[str, Any]) -> dict[ObjectKind, ServedKind]:
    """Return the kinds that a CustomResourceDefinition adds."""
    spec = definition.get("spec", {})
    names = spec.get("names", {})
    return {
        kind: ServedKind(
            kind,
            str(names.get("plural", "")),
            is_namespaced=spec.get("scope") == "Namespaced",
            has_status="status" in version.get("subresources", {}),
        )
        for version in spec.get("versions", ())
        if version.get("served")
        for kind in [ObjectKind(f"{spec.get('group')}/{version.get('name')}", str(names.get("kind", "")))]
    }
