"""Loading adapters: whole files, folders, and the two files of the Go adapter."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import jsonschema
import msgspec
import pytest
from ruamel.yaml import YAML

from docs import generate
from hyperfleet.adapter.api_recorded import load_recording
from hyperfleet.adapter.config import ApiSection, MapManifest, StatusBuild, SubscriptionSection, TextManifest
from hyperfleet.adapter.documents.files import adapter_schema
from hyperfleet.adapter.documents.preconditions import OperatorName
from hyperfleet.adapter.loading import LoadedAdapter, LoadOptions, load_adapter, load_folder, load_pair
from hyperfleet.adapter.operators import OPERATORS
from hyperfleet.adapter.starts import start_text
from hyperfleet.adapter.templates import render_yaml
from hyperfleet.errors import UnreadableFile

DATA = Path(__file__).parents[2] / "data/adapters"
CONTRACT = DATA / "contract/adapter.yaml"
PAGE = Path(generate.__file__).parent / "adapters.md"
API = {"HYPERFLEET_API_BASE_URL": "http://api:8000"}
MINIMAL = "adapter: {name: %s}\nparams: [{name: id, source: event.id}]\n"
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def load_good(loaded: LoadedAdapter) -> LoadedAdapter:
    assert loaded.config is not None, [str(each) for each in loaded.problems]
    return loaded


# ── complete files ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_contract_as_printed_is_an_adapter() -> None:
    """Issue 19: the contract's block as printed works; its health rule is the only thing that is warned of."""
    loaded = load_good(load_adapter(CONTRACT, LoadOptions(API)))
    config = loaded.config
    assert config is not None
    assert [each.code for each in loaded.problems] == ["HealthFalseWhileProgressing"]
    assert (config.name, config.kinds) == ("cluster-controller", ("Cluster",))
    assert [each.name for each in config.resources] == ["clusterNamespace", "clusterController"]
    assert [(each.kind, type(each.manifest)) for each in config.resources] == [
        ("Namespace", MapManifest),
        ("Deployment", TextManifest),
    ]
    assert [(each.name, each.kind) for each in config.tracked] == [("exampleResource", "Example")]
    (payload,) = config.payloads
    assert isinstance(payload.build, StatusBuild)
    assert [each.type for each in payload.build.conditions] == ["Applied", "Available", "Health"]
    (action,) = config.actions
    assert (action.name, action.is_report, action.payloads) == (
        "postAction1",
        True,
        frozenset({"clusterStatusPayload"}),
    )
    assert [each.name for each in config.params if each.is_secret] == ["hyperfleetApiToken"]
    assert config.api.base_url == "http://api:8000"


def test_a_complete_go_adapter_loads() -> None:
    """Reference 1.23: the example with notes."""
    loaded = load_good(load_pair(DATA / "go/adapter-config.yaml", DATA / "go/task.yaml", LoadOptions()))
    config = loaded.config
    assert config is not None
    assert [(each.code, each.level) for each in loaded.problems] == [("NoEffect", "warning")], "its log"
    assert config.api == ApiSection(
        base_url="http://api:8000",
        timeout=timedelta(seconds=5),
        token_path="/var/run/secrets/api/token",  # noqa: S106 - a path
        token_lifetime=timedelta(seconds=30),
    )
    assert config.broker == SubscriptionSection(subscription="dns-zone", topic="dev-clusters")
    assert (config.kubernetes.qps, config.kubernetes.burst) == (50.0, 100)
    job, namespace = config.resources
    assert (job.recreate_on_change, job.propagation, job.api_version) == (True, "Foreground", "batch/v1")
    assert job.create_when is not None
    assert namespace.delete_when is not None
    assert config.actions[0].is_report
    assert isinstance(job.manifest, TextManifest)
    variables = {"clusterId": "c1", "generation": 3, "zoneImage": 'zone:"1"', "baseDomain": ""}
    rendered = render_yaml(job.manifest.template, variables, NOW)
    assert rendered.value["spec"]["template"]["spec"]["containers"] == [{"name": "zone", "image": 'zone:"1"'}]


@pytest.mark.parametrize("name", ["dns", "a", "node-pool-2"])
def test_the_start_of_a_new_adapter_is_good(tmp_path: Path, name: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(start_text(name))
    loaded = load_good(load_adapter(file, LoadOptions()))
    assert loaded.problems == ()
    assert loaded.config is not None
    assert loaded.config.name == name
    assert loaded.config.actions[0].is_report


def test_the_example_of_the_page_is_good(tmp_path: Path) -> None:
    """docs/adapters.md: the whole file, as it is printed."""
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    file = tmp_path / "x.yaml"
    file.write_text(text)
    assert load_good(load_adapter(file, LoadOptions())).problems == ()


def test_the_page_names_every_code() -> None:
    """docs/adapters.md lists the codes of all problems that the conformance table expects."""
    table = (Path(__file__).parents[2] / "conformance/adapter/problems.yaml").read_text()
    codes = set(re.findall(r"^    - \[([A-Za-z]+),", table, re.MULTILINE))
    listed = set(re.findall(r"`([A-Z][A-Za-z]+)`", PAGE.read_text().partition("## What check reports")[2]))
    assert codes <= listed


# ── the environment stands over the file ─────────────────────────────────────────────────────────────────────────────


def test_the_environment_stands_over_the_file(tmp_path: Path) -> None:
    """Reference 1.3: flag, then environment, then file, then default."""
    file = tmp_path / "a.yaml"
    file.write_text(
        MINIMAL % "a" + "clients: {hyperfleet_api: {base_url: http://file, timeout: 5s, retry_attempts: 0}}\n"
    )
    env = {
        "HYPERFLEET_API_BASE_URL": "http://env/",
        "HYPERFLEET_API_AUTH_TOKEN_PATH": "/token",
        "BROKER_TOPIC": "old",
        "HYPERFLEET_BROKER_SUBSCRIPTION_ID": "sub",
        "HYPERFLEET_KUBERNETES_QPS": "5",
    }
    config = load_good(load_adapter(file, LoadOptions(env))).config
    assert config is not None
    assert (config.api.base_url, config.api.timeout, config.api.attempts) == ("http://env", timedelta(seconds=5), 3)
    assert (config.api.token_path, config.broker, config.kubernetes.qps) == (
        "/token",
        SubscriptionSection(subscription="sub", topic="old"),
        5.0,
    )


@pytest.mark.parametrize(
    "variable", ["HYPERFLEET_API_TIMEOUT", "HYPERFLEET_API_RETRY_BACKOFF", "HYPERFLEET_KUBERNETES_BURST"]
)
def test_a_variable_that_is_not_valid_is_a_problem_with_its_name(tmp_path: Path, variable: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(MINIMAL % "a")
    loaded = load_adapter(file, LoadOptions({variable: "soon"}))
    assert [each.place.file for each in loaded.problems] == [f"${variable}"]


# ── folders and files ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_has_several_adapters(tmp_path: Path) -> None:
    """Other files, such as manifests, are left alone; so are the doubles that Kubernetes mounts."""
    for name in ("a.yaml", "b/b.yml", "..data/a.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(MINIMAL % Path(name).stem)
    (tmp_path / "job.yaml").write_text("apiVersion: batch/v1\nkind: Job\n")
    (tmp_path / "notes.txt").write_text("adapter: none")
    loaded = load_folder(tmp_path, LoadOptions())
    assert [each.config.name for each in loaded if each.config] == ["a", "b"]
    assert len(loaded) == 2


def test_two_adapters_with_one_name_or_subscription_are_refused(tmp_path: Path) -> None:
    """Reference 1.3: unique per adapter, otherwise they take each other's events."""
    (tmp_path / "a.yaml").write_text(MINIMAL % "same")
    (tmp_path / "b.yaml").write_text(MINIMAL % "same")
    (tmp_path / "c.yaml").write_text(MINIMAL % "other" + "clients: {broker: {subscription_id: same}}\n")
    loaded = load_folder(tmp_path, LoadOptions())
    found = [(Path(each.file).name, [problem.code for problem in each.problems]) for each in loaded]
    assert found == [("a.yaml", []), ("b.yaml", ["DuplicateName"] * 2), ("c.yaml", ["DuplicateName"])]


def test_a_folder_without_adapters_is_a_problem(tmp_path: Path) -> None:
    assert [each.code for each in load_folder(tmp_path, LoadOptions())[0].problems] == ["NoAdapters"]


@pytest.mark.parametrize("content", [None, b"\xff\xfe\xfd", b"x" * 1_048_577])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "a.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UnreadableFile):
        load_adapter(file, LoadOptions())


@pytest.mark.parametrize("text", ["", "[]", "adapter", "adapter: [", "a: &a [*a]", "adapter:\n  name: 3\nparams: x\n"])
def test_any_text_is_a_result(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    loaded = load_adapter(file, LoadOptions())
    assert loaded.config is None
    assert loaded.problems


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    """Reference 1.5: files stay inside the directory; a symbolic link does not help."""
    (tmp_path / "outside.yaml").write_text("apiVersion: v1\nkind: Namespace\n")
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (folder / "a.yaml").write_text(
        "adapter: {name: a}\nresources: [{name: n, manifest: {ref: link.yaml}, discovery: {by_name: a}}]\n"
    )
    loaded = load_adapter(folder / "a.yaml", LoadOptions())
    assert [each.code for each in loaded.problems] == ["FileReference"]


def test_a_payload_in_a_file_has_problems_with_their_places(tmp_path: Path) -> None:
    (tmp_path / "payload.yaml").write_text("status:\n  a: {expression: 'nope.x'}\n  b: '{{ .id }}'\n")
    file = tmp_path / "a.yaml"
    file.write_text(MINIMAL % "a" + "post: {payloads: [{name: p, build_ref: payload.yaml}]}\n")
    (problem,) = load_adapter(file, LoadOptions()).problems
    assert (Path(problem.place.file).name, problem.place.line, problem.code) == (
        "payload.yaml",
        2,
        "UndefinedVariable",
    )


# ── the schema ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_schema_that_ships_is_current() -> None:
    assert generate.ADAPTER_SCHEMA.read_text() == generate.adapter_schema_text(), "run `make docs`"


def test_the_schema_accepts_good_files_and_refuses_unknown_keys() -> None:
    validator = jsonschema.Draft202012Validator(adapter_schema())
    for text in (CONTRACT.read_text(), start_text("dns")):
        assert list(validator.iter_errors(YAML(typ="safe").load(text))) == []
    assert list(validator.iter_errors({"adapter": {"name": "a"}, "parms": []}))


def test_the_schema_has_every_operator() -> None:
    assert get_args(OperatorName) == OPERATORS


# ── recordings ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("document", "code", "because"),
    [
        ({"responses": [{"match": {"urlPattern": "["}, "responses": [{}]}]}, "Pattern", "the pattern must compile"),
        ({"responses": [{"match": {"method": "GET"}, "responses": [{}]}]}, "MissingKey", "a pattern is needed"),
        ({"responses": [{"match": {"urlPattern": "x"}, "responses": []}]}, "TooShort", "at least one answer"),
        ({"answers": []}, "UnknownKey", "unknown keys are mistakes"),
    ],
)
def test_a_recording_with_a_problem(document: object, code: str, because: str) -> None:
    loaded = load_recording(msgspec.json.encode(document).decode(), "api.json")
    assert loaded.recording is None
    assert [each.code for each in loaded.problems] == [code], because
