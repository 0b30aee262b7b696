"""Settings: what wins, what is refused and in which words, and that no password is ever seen."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from docs import generate
from hyperfleet.api.context import RequestLimits
from hyperfleet.document_problem import DocumentProblem
from hyperfleet.errors import SettingsError
from hyperfleet.services.committer import Capacity
from hyperfleet.settings import (
    SETTINGS,
    Address,
    Resolution,
    Settings,
    conceal,
    find_unknown_variables,
    parse_address,
    parse_database,
    resolve,
    settings_schema,
)

ROOT = Path(__file__).parents[2]
SECRET = "hunter2"  # noqa: S105 - what must not be seen anywhere


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def given(file: str | None = None, flags: dict[str, str | None] | None = None, **variables: str) -> Resolution:
    """Resolve a file's text, flags, and variables given without their prefix."""
    if file is not None:
        Path("settings.yaml").write_text(file)
    environment = {f"HYPERFLEET_{name}": text for name, text in variables.items()}
    return resolve(flags or {}, environment, None if file is None else "settings.yaml")


def problems(
    file: str | None = None, flags: dict[str, str | None] | None = None, **variables: str
) -> tuple[DocumentProblem, ...]:
    with pytest.raises(SettingsError) as caught:
        given(file, flags, **variables)
    return caught.value.problems


def told(file: str | None = None, flags: dict[str, str | None] | None = None, **variables: str) -> list[str]:
    return [str(problem) for problem in problems(file, flags, **variables)]


# ── what wins ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_given_is_enough(tmp_path: Path) -> None:
    settings = given().settings
    assert (settings.listen, settings.workers, settings.policy) == ("127.0.0.1:8000", 1, None)
    assert settings.database == f"sqlite:{tmp_path}/hyperfleet.db", "absolute, so that it can be told"


def test_flag_over_environment_over_file_over_default() -> None:
    file = "logLevel: error\nworkers: 1\ndrainTimeout: 5s\n"
    resolution = given(file, {"--log-level": "debug", "--listen": None}, LOG_LEVEL="warning", DRAIN_TIMEOUT="6s")
    settings = resolution.settings
    assert (settings.log_level, settings.drain_timeout, settings.pool_size) == ("debug", timedelta(seconds=6), 10)
    origins = [resolution.origins[key] for key in ("logLevel", "drainTimeout", "workers", "poolSize")]
    assert origins == ["--log-level", "HYPERFLEET_DRAIN_TIMEOUT", "settings.yaml:2:10", "default"]


def test_groups_are_put_together_setting_by_setting() -> None:
    settings = given("limits: {maxDepth: 64, maxConnections: 9}", LIMITS_MAX_DEPTH="65").settings
    assert (settings.limits.max_depth, settings.limits.max_connections) == (65, 9)
    assert settings.limits.max_batch_reports == 1000


def test_a_mapping_is_replaced_as_a_whole(tmp_path: Path) -> None:
    resolution = given("specSchemas: {Cluster: a.json}", SPEC_SCHEMAS="NodePool=b.json")
    assert resolution.settings.spec_schemas == {"NodePool": f"{tmp_path}/b.json"}


def test_a_variable_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("workers: 1\nlogLevel: debug")
    assert given(CONFIG="other.yaml").settings.log_level == "debug"
    assert given("logLevel: error", CONFIG="other.yaml").settings.log_level == "error", "the flag wins"


def test_a_variable_set_to_nothing_is_not_given() -> None:
    assert given("logLevel: debug", LOG_LEVEL="", CONFIG="").settings.log_level == "debug"


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "---\n# nothing\n", "{}"])
def test_a_file_may_say_nothing(text: str) -> None:
    assert given(text).settings == given().settings


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("TRUE", True), ("1", True), ("yes", True), ("on", True), ("0", False), ("Off", False)],
)
def test_yes_and_no_in_the_environment(text: str, value: bool) -> None:
    assert given(INSECURE_LISTEN=text).settings.insecure_listen is value


def test_every_setting_can_be_given_in_the_environment() -> None:
    variables = {
        setting.variable.removeprefix("HYPERFLEET_"): setting.write_default()
        for setting in SETTINGS
        if setting.default not in (None, {})
    }
    resolution = given(None, None, **variables)
    assert resolution.settings == given().settings
    assert sum(origin != "default" for origin in resolution.origins.values()) == len(variables)


def test_relative_paths_start_at_the_file_or_where_the_command_was_started(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/s.yaml").write_text(
        "policy: p.yaml\nspecSchemas: {Cluster: ../c.json, NodePool: /n.json}\ndatabase: sqlite:d.db\n"
        "pubsub: {brokerFile: broker.yaml}\nsentinel: {config: sentinel.yaml}\n"
    )
    settings = given(CONFIG="etc/s.yaml").settings
    assert settings.policy == f"{tmp_path}/etc/p.yaml"
    assert settings.spec_schemas == {"Cluster": f"{tmp_path}/c.json", "NodePool": "/n.json"}
    assert settings.database == f"sqlite:{tmp_path}/etc/d.db"
    assert settings.pubsub.broker_file == f"{tmp_path}/etc/broker.yaml"
    assert settings.sentinel.config == f"{tmp_path}/etc/sentinel.yaml"
    settings = given(CONFIG="etc/s.yaml", POLICY="p.yaml", DATABASE="sqlite:///d.db").settings
    assert (settings.policy, settings.database) == (f"{tmp_path}/p.yaml", "sqlite:/d.db")


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────────


def test_all_problems_of_all_sources_at_once() -> None:
    file = "databse: x\nlimits:\n  maxDepth: deep\n  requestTimeout: 3d\nretention: {events: 0s}\n"
    found = told(file, {"--listen": "8000", "--workers": "many"}, POOL_SIZE="1", SPEC_SCHEMAS="Clustr=x,NodePool")
    assert [line.split(": ")[0] for line in found] == [
        "settings.yaml:1:1",
        "settings.yaml:3:13",
        "settings.yaml:4:19",
        "settings.yaml:5:21",
        "HYPERFLEET_POOL_SIZE",
        "HYPERFLEET_SPEC_SCHEMAS",
        "--listen",
        "--workers",
    ]
    assert 'unknown key "databse", did you mean "database"?' in found[0]
    assert found[2].endswith('write 72h for "3d"')
    assert found[3].endswith("expected more than 0s")
    assert found[4] == "HYPERFLEET_POOL_SIZE: expected at least 2, found 1"
    assert "Cluster=PATH), found nothing" in found[5]
    assert found[7] == '--workers: expected a whole number, found the text "many"'


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("limits: 5", "settings.yaml:1:9: expected a mapping, found the number 5"),
        ("- listen", "settings.yaml:1:1: expected a mapping, found a list"),
        ("logLevel: INFO", 'did you mean "info"?'),
        ("tracing: {endpoint: 'localhost:4318'}", "expected the URL of a collector, such as http://localhost:4318"),
        ("tracing: {endpoint: 'http://u:p@:x/'}", "expected the URL of a collector"),
        ("tracing: {sampleRatio: 2}", "expected at most 1"),
        ("specSchemas: {Clustr: x}", 'unknown kind "Clustr", did you mean "Cluster"? Known are Cluster, NodePool'),
        ("policy: ''", "expected at least 1 character, found 0"),
        ('policy: "a\\0b"', "a path cannot contain NUL"),
        ("workers: 1\nworkers: 1", "settings.yaml:2:1"),
        ("a: b\n--- \nc: d", "here a second one begins"),
        ("listen: [", "this is not valid YAML"),
    ],
)
def test_a_bad_file_is_refused(file: str, message: str) -> None:
    assert message in "\n".join(told(file))


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    assert told(CONFIG="none.yaml") == ["none.yaml: cannot be read: No such file or directory"]
    assert told(CONFIG=str(tmp_path)) == [f"{tmp_path}: cannot be read: Is a directory"]
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe")
    assert told(CONFIG="binary.yaml") == ["binary.yaml: is not UTF-8 text"]


@pytest.mark.parametrize("listen", ["0.0.0.0:8000", "[::]:8000", "10.0.0.1:0", "fleet.example.com:80"])
def test_others_may_reach_the_server_only_if_somebody_says_so(listen: str) -> None:
    (problem,) = problems(LISTEN=listen)
    assert (problem.code, str(problem.place)) == ("Exposed", "HYPERFLEET_LISTEN")
    assert "--insecure-listen (insecureListen: true)" in problem.message
    assert given(LISTEN=listen, INSECURE_LISTEN="true").settings.listen == listen


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "127.8.8.8:80", "[::1]:8000", "localhost:1", "LocalHost:1"])
def test_this_machine_is_always_allowed(listen: str) -> None:
    assert given(LISTEN=listen).settings.listen == listen


def test_a_request_of_many_reports_must_fit_in_the_queue() -> None:
    (line,) = told("limits: {maxBatchReports: 3000}")
    assert line.startswith(
        "settings.yaml:1:27: a request may have 3000 reports (limits.maxBatchReports), but only 2000 "
    )
    (line,) = told("limits: {maxBatchReports: 3000}", LIMITS_MAX_QUEUED_WRITES="2999")
    assert line.startswith("HYPERFLEET_LIMITS_MAX_QUEUED_WRITES: ")
    assert len(told("limits: {maxBatchReports: 3000}", LIMITS_MAX_QUEUED_WRITES="x")) == 1
    assert given("limits: {maxBatchReports: 3000}", LIMITS_MAX_QUEUED_WRITES="3000")


def test_several_workers_need_postgresql() -> None:
    (line,) = told("workers: 4")
    assert line == "settings.yaml:1:10: 4 workers need PostgreSQL; sqlite: allows only one"
    assert given("workers: 4", DATABASE="postgresql://h/d").settings.workers == 4


def test_what_is_wrong_already_is_not_found_wrong_again() -> None:
    assert len(told("workers: 4\ndatabase: 5\n")) == 1
    assert len(told("workers: 4", DATABASE="mysql://h/d")) == 1
    assert len(told("listen: 0.0.0.0:80\ninsecureListen: 3")) == 1


# ── the environment of others ────────────────────────────────────────────────────────────────────────────────────


def test_a_variable_that_is_no_setting_gets_a_warning() -> None:
    names = ("DATABSE", "LISTEN", "CONFIG", "SOMETHING", "LIMITS_MAX_DEPT")
    assert list(find_unknown_variables({f"HYPERFLEET_{name}": "x" for name in names} | {"HYPERFLEETS": "y"})) == [
        "HYPERFLEET_DATABSE is not a setting, did you mean HYPERFLEET_DATABASE?",
        "HYPERFLEET_LIMITS_MAX_DEPT is not a setting, did you mean HYPERFLEET_LIMITS_MAX_DEPTH?",
        "HYPERFLEET_SOMETHING is not a setting and has no effect",
    ]


@pytest.mark.parametrize(
    "name", ["TEST_POSTGRES", "SERVICE_HOST", "SERVICE_PORT_HTTP", "PORT", "PORT_8000_TCP_ADDR", "API_SERVICE_PORT"]
)
def test_variables_of_tests_and_of_kubernetes_are_left_alone(name: str) -> None:
    assert list(find_unknown_variables({f"HYPERFLEET_{name}": "tcp://10.0.0.1:8000"})) == []


@pytest.mark.parametrize("name", ["CONFIG", "SERVER", "TOKEN", "CONTEXT", "CONFIG_HOME", "ALLOW_INSECURE_TOKEN"])
def test_what_the_command_line_looks_at_is_no_stranger(name: str) -> None:
    assert list(find_unknown_variables({f"HYPERFLEET_{name}": "x"})) == []
    assert list(find_unknown_variables({f"HYPERFLEET_{name}X": "x"})) == [
        f"HYPERFLEET_{name}X is not a setting, did you mean HYPERFLEET_{name}?"
    ]


# ── addresses ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_addresses_read_and_write() -> None:
    assert parse_address("[::1]:0") == Address("::1", 0)
    for text in ("127.0.0.1:8000", "[::1]:65535", "localhost:1"):
        assert str(parse_address(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("8000", "write 127.0.0.1:8000 for this machine only, 0.0.0.0:8000 for every network"),
        (":80", "write 127.0.0.1:80 for this machine only"),
        ("localhost", 'did you mean "localhost:8000"?'),
        ("::1", 'did you mean "[::1]:8000"?'),
        ("::1:9000", 'did you mean "[::1]:9000"?'),
        ("http://localhost:80/", 'did you mean "localhost:80"?'),
        ("h:99999", "a port is at most 65535, found 99999"),
        ("[h]:1", "expected an IPv6 address in brackets"),
        ("[127.0.0.1]:1", "expected an IPv6 address in brackets"),
        ("", 'found ""'),
        ("a b:1", 'found "a b:1"'),
        ("127.0.0.1:80\n", "expected HOST:PORT"),
        ("h:٣", "expected HOST:PORT"),
    ],
)
def test_a_bad_address_is_explained(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_address(text)


# ── databases and their passwords ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "engine", "location"),
    [
        ("sqlite:a.db", "sqlite", "a.db"),
        ("sqlite:/srv/a.db", "sqlite", "/srv/a.db"),
        ("sqlite:///srv/a.db", "sqlite", "/srv/a.db"),
        ("sqlite:////srv/a.db", "sqlite", "/srv/a.db"),
        ("memory:", "memory", ""),
        ("memory://", "memory", ""),
        ("postgresql://h/d", "postgresql", "postgresql://h/d"),
        ("postgres://u@h:5432,[::1]:5433/d", "postgresql", "postgresql://u@h:5432,[::1]:5433/d"),
        ("PostgreSQL:///d?host=/run", "postgresql", "postgresql:///d?host=/run"),
    ],
)
def test_databases(text: str, engine: str, location: str) -> None:
    database = parse_database(text)
    assert (database.engine, database.location) == (engine, location)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fleet.db", "did you mean sqlite:fleet.db?"),
        ("", "expected sqlite:PATH"),
        ("mysql://h/d", "found mysql:"),
        ("sqlite:", "needs the path of a file"),
        ("sqlite::memory:", "memory: keeps no file"),
        ("sqlite://a.db", "write sqlite:a.db or sqlite:///a.db"),
        ("sqlite:a.db?mode=ro", "options cannot be set"),
        ("memory:x", "nothing after the colon"),
        ("postgresql:h/d", "the two slashes are missing"),
        ("postgresql://h:port/d", "cannot be parsed"),
    ],
)
def test_a_bad_database_is_explained(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_database(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"postgresql://u:{SECRET}@h/d", "postgresql://u:***@h/d"),
        (f"postgresql://:{SECRET}@h/d", "postgresql://:***@h/d"),
        (f"postgresql://u@x.org:{SECRET}@h/d", "postgresql://u@x.org:***@h/d"),
        (f"postgresql://u:a:{SECRET}@[::1]:5432/d", "postgresql://u:***@[::1]:5432/d"),
        (f"postgresql://u:{SECRET}%40x@h/d", "postgresql://u:***@h/d"),
        (
            f"postgresql://h/d?user=u&password={SECRET}&sslpassword={SECRET}&x=1",
            "postgresql://h/d?user=u&password=***&sslpassword=***&x=1",
        ),
        ("postgresql://u@h:5432/d", "postgresql://u@h:5432/d"),
        ("postgresql://h1:5432,h2:5433/d", "postgresql://h1:5432,h2:5433/d"),
        ("postgresql://u@[::1]:5432/d", "postgresql://u@[::1]:5432/d"),
    ],
)
def test_a_database_is_shown_without_its_password(text: str, shown: str) -> None:
    database = parse_database(text)
    assert (database.redacted, str(database), repr(database)) == (shown, shown, f"Database('{shown}')")
    assert conceal(conceal(text)) == shown
    settings = given(DATABASE=text).settings
    assert settings.database == text
    assert SECRET not in repr(settings) + str(settings)


# Every text here has the password in a place where something may take it for something else.
LEAKS = [
    f"postgresql://u:{SECRET}/x@h/d",
    f"postgresql://u:1/{SECRET}@h/d",
    f"postgresql://u:1#{SECRET}@h/d",
    f"postgresql://u:1?{SECRET}@h/d",
    f"postgresql://u:[{SECRET}@h/d",
    f"postgresql://u:\uff0f{SECRET}@h/d",
    f"postgresql://u:{SECRET}:x",
    f"postgresql://u: {SECRET}@h/d",
    f"postgresql:u:{SECRET}@h/d",
    f"mysql://u:{SECRET}@h/d",
    f"u:{SECRET}@h/d",
]


@pytest.mark.parametrize("text", LEAKS)
def test_no_message_has_the_password(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|cannot be parsed") as caught:
        parse_database(text)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    "file",
    [
        f"workers: postgresql://u:{SECRET}@h/d",
        f"workers: postgresql://a-user-with-a-long-name:{SECRET}-and-more-than-fits@h/d",
        f"logLevel: postgresql://u:{SECRET}@h/d",
        f"database: postgresql://u:{SECRET}: x@h/d",
        f"database: {'':60}postgresql://user:{SECRET}: x@h/d",
        f"database: 'postgresql://u:{SECRET}@h/d",
        f"listen: postgresql://u:{SECRET}@h/d",
    ],
)
def test_no_problem_of_a_file_has_the_password(file: str) -> None:
    with pytest.raises(SettingsError) as caught:
        given(file)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.problems)


def test_no_problem_of_the_environment_has_the_password() -> None:
    url = f"postgresql://u:{SECRET}@h/d"
    with pytest.raises(SettingsError) as caught:
        given(WORKERS=url, LISTEN=url, LOG_LEVEL=url, DRAIN_TIMEOUT=url, INSECURE_LISTEN=url, DATABASE=url + "#x")
    assert len(caught.value.problems) == 6
    assert SECRET not in str(caught.value)


# ── docs and schema ──────────────────────────────────────────────────────────────────────────────────────────────


def test_every_setting_is_described() -> None:
    assert [setting.key for setting in SETTINGS if not setting.description] == []


def test_generated_parts_are_current() -> None:
    assert generate.SETTINGS_SCHEMA.read_text() == generate.settings_schema_text(), "run `make docs`"
    assert generate.SETTINGS_GUIDE.read_text() == generate.settings_guide_text(), "run `make docs`"


def test_the_guides_example_is_good_and_fits_the_schema() -> None:
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs/settings.md").read_text(), re.DOTALL | re.MULTILINE)
    assert given(example).settings.workers == 4
    validator = jsonschema.Draft202012Validator(settings_schema())
    validator.validate(YAML(typ="safe").load(example))
    assert not validator.is_valid({"databse": "x"})


def test_defaults_are_those_of_the_parts_behind_them() -> None:
    ours, theirs, capacity = Settings().limits, RequestLimits(), Capacity()
    assert (ours.max_body_bytes, ours.max_batch_bytes) == (theirs.body_bytes, theirs.batch_bytes)
    assert (ours.max_depth, ours.max_batch_reports) == (theirs.depth, theirs.batch)
    assert ours.request_timeout == theirs.time
    assert (ours.max_queued_writes, ours.max_writes_per_transaction) == (capacity.queue, capacity.batch)


# ── who is let in ────────────────────────────────────────────────────────────────────────────────────────────────

ISSUER = "{issuer: https://id.example.com, audience: fleet, jwks: https://id.example.com/keys%s}"


def issuer(more: str = "") -> str:
    return ISSUER % (more and f", {more}")


def test_an_issuer_is_told_in_a_file_or_in_the_environment(tmp_path: Path) -> None:
    in_file = given(f"auth: {{tokens: t.yaml, issuers: [{issuer('leeway: 10s')}]}}").settings.auth
    assert in_file.tokens == f"{tmp_path}/t.yaml"
    assert in_file.issuers[0].audiences == {"fleet"}
    assert in_file.issuers[0].leeway == timedelta(seconds=10)
    text = (
        '[{"issuer": "a", "audience": ["b", "c"], "jwks": "keys.json"}, {"issuer": "d", "audience": "e", "jwks": "f"}]'
    )
    resolution = given(None, None, AUTH_ISSUERS=text)
    assert [each.jwks for each in resolution.settings.auth.issuers] == [f"{tmp_path}/keys.json", f"{tmp_path}/f"]
    assert resolution.origins["auth.issuers"] == "HYPERFLEET_AUTH_ISSUERS"
    assert "auth.issuers=[a, d]" in repr(resolution.settings)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("secretFile: s", "an issuer needs its keys: either `jwks` or, for development, `secretFile`"),
        ("leeway: 11m", "a leeway of more than 10m would let expired tokens in: correct the clocks instead"),
        ("algorithms: [none]", 'expected one of "ES256", "ES384", "ES512", "PS256", "PS384"'),
        ("algorithms: [HS256]", "expected one of"),
        ("algorithms: []", "expected at least 1 item, found 0"),
        ("roles: {ops: king}", "expected one of"),
        ("claims: {role: a}", 'unknown key "role", did you mean "roles"?'),
    ],
)
def test_what_is_wrong_with_an_issuer_is_told_at_its_place(more: str, message: str) -> None:
    (problem,) = told(f"auth:\n  issuers:\n    - {issuer(more)}")
    assert problem.startswith("settings.yaml:3:")
    assert message in problem


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://id.example.com/keys", "must begin with https://, found http://id.example.com"),
        ("ftp://id.example.com/keys", "must begin with https://"),
        (f"https://fleet:{SECRET}@id.example.com/keys", "has a password in it"),
        ("https:///keys", "names no host"),
        ("https://id.example.com:keys/", "Port could not be"),
        ("https://id.example.com:99999/keys", "Port out of range"),
        ("https://[::1/keys", "Invalid IPv6 URL"),
        ("https://id example.com/keys", "has invalid characters"),
        ("https://⒈com/keys", "has invalid characters"),
    ],
)
def test_keys_come_unchanged(address: str, message: str) -> None:
    (problem,) = told(f"auth: {{issuers: [{{issuer: a, audience: b, jwks: '{address}'}}]}}")
    assert message in problem
    assert SECRET not in problem


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/k", "http://localhost/k", "http://[::1]/k", "https://a/k"])
def test_keys_of_this_machine_need_no_tls(address: str) -> None:
    assert given(f"auth: {{issuers: [{{issuer: a, audience: b, jwks: '{address}'}}]}}")


@pytest.mark.parametrize(
    "text",
    [
        "[{issuer: a, audience: b, jwks: c, jwks: d}]",
        "[{issuer: a, audience: b, jwks: c}",
        "[]\n---\n[{issuer: a, audience: b, jwks: c}]",
    ],
)
def test_a_variable_is_read_as_strictly_as_a_file(text: str) -> None:
    with pytest.raises(SettingsError, match="HYPERFLEET_AUTH_ISSUERS: expected a list, found the text"):
        given(None, None, AUTH_ISSUERS=text)


def test_an_issuer_has_one_entry() -> None:
    (problem,) = told(f"auth: {{issuers: [{issuer()}, {issuer()}]}}")
    assert "the issuer https://id.example.com is listed twice" in problem


def test_who_asks_may_listen_everywhere() -> None:
    assert given("listen: 0.0.0.0:8000\nauth: {tokens: t.yaml}").settings.auth.is_enabled
    assert given(f"listen: 0.0.0.0:8000\nauth: {{issuers: [{issuer()}]}}").settings.auth.is_enabled
    (problem,) = told("listen: 0.0.0.0:8000\nauth: {issuers: []}\ntls: {certificate: c, key: k, clientCa: a}")
    assert "this server does not authenticate callers" in problem, "a certificate says nothing of roles"


@pytest.mark.parametrize("text", ["certificate: c", "key: k", "clientCa: a"])
def test_a_certificate_needs_its_key(text: str) -> None:
    (problem,) = told(f"tls: {{{text}}}")
    assert "set tls.certificate and tls.key together" in problem
