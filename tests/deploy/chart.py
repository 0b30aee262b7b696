"""The Helm chart as tests see it: its files, and what helm makes of them with some values.

Helm itself is needed for the second only; `conftest.py` skips what cannot be done without it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from ruamel.yaml import YAML

from tests.programs import find_program

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "deploy/helm/hyperfleet"
HELM: Final = "HYPERFLEET_TEST_HELM"  # the program to use instead of the one that is found
# Without a cluster helm takes what it was built for, which a helm built by hand does not know.
KUBERNETES: Final = "1.30.0"

Manifest = Mapping[str, Any]
Values = Mapping[str, Any]

# The two ways to run it, and one with everything that can be switched on.
EMBEDDED: Final[Values] = {"insecureListen": True}
POSTGRES: Final[Values] = {"insecureListen": True, "database": {"existingSecret": "fleet-database"}}
EVERYTHING: Final[Values] = {
    "database": {"existingSecret": "fleet-database", "key": "address"},
    "auth": {
        "existingSecret": "fleet-auth",
        "tokensKey": "tokens.yaml",
        "issuers": [
            {
                "issuer": "https://id.example.com",
                "audience": ["hyperfleet"],
                "jwks": "/etc/hyperfleet-auth/keys.json",
                "claims": {"roles": "realm_access.roles"},
                "leeway": "10s",
            }
        ],
    },
    "tls": {"existingSecret": "fleet-tls"},
    "broker": {"existingSecret": "fleet-broker", "key": "address"},
    "webhookSecret": "fleet-webhooks",
    "sentinel": {"enabled": True, "rules": "rules: []\n"},
    "policy": (ROOT / "examples/policies/guide.yaml").read_text("utf-8"),
    "specSchemas": {"Cluster": {"type": "object", "required": ["cloud"]}},
    "settings": {
        "workers": 2,
        "limits": {"maxBodyBytes": 2_097_152, "maxRequestsPerSecond": 50},
        "retention": {"events": "336h"},
        "tenancy": {"label": "team"},
        "redaction": {"keys": ["licence"]},
        "audit": {"to": "log", "reports": False},
        "metrics": {"perResource": True, "maxResources": 500},
    },
    "drainSeconds": 45,
    "image": {"digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "registry"}],
    "autoscaling": {"enabled": True},
    "serviceMonitor": {
        "enabled": True,
        "labels": {"team": "fleet"},
        "bearerToken": {"existingSecret": "fleet-scraper", "key": "token"},
        "tlsConfig": {"ca": {"secret": {"name": "fleet-tls", "key": "ca.crt"}}},
    },
    "prometheusRule": {"enabled": True, "labels": {"team": "fleet"}, "runbookUrl": "https://wiki.example.com/fleet"},
    "networkPolicy": {
        "enabled": True,
        "from": [{"namespaceSelector": {"matchLabels": {"team": "fleet"}}}],
        "egress": [{"ports": [{"port": 5432}, {"port": 53, "protocol": "UDP"}]}],
    },
    "podAnnotations": {"note": "a"},
    "podLabels": {"team": "fleet"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "fleet", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "priorityClassName": "important",
    "service": {"annotations": {"note": "b"}},
    "serviceAccount": {"annotations": {"note": "c"}},
    "migrations": {"resources": {"requests": {"cpu": "100m"}}},
    "extraEnv": [{"name": "SSL_CERT_FILE", "value": "/etc/authority/ca.crt"}],
    "extraVolumes": [{"name": "authority", "configMap": {"name": "authority"}}],
    "extraVolumeMounts": [{"name": "authority", "mountPath": "/etc/authority"}],
}
WAYS: Final = {"embedded": EMBEDDED, "postgres": POSTGRES, "everything": EVERYTHING}


def read_yaml(text: str) -> list[Any]:
    """Read every document of a text; helm leaves some empty."""
    return [document for document in YAML(typ="safe", pure=True).load_all(text) if document is not None]


def read_defaults() -> dict[str, Any]:
    """Return values.yaml."""
    (values,) = read_yaml((CHART / "values.yaml").read_text("utf-8"))
    return dict(values)


def read_schema() -> dict[str, Any]:
    """Return values.schema.json."""
    return dict(msgspec.json.decode((CHART / "values.schema.json").read_bytes()))


def lay_over(below: Values, above: Values) -> dict[str, Any]:
    """Put values on top of others as helm does: mappings are merged, everything else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        before = merged.get(key)
        merged[key] = lay_over(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return merged


def find_helm() -> str | None:
    """Return the program helm; None if there is none."""
    return find_program("helm", HELM)


class Helm:
    """Helm, with a directory for the values that it is given."""

    def __init__(self, program: str, directory: Path) -> None:
        """Use a program and keep files in a directory."""
        self._program = program
        self._directory = directory

    def run(self, *arguments: str, values: Values) -> subprocess.CompletedProcess[str]:
        """Run one command on the chart."""
        file = self._directory / "values.json"
        file.write_bytes(msgspec.json.encode(values))
        command = [self._program, *arguments, str(CHART), "--values", str(file)]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._directory)}  # nobody's own settings of helm
        return subprocess.run(command, capture_output=True, check=False, text=True, env=environment)  # noqa: S603 - ours

    def render(self, values: Values) -> Release:
        """Return what would be sent to Kubernetes."""
        done = self.run("template", "fleet", "--namespace", "ops", "--kube-version", KUBERNETES, values=values)
        assert done.returncode == 0, done.stderr
        return Release(read_yaml(done.stdout))


class Release:
    """The manifests of one rendering."""

    def __init__(self, manifests: list[Manifest]) -> None:
        """Hold the manifests."""
        self.manifests = manifests

    def kinds(self) -> list[str]:
        """List the kinds in alphabetical order."""
        return sorted(manifest["kind"] for manifest in self.manifests)

    def get(self, kind: str) -> Manifest:
        """Return the only manifest of a kind."""
        (found,) = (manifest for manifest in self.manifests if manifest["kind"] == kind)
        return found

    def pods(self) -> Iterator[Manifest]:
        """Yield the templates of all pods."""
        for manifest in self.manifests:
            if manifest["kind"] in ("Deployment", "Job"):
                yield manifest["spec"]["template"]

    def server(self) -> Manifest:
        """Return the container of the server."""
        (container,) = self.get("Deployment")["spec"]["template"]["spec"]["containers"]
        return dict(container)
