"""Which keys and texts of a report are secrets, and which only look a little like one."""

from __future__ import annotations

import base64
import json
import re
import tracemalloc
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperfleet.services.redaction import REDACTED, Redactor
from hyperfleet.services.secret_keys import WORDS

ROOT: Final = Path(__file__).parents[3]
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJkbnMifQ.c2lnbmF0dXJl"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"

SENSITIVE = (
    *("password", "Password", "PASSWORD", "pass-word", "dbPassword", "db_password", "DB-PASSWORD", "db.password"),
    *("passwd", "passphrase", "token", "refreshToken", "API-TOKEN", "tokens", "secret", "clientSecret", "secrets"),
    *("kubeconfig", "kube_config", "adminKubeConfig", "apiKey", "api-key", "x-api-key", "privateKey", "credentials"),
    *("credential", "accessKey", "aws_secret_access_key", "authorization", "Cookie", "set-cookie", "connectionString"),
    *(
        "client-key-data",
        "signing_key",
        "passwordHash",
        "bearer",
        "password1",
        "PASSWORD_2",
        "privateKeyPem",
        "tls.key",
    ),
    *("credentialsJson", "token_base64", "secretValue", "dockerconfigjson", "AccountKey", "kubeconfig-data"),
    *("pwd", "dbPwd", "DB_PWD", "user-pwd2"),
)
HARMLESS = (
    *("secretName", "secretRef", "tokenExpiresAt", "tokenUrl", "passwordPolicy", "kubeconfigSecretName", "accessKeyId"),
    *(
        "publicKey",
        "key",
        "keys",
        "cookieDomain",
        "authorizationMode",
        "forgotten",
        "broken",
        "name",
        "",
        "credentialsRef",
        "bypass",
        "COMPASS",
        "tokenSecretName",
        "passwordSecretRef",
        "publicKeyPem",
        "secretHash",
        "passed",
    ),
)


@pytest.fixture
def redactor() -> Redactor:
    return Redactor()


@pytest.mark.parametrize("key", SENSITIVE)
@pytest.mark.parametrize("value", ["hunter2", 1234, 1.5, {"a": "b"}, ["a"]])
def test_what_stands_under_a_sensitive_key_is_taken_out(redactor: Redactor, key: str, value: Any) -> None:
    is_count = key.endswith("s") and not isinstance(value, str | dict | list)
    redacted = redactor.redact({"data": {key: value, "zone": "a"}})
    assert redacted.body == {"data": {key: value if is_count else REDACTED, "zone": "a"}}
    assert bool(redacted.notes) != is_count
    assert redactor.is_sensitive(key)
    assert bool(redactor.clean(json.dumps({"data": {key: value}}).encode()).notes) != is_count


@pytest.mark.parametrize("key", HARMLESS)
def test_what_only_begins_like_a_sensitive_key_stays(redactor: Redactor, key: str) -> None:
    body = {"data": {key: "hunter2"}}
    assert redactor.redact(body).body is body
    assert not redactor.is_sensitive(key)
    raw = json.dumps(body).encode()
    assert redactor.clean(raw).body is raw


@pytest.mark.parametrize("value", [True, False, None, "", REDACTED])
def test_what_tells_no_secret_stays(redactor: Redactor, value: Any) -> None:
    assert redactor.redact({"hasToken": value}).body["hasToken"] in (value, REDACTED)
    assert redactor.redact({"hasToken": True}).notes == ()
    assert redactor.redact({"token": REDACTED}).notes == (), "what we answered may be sent back without a note"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (KEY, REDACTED),
        (f"the key is\n{KEY}\nas told", f"the key is\n{REDACTED}\nas told"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE cut off", REDACTED),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----", REDACTED),
        (JWT, REDACTED),
        (f"refused: Bearer {JWT} is old", f"refused: Bearer {REDACTED} is old"),
        ("Authorization: bearer 0123456789abcdef0123", f"Authorization: bearer {REDACTED}"),
        ("postgres://hyper:hunter2@db:5432/fleet", f"postgres://hyper:{REDACTED}@db:5432/fleet"),
        ("amqp://:hunter2@mq", f"amqp://:{REDACTED}@mq"),
        ('amqp://us"er:hun:te"r2@mq', f'amqp://us"er:{REDACTED}@mq'),
        ("postgres://hyper:hun@ter2@db:5432/fleet", f"postgres://hyper:{REDACTED}@db:5432/fleet"),
        (
            "https://a:hunter2@one/x and https://b:hunter3@two",
            f"https://a:{REDACTED}@one/x and https://b:{REDACTED}@two",
        ),
        ("host=db password='hun ter2' user=a", f"host=db password={REDACTED} user=a"),
        ('login --token="hunter2" --dry', f"login --token={REDACTED} --dry"),
        ("password='hunter2 cut off", f"password={REDACTED}"),
        ("host=db password=hunter2 user=a", f"host=db password={REDACTED} user=a"),
        ("GET https://a/b?access_token=abc&x=1", f"GET https://a/b?access_token={REDACTED}&x=1"),
        ("password: hunter2", f"password: {REDACTED}"),
        ("password = hunter2 now", f"password = {REDACTED} now"),
        ("psql --password hunter2 --verbose", f"psql --password {REDACTED} --verbose"),
        ("psql --db-password=hunter2", f"psql --db-password={REDACTED}"),
        ("Server=db;Uid=a;Pwd=hunter2;Port=1", f"Server=db;Uid=a;Pwd={REDACTED};Port=1"),
        ("api_key=hunter2", f"api_key={REDACTED}"),
        ("the API key: hunter2", f"the API key: {REDACTED}"),
        ("password=hun,ter2&x user=a", f"password={REDACTED} user=a"),
        ("Authorization: Basic aHVudGVyMg== was refused", f"Authorization: Basic {REDACTED} was refused"),
        ("Authorization: Bearer hunter was refused", f"Authorization: Bearer {REDACTED} was refused"),
        ("Authorization: Digest username=a, response=b", f"Authorization: {REDACTED}"),
        ("curl -H 'Cookie: a=b; c=d' https://a", f"curl -H 'Cookie: {REDACTED}' https://a"),
        ('sent {"password": "hun\\"ter2", "a": 1} to it', f'sent {{"password": {REDACTED}, "a": 1}} to it'),
        ('sent {\\"token\\": \\"hunter2\\"} to it', f'sent {{\\"token\\": {REDACTED}}} to it'),
        ("users:\n- user:\n    token: hunter2\n", f"users:\n- user:\n    token: {REDACTED}\n"),
        ("password: |\n  hunter2\n  hunter3\nzone: a", f"password: {REDACTED}\nzone: a"),
        ("cookie: |\n  hunter2\nzone: a", f"cookie: {REDACTED}\nzone: a"),
        ("env {Name:DB_PASSWORD Value:hunter2}", f"env {{Name:DB_PASSWORD Value:{REDACTED}"),
        ("- name: DB_PASSWORD\n  value: hunter2\n", f"- name: DB_PASSWORD\n  value: {REDACTED}\n"),
        ('{"a": {"token": "hunter2"}}', f'{{"a": {{"token": "{REDACTED}"}}}}'),
        ('"{\\"token\\": \\"hunter2\\"}"', f'"{{\\"token\\": \\"{REDACTED}\\"}}"'),
        ('{"token": "hunter2", "token": true}', f'{{"token": {REDACTED}, "token": {REDACTED}'),
        ("secret: swordfish", f"secret: {REDACTED}"),
        ("password: swordfish was refused", f"password: {REDACTED} was refused"),
        ("password: required", None),
        ("--password is required; use --token to log in", None),
        ("the password is wrong", None),
        ("token expired", None),
        ("password=true, tokens: 3, secret: <none>, password: ***", None),
        ("failed to get token: context deadline exceeded", None),
        ('failed to get secret: secrets "dns" not found', None),
        ("kubeconfig_secret: cls-1-kubeconfig", None),
        ("kubectl --kubeconfig /etc/admin.conf get nodes", None),
        ("arn:aws:secretsmanager:eu-west-1:1:secret:prod/db", None),
        ("pulled quay.io/external-secrets/external-secrets:v0.9", None),
        ("basic authentication failed", None),
        ("-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", None),
        ("https://api.example.com:6443/healthz answered 503", None),
        ("mail to ops@example.com or see https://a.example.com/x@y", None),
        ("the token is expired; no password was given: secret not found", None),
        ("bearer authentication is misconfigured", None),
        ("eyJ is how they begin", None),
    ],
)
def test_what_is_obviously_a_secret_is_taken_out_of_any_text(redactor: Redactor, text: str, left: str | None) -> None:
    expected = text if left is None else left
    assert redactor.conceal(text) == expected
    redacted = redactor.redact([{"message": text}], "/a")
    assert redacted.body == [{"message": expected}]
    assert [note.pointer for note in redacted.notes] == ([] if left is None else ["/a/0/message"])
    cleaned = redactor.clean(json.dumps([{"message": text}]).encode())
    assert json.loads(cleaned.body) == redacted.body
    assert bool(cleaned.notes) == (left is not None)


TOKENS = (
    *(f"gh{kind}_{'a1B2' * 9}" for kind in "opsur"),
    *("github_pat_" + "a1_B" * 20, "glpat-" + "a1-B" * 5, "gldt-" + "a1_B" * 5, "glsa_" + "a1B2" * 8),
    *("AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", "AIza" + "a1-B_" * 7, "xoxb-123456789012-" + "a1B2" * 6),
    *("sk_live_" + "a1B2" * 6, "rk_test_" + "a1B2" * 6, "sk-ant-" + "a1-B" * 9, "sk-proj-" + "a1_B" * 9),
    *("npm_" + "a1B2" * 9, "pypi-" + "a1B2" * 9, "hvs." + "a1-B" * 8, "hvb." + "a1_B" * 8, "dop_v1_" + "a1b2" * 16),
    *("sha256~" + "a1-B" * 10, "k8s-aws-v1." + "a1B2" * 9, "dckr_pat_" + "a1-B" * 6),
    base64.b64encode(KEY.encode()).decode(),
)


@pytest.mark.parametrize("token", TOKENS)
def test_well_known_tokens_are_removed_wherever_they_are(redactor: Redactor, token: str) -> None:
    for text in (token, f"refused ({token})", f"x={token}", f"\n{token}\n"):
        assert token not in redactor.conceal(text)
        assert token.encode() not in redactor.clean(json.dumps({"data": [text]}).encode()).body


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ({"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "DB_PASSWORD", "value": REDACTED}),
        ({"value": "hunter2", "type": "env", "key": "api-key"}, {"value": REDACTED, "type": "env", "key": "api-key"}),
        ({"Name": "--token", "Value": ["a"]}, {"Name": "--token", "Value": REDACTED}),
        ({"name": "tokens", "value": 3}, None),
        ({"name": "zone", "value": "a"}, None),
        ({"name": "KUBECONFIG_SECRET", "value": "cls-1-kubeconfig"}, None),
        ({"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "pw"}}}, None),
        ({"args": ["--password", "hunter2", "--dry"]}, {"args": ["--password", REDACTED, "--dry"]}),
        ({"args": ["--password", "--dry", "a"]}, None),
        ({"key": KEY.split("\n")}, {"key": [REDACTED] * 3}),
        (
            {"key": [*KEY.split("\n")[:2], "", 1, "cut", "off"]},
            {"key": [REDACTED, REDACTED, "", 1, REDACTED, REDACTED]},
        ),
        ({"key": ["a", f"b {KEY}", "c"]}, {"key": ["a", f"b {REDACTED}", "c"]}),
        ({"key": [*KEY.split("\n"), "c"]}, {"key": [REDACTED, REDACTED, REDACTED, "c"]}),
        ({"kubeconfig_secret": "cls-1-kubeconfig", "tlsSecret": "default/tls"}, None),
        ({"kubeconfigSecret": "Hunter2", "tlsSecret": "a" * 32}, {"kubeconfigSecret": REDACTED, "tlsSecret": REDACTED}),
        ({"clientSecret": "hunter2"}, {"clientSecret": REDACTED}),
        ({"imagePullSecrets": [{"name": "registry"}]}, None),
        ({"password": {"valueFrom": {"secretKeyRef": {"name": "db", "key": "pw", "optional": True}}}}, None),
        ({"clientSecret": {"name": "oidc", "namespace": "auth", "key": "client-secret"}}, None),
        ({"apiKeys": [{"name": "ci", "key": "hunter2"}]}, {"apiKeys": REDACTED}),
        ({"token": {"name": "ci", "key": []}}, {"token": REDACTED}),
        ({"kubeconfig": "/etc/kubernetes/admin.conf"}, None),
        (
            {"pass": "hunter2", "dbPass": "a", "DB_PASS": "b"},
            {"pass": REDACTED, "dbPass": REDACTED, "DB_PASS": REDACTED},
        ),
        ({"pass": 12, "fail": 0}, None),
        ({"aws_creds": "hunter2"}, {"aws_creds": REDACTED}),
        ({"token": "", "secrets": [], "cookie": {}}, None),
    ],
)
def test_pairs_lists_and_references(redactor: Redactor, body: Any, left: Any) -> None:
    expected = body if left is None else left
    assert redactor.redact({"data": [body]}).body == {"data": [expected]}
    assert json.loads(redactor.clean(json.dumps({"data": [body]}).encode()).body) == {"data": [expected]}
    text = json.dumps(body)  # the same as JSON inside a string
    assert json.loads(redactor.conceal(text)) == expected
    assert json.loads(json.loads(redactor.conceal(json.dumps(text)))) == expected


@pytest.mark.parametrize("key", ["postgres://hyper:hunter2@db/fleet", "x?token=hunter2", JWT])
def test_what_is_obviously_a_secret_is_taken_out_of_keys(redactor: Redactor, key: str) -> None:
    for value in ("up", {"zone": "a"}, "https://u:hunter2@h"):
        redacted = redactor.redact({"data": {key: value}})
        assert redacted.notes
        cleaned = redactor.clean(json.dumps({"data": {key: value}}).encode())
        assert json.loads(cleaned.body) == redacted.body
        for told in (repr(redacted), repr(cleaned)):
            assert "hunter2" not in told
            assert JWT not in told


def test_notes_say_where_and_never_what(redactor: Redactor) -> None:
    notes = redactor.redact({"data": {"a/b": [{"token": "hunter2"}], "url": "https://u:hunter2@h"}}, "/reports/3").notes
    assert [(note.pointer, note.code) for note in notes] == [
        ("/reports/3/data/a~1b/0/token", "Redacted"),
        ("/reports/3/data/url", "Redacted"),
    ]
    assert "hunter2" not in repr(notes)


@pytest.mark.parametrize("word", WORDS)
def test_the_guide_names_every_word(word: str) -> None:
    section = (ROOT / "docs/security.md").read_text().partition("## Redaction")[2].partition("\n## ")[0]
    assert f"`{word}`" in section.lower()


def test_nothing_of_what_is_given_is_changed(redactor: Redactor) -> None:
    body = {"data": {"token": "hunter2", "list": [{"secret": "x"}]}}
    copy = json.loads(json.dumps(body))
    redactor.redact(body)
    assert body == copy


def test_keys_can_be_added_and_all_of_it_switched_off() -> None:
    redactor = Redactor(["Door-Code", "PIN"])
    redacted = redactor.redact({"doorcode": "1", "mainDoor_Code": "2", "pin": 3, "token": "4", "spinner": "5"})
    assert redacted.body == {"doorcode": REDACTED, "mainDoor_Code": REDACTED, "pin": REDACTED, "token": REDACTED} | {
        "spinner": "5"
    }
    assert redactor.clean(b'{"data": {"doorCode": 1}}').notes
    off = Redactor(["pin"], is_enabled=False)
    body = {"token": "4", "pin": 1, "message": KEY}
    assert off.redact(body).body == body
    assert not off.clean(json.dumps(body).encode()).notes
    assert off.conceal(KEY) == KEY


@pytest.mark.parametrize(
    "raw", [b'{"p\\u0061ssword": "hunter2"}', b'{"a": "https:\\/\\/u:hunter2@h"}', b'{"token"\t:\n"x"}']
)
def test_an_escape_hides_nothing(redactor: Redactor, raw: bytes) -> None:
    assert redactor.clean(raw).notes


@pytest.mark.parametrize(
    "text",
    [
        "eyJ",
        "-----BEGIN ",
        "bearer ",
        "://a:",
        "password=",
        "password='",
        "://a:b@",
        "a",
        "bearer 1",
        ":",
        "-----BEGIN PRIVATE KEY-----",
        "eyJaaaaaaaa.",
        "token: ",
        "token",
        "a-",
        "--token ",
        "a=",
        "password=a,",
        'password="',
        'password=\\"',
        "password: |\n ",
        "value: name: ",
        "name=token value=",
        "cookie: ",
        "Authorization: Basic ",
        "ghp_",
        "LS0tLS1CRUdJTiBQUklW",
        "\\",
        '\\"',
        '"',
        "[",
        '{"a":',
        " ",
        "tls",
    ],
)
def test_no_text_takes_more_than_one_pass(redactor: Redactor, text: str) -> None:
    long = text * (128 * 1024 // len(text))  # what reads the rest of a text at each place would take minutes
    redactor.conceal(long)
    redactor.clean(json.dumps(["://", long, f"://{long}"]).encode())


def test_long_keys_do_not_fill_the_memory(redactor: Redactor) -> None:
    tracemalloc.start()
    for number in range(200):
        assert redactor.redact({f"{number}{'x' * 20_000}token": "hunter2"}).notes
        assert redactor.is_sensitive(f"{number}{'x' * 20_000}token")
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_000_000


SECRETS = st.from_regex(r"[A-Za-z0-9/+.-]{0,9}[A-Z][0-9][A-Za-z0-9/+-]{4,20}", fullmatch=True).map(
    lambda text: f"Zq9{text}"
)
SENSITIVE_KEYS = st.sampled_from([*WORDS, *SENSITIVE, "pass", "DB_PASS"])


def hide(secret: str, key: str) -> st.SearchStrategy[Any]:
    """Return values that contain a secret in each of the shapes of the table in docs/security.md."""
    word = key.replace(" ", "")
    pair = base64.b64encode(f"admin:{secret}".encode()).decode()
    texts = (
        *(f"{word}: {secret}", f"{word} = {secret}", f"a {word}={secret};b=c", f"run --{word} {secret} --dry"),
        *(f'run --{word}="{secret}"', f"it's '{word}': '{secret}'", f"{word}: |\n  {secret}\nzone: a"),
        *(
            f'cut off {{"{word}": "{secret}',
            f'told \\"{word}\\":\\"{secret}\\"',
            f"postgres://u:{secret.replace('/', '')}@db",
        ),
        *(f"name: {word}, value: {secret}", f"{{Name:{word} Value:{secret} Else:nil}}"),
        *(f"Authorization: Bearer {secret}", f"Authorization: Basic {pair}", f"-----BEGIN PRIVATE KEY-----\n{secret}"),
        *(f"ghp_{'x' * 16}{secret.replace('/', '').replace('+', '').replace('.', '').replace('-', '')}",),
    )
    bodies = (
        *({key: secret}, {key: [secret]}, {key: {"a": secret}}, {"name": word, "value": secret}),
        *({"Value": {"a": secret}, "other": 1, "Key": word}, {"args": [f"--{word}", secret]}),
        {"lines": ["-----BEGIN RSA PRIVATE KEY-----", secret, "-----END RSA PRIVATE KEY-----"]},
    )
    return st.sampled_from([*texts, *bodies])


@st.composite
def secret_bodies(draw: st.DrawFn) -> tuple[str, Any]:
    """Draw a secret and a body that has it in some shape at some depth, also as JSON inside strings."""
    secret = draw(SECRETS)
    body = draw(hide(secret, draw(SENSITIVE_KEYS)))
    levels = 0
    for _ in range(draw(st.integers(0, 5))):
        wrappers = ["list", "dict", "message"] + ["json"] * (levels < 2)
        wrapper = draw(st.sampled_from(wrappers))
        levels += wrapper == "json"
        indent = draw(st.sampled_from([None, 1]))
        wrapped: dict[str, Any] = {
            "list": ["a", body, 1],
            "dict": {"zone": "a", "data": body, "n": None},
            "message": {"type": "Available", "message": body},
            "json": json.dumps(body, indent=indent),
        }
        body = wrapped[wrapper]
    return secret, body


def is_told(secret: str, told: str) -> bool:
    """Tell whether a secret is in a text, also without the characters that some of the shapes leave out."""
    core = re.sub("[^A-Za-z0-9]", "", secret)
    pair = base64.b64encode(f"admin:{secret}".encode()).decode()
    return core in re.sub("[^A-Za-z0-9]", "", told) or pair in told


@given(secret_bodies())
def test_a_secret_in_a_recognised_shape_is_nowhere_in_the_result(drawn: tuple[str, Any]) -> None:
    secret, body = drawn
    redactor = Redactor()
    before = json.dumps(body)
    redacted = redactor.redact(body)
    assert not is_told(secret, json.dumps(redacted.body) + repr(redacted.notes))
    assert redacted.notes
    assert json.dumps(body) == before, "the input is not changed"
    assert not redactor.redact(redacted.body).notes, "once is enough"
    for raw in (before.encode(), json.dumps(body, indent=1).encode(), msgspec.json.encode(body)):
        assert not redactor.is_harmless(raw)
        assert not is_told(secret, redactor.clean(raw).body.decode())
    assert not is_told(secret, redactor.conceal(before))


class Thorough(Redactor):
    """Looks at every value, whatever the quick test says."""

    def is_harmless(self, raw: bytes) -> bool:
        return False


PIECES = st.sampled_from(
    [
        *(
            "password",
            "token",
            "pass",
            "Pwd",
            "secrets",
            "kubeconfig_secret",
            "api key",
            "authorization",
            "cookie",
            "value",
        ),
        *(
            "name",
            "DB_PASSWORD",
            ":",
            "=",
            ": ",
            " = ",
            "--",
            "-",
            " ",
            "\n",
            "\t",
            '"',
            "'",
            "\\",
            "{",
            "}",
            "[",
            "]",
            ",",
        ),
        *(
            "x1",
            "hunter2",
            "is",
            "required",
            "://",
            "@",
            "/",
            "Basic ",
            "Bearer ",
            REDACTED,
            "ghp_",
            "a1B2" * 9,
            "eyJ",
            "_",
        ),
        *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "|", "AKIA", "IOSFODNN7EXAMPLE", "é", "0", "2"),
    ]
)
odd_texts = st.lists(PIECES, max_size=10).map("".join)
odd_bodies = st.recursive(
    odd_texts | st.booleans() | st.integers(0, 9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(odd_texts | st.sampled_from(["name", "value", "key"]), inner, max_size=3)
        | inner.map(json.dumps)
    ),
    max_leaves=6,
)


@given(odd_bodies)
def test_the_quick_test_never_calls_harmless_what_would_change(body: Any) -> None:
    thorough = Thorough()
    redacted = thorough.redact(body)
    if not redacted.notes:
        return
    assert not thorough.redact(redacted.body).notes, "once is enough"
    for raw in (json.dumps(body).encode(), json.dumps(body, ensure_ascii=False).encode(), msgspec.json.encode(body)):
        assert not Redactor().is_harmless(raw)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["a", JWT, KEY, "https://u:p@h", "x=1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*WORDS, *SENSITIVE, *HARMLESS, "a", "b", "x://u:p@h"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_the_quick_look_misses_nothing(value: Any, indent: int | str | None, is_ascii: bool) -> None:
    redactor = Redactor()
    redacted = redactor.redact(value)
    raw = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()
    assert redactor.clean(raw).notes == redacted.notes
    assert json.loads(redactor.clean(raw).body) == redacted.body
    assert not redactor.redact(redacted.body).notes, "once is enough"
