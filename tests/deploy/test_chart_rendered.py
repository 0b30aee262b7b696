"""What helm makes of the chart: manifests that agree with each other, with the image and with the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import click
import msgspec
import pytest

from hyperfleet import supervision
from hyperfleet.aggregation.loading.policy_loader import check_policies
from hyperfleet.api import health, metrics
from hyperfleet.bootstrap import System, spec_checker
from hyperfleet.cli import command
from hyperfleet.documents import has_errors
from hyperfleet.settings import (
    CONFIG_VARIABLE,
    Settings,
    find_unknown_variables,
    parse_address,
    parse_database,
    resolve,
)
from tests.deploy.alerting import ALERTS, DASHBOARD, RECORDING, read_rules
from tests.deploy.chart import (
    EMBEDDED,
    EVERYTHING,
    KUBERNETES,
    POSTGRES,
    WAYS,
    Helm,
    Manifest,
    Release,
    Values,
    lay_over,
)
from tests.deploy.containerfile import texts

SECRET = "postgresql://fleet:hunter2@db.example.com/fleet"  # noqa: S105 - what the Secret might hold


@pytest.fixture(params=WAYS)
def release(helm: Helm, request: pytest.FixtureRequest) -> Release:
    """Give the chart rendered in each of the ways."""
    return helm.render(WAYS[request.param])


def environment_of(container: Manifest) -> dict[str, str]:
    """Return the variables that a container sees."""
    secrets = {"HYPERFLEET_DATABASE": SECRET, "HYPERFLEET_PUBSUB_URL": "amqps://fleet:hunter2@broker.example.com/fleet"}
    return {each["name"]: each["value"] if "value" in each else secrets[each["name"]] for each in container["env"]}


def resolve_settings(release: Release, directory: Path) -> Settings:
    """Read the settings as the server in the pod would."""
    for name, text in release.get("ConfigMap")["data"].items():
        (directory / name).write_text(text)
    environment = environment_of(release.server())
    (mount,) = (each for each in release.server()["volumeMounts"] if each["name"] == "config")
    file = Path(environment.pop(CONFIG_VARIABLE)).relative_to(mount["mountPath"])
    assert list(find_unknown_variables(environment)) == []
    return resolve({}, environment, str(directory / file)).settings


def selectors(release: Release) -> Iterator[Mapping[str, str]]:
    """Yield every selector that is meant for the server's pods."""
    for manifest in release.manifests:
        spec = manifest.get("spec", {})
        match manifest["kind"]:
            case "Service":
                yield spec["selector"]
            case "Deployment" | "PodDisruptionBudget" | "ServiceMonitor":
                yield spec["selector"]["matchLabels"]
            case "NetworkPolicy":
                yield spec["podSelector"]["matchLabels"]


# ── what helm itself says ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", WAYS)
def test_lint_finds_nothing(helm: Helm, way: str) -> None:
    done = helm.run("lint", "--strict", "--quiet", values=WAYS[way])
    assert done.returncode == 0, done.stdout + done.stderr


def test_nobody_is_let_in_by_accident(helm: Helm) -> None:
    done = helm.run("template", "fleet", "--kube-version", KUBERNETES, values={})
    assert done.returncode != 0
    assert "give auth.tokensKey or auth.issuers, or" in done.stderr


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"auth": {"tokensKey": "tokens.yaml"}}, "give auth.existingSecret"),
        (
            {"auth": {"existingSecret": "a", "tokensKey": "b"}, "serviceMonitor": {"enabled": True}},
            "settings.metrics.public: true",
        ),
    ],
)
def test_what_could_not_work_is_refused(helm: Helm, values: Values, says: str) -> None:
    done = helm.run("template", "fleet", "--kube-version", KUBERNETES, values=values)
    assert done.returncode != 0
    assert says in done.stderr


def test_an_embedded_file_has_one_worker(helm: Helm) -> None:
    values = lay_over(EMBEDDED, {"settings": {"workers": 2}})
    done = helm.run("template", "fleet", "--kube-version", KUBERNETES, values=values)
    assert done.returncode != 0
    assert "more than one needs PostgreSQL" in done.stderr


def test_values_are_checked_before_anything_is_sent(helm: Helm) -> None:
    wrong = lay_over(EMBEDDED, {"settings": {"limits": {"maxDepth": 1}}, "replicas": 2})
    done = helm.run("template", "fleet", "--kube-version", KUBERNETES, values=wrong)
    assert done.returncode != 0
    assert "maxDepth" in done.stderr
    assert "replicas" in done.stderr


# ── what it is made of ───────────────────────────────────────────────────────────────────────────────────────────


def test_embedded_is_one_replica_and_its_volume(helm: Helm) -> None:
    more = {"replicaCount": 5, "autoscaling": {"enabled": True}, "podDisruptionBudget": {"enabled": True}}
    release = helm.render(lay_over(EMBEDDED, more))
    assert release.kinds() == ["ConfigMap", "Deployment", "PersistentVolumeClaim", "Service", "ServiceAccount"]
    spec = release.get("Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")
    claim = release.get("PersistentVolumeClaim")["metadata"]
    assert claim["annotations"]["helm.sh/resource-policy"] == "keep"
    assert {"name": "data", "persistentVolumeClaim": {"claimName": claim["name"]}} in spec["template"]["spec"][
        "volumes"
    ]


def test_embedded_on_a_volume_that_is_there(helm: Helm) -> None:
    release = helm.render(lay_over(EMBEDDED, {"persistence": {"existingClaim": "old"}}))
    assert "PersistentVolumeClaim" not in release.kinds()
    volumes = release.get("Deployment")["spec"]["template"]["spec"]["volumes"]
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "old"}} in volumes


def test_postgres_is_rolled_and_migrated_before(helm: Helm) -> None:
    release = helm.render(POSTGRES)
    assert release.kinds() == ["ConfigMap", "Deployment", "Job", "PodDisruptionBudget", "Service", "ServiceAccount"]
    spec = release.get("Deployment")["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert release.get("Job")["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"


def test_everything_that_can_be_switched_on(helm: Helm) -> None:
    release = helm.render(EVERYTHING)
    assert set(release.kinds()) >= {"HorizontalPodAutoscaler", "NetworkPolicy", "ServiceMonitor"}
    assert "replicas" not in release.get("Deployment")["spec"]  # else each upgrade would undo what was scaled
    assert release.get("NetworkPolicy")["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert release.server()["image"].startswith("hyperfleet@sha256:")


# ── what must agree ──────────────────────────────────────────────────────────────────────────────────────────────


def test_selectors_find_the_servers_pods_and_no_other(release: Release) -> None:
    server = release.get("Deployment")["spec"]["template"]["metadata"]["labels"]
    others = [pod["metadata"]["labels"] for pod in release.pods() if pod["metadata"]["labels"] != server]
    for selector in selectors(release):
        assert selector.items() <= server.items()
        assert not any(selector.items() <= labels.items() for labels in others)


def test_the_service_leads_to_the_port_that_is_listened_at(helm: Helm, tmp_path: Path) -> None:
    release = helm.render(lay_over(EMBEDDED, {"containerPort": 9000, "listenHost": "[::]"}))
    (port,) = release.server()["ports"]
    (service_port,) = release.get("Service")["spec"]["ports"]
    assert service_port["targetPort"] == port["name"]
    address = parse_address(resolve_settings(release, tmp_path).listen)
    assert (address.host, address.port) == ("::", port["containerPort"])


def test_probes_ask_what_the_server_answers(release: Release) -> None:
    answered = {route.path for route in health.routes(System(Settings(database="memory:")).context)}
    container = release.server()
    probes = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe["path"] for probe in probes.values()} == answered
    assert probes["readinessProbe"]["path"] == "/readyz"
    assert probes["livenessProbe"]["path"] == "/healthz"  # a database that is away is no reason to restart


def test_a_pod_has_the_time_that_draining_takes(release: Release) -> None:
    spec = release.get("Deployment")["spec"]["template"]["spec"]
    _, pause = release.server()["lifecycle"]["preStop"]["exec"]["command"]
    (drain,) = (
        int(line.removeprefix("drainTimeout: ").removesuffix("s"))
        for line in release.get("ConfigMap")["data"]["settings.yaml"].splitlines()
        if line.startswith("drainTimeout: ")
    )
    needed = timedelta(seconds=int(pause) + drain) + supervision._EXTRA_DRAIN
    assert needed < timedelta(seconds=spec["terminationGracePeriodSeconds"]) <= needed + timedelta(seconds=10)


@pytest.mark.parametrize("values", [EMBEDDED, POSTGRES, EVERYTHING], ids=["embedded", "postgres", "everything"])
def test_the_server_starts_with_these_settings(helm: Helm, tmp_path: Path, values: Values) -> None:
    settings = resolve_settings(helm.render(values), tmp_path)
    assert parse_database(settings.database).engine == ("sqlite" if values is EMBEDDED else "postgresql")
    assert not parse_address(settings.listen).is_loopback
    if values is EVERYTHING:
        assert settings.policy is not None
        assert not has_errors(check_policies(Path(settings.policy).read_text()).problems)
        assert Path(settings.policy).read_text().rstrip() == str(EVERYTHING["policy"]).rstrip()
        assert spec_checker(settings)("Cluster", {})[0].code == "SchemaMismatch"
        assert (settings.workers, settings.limits.max_body_bytes) == (2, 2_097_152)
        assert settings.drain_timeout == timedelta(seconds=45)
        assert settings.auth.tokens == "/etc/hyperfleet-auth/tokens.yaml"
        assert [each.issuer for each in settings.auth.issuers] == ["https://id.example.com"]
        assert (settings.tls.certificate, settings.tls.min_version) == ("/etc/hyperfleet-tls/tls.crt", "tls1.3")
        assert (settings.tenancy.label, settings.audit.to, settings.redaction.keys) == ("team", "log", ("licence",))
        assert (settings.limits.max_requests_per_second, settings.metrics.max_resources) == (50, 500)
        assert not settings.insecure_listen
    assert settings.log_format == "json"


def test_the_embedded_file_is_on_the_volume(helm: Helm, tmp_path: Path) -> None:
    release = helm.render(EMBEDDED)
    file = Path(parse_database(resolve_settings(release, tmp_path).database).location)
    (mount,) = (each["mountPath"] for each in release.server()["volumeMounts"] if each["name"] == "data")
    assert file.parent == Path(mount) == Path(texts("VOLUME")[0])


def test_a_password_is_only_in_the_secret(release: Release) -> None:
    for pod in release.pods():
        for variable in pod["spec"]["containers"][0]["env"]:
            assert ("valueFrom" in variable) == (variable["name"] in ("HYPERFLEET_DATABASE", "HYPERFLEET_PUBSUB_URL"))
    assert "postgresql:" not in release.get("ConfigMap")["data"]["settings.yaml"]


def test_the_migrations_job_runs_a_command_of_ours(helm: Helm) -> None:
    job = helm.render(POSTGRES).get("Job")["spec"]["template"]["spec"]
    (container,) = job["containers"]
    noun, verb = container["args"]
    context = click.Context(command)
    group = command.get_command(context, noun) if isinstance(command, click.Group) else None
    assert isinstance(group, click.Group)
    assert verb in group.commands
    settings = resolve({}, environment_of(container)).settings
    assert settings.database == SECRET
    assert "serviceAccountName" not in job  # the release's own is not there yet


def test_pods_have_no_more_rights_than_they_need(release: Release) -> None:
    user, group = (int(number) for number in texts("USER")[0].split(":"))
    for pod in release.pods():
        security = pod["spec"]["securityContext"]
        assert (security["runAsUser"], security["runAsGroup"], security["fsGroup"]) == (user, group, group)
        assert security["runAsNonRoot"]
        assert not pod["spec"]["automountServiceAccountToken"]
        for container in pod["spec"]["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_every_mount_has_its_volume(release: Release) -> None:
    for pod in release.pods():
        volumes = {volume["name"] for volume in pod["spec"].get("volumes", [])}
        mounts = {
            mount["name"] for container in pod["spec"]["containers"] for mount in container.get("volumeMounts", [])
        }
        assert mounts == volumes


def test_tls_is_spoken_by_server_probes_and_scrapes(helm: Helm) -> None:
    release = helm.render(EVERYTHING)
    server, settings = release.server(), release.get("ConfigMap")["data"]["settings.yaml"]
    (mount,) = (each["mountPath"] for each in server["volumeMounts"] if each["name"] == "tls")
    assert f"certificate: {mount}/tls.crt\n" in settings
    assert server["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    assert release.get("ServiceMonitor")["spec"]["endpoints"][0]["scheme"] == "https"


def test_prometheus_scrapes_with_a_token(helm: Helm) -> None:
    (endpoint,) = helm.render(EVERYTHING).get("ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "fleet-scraper", "key": "token"}
    assert endpoint["tlsConfig"]["ca"]["secret"]["key"] == "ca.crt"
    assert endpoint["path"] == metrics.PATH
    public = lay_over(POSTGRES, {"serviceMonitor": {"enabled": True}})
    assert "authorization" not in helm.render(public).get("ServiceMonitor")["spec"]["endpoints"][0]


def test_rules_are_those_of_the_files(helm: Helm) -> None:
    groups = helm.render(EVERYTHING).get("PrometheusRule")["spec"]["groups"]
    rendered = [rule for group in groups for rule in group["rules"]]
    ours = [*read_rules(RECORDING), *read_rules(ALERTS)]
    assert [(rule.get("alert"), rule["expr"]) for rule in rendered] == [
        (rule.get("alert"), rule["expr"]) for rule in ours
    ]
    links = {rule["annotations"]["runbook_url"].partition("#")[0] for rule in rendered if "alert" in rule}
    assert links == {"https://wiki.example.com/fleet"}


def test_the_dashboard_is_a_config_map(helm: Helm) -> None:
    release = helm.render(lay_over(EMBEDDED, {"dashboard": {"enabled": True}}))
    (found,) = (each for each in release.manifests if each["metadata"]["name"] == "fleet-hyperfleet-dashboard")
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert msgspec.json.decode(found["data"]["hyperfleet.json"]) == msgspec.json.decode(DASHBOARD.read_bytes())


def test_changed_settings_replace_the_pods(helm: Helm) -> None:
    def checksum(values: Values) -> str:
        template = helm.render(values).get("Deployment")["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/config"])

    assert checksum(EMBEDDED) == checksum(EMBEDDED)
    assert checksum(EMBEDDED) != checksum(lay_over(EMBEDDED, {"policy": "requiredAdapters: [dns]\n"}))
