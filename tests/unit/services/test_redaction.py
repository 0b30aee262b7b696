"""Which keys and texts of a report are secrets, and which only look a little like one."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any, Final

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
    *("client-key-data", "signing_key", "passwordHash", "bearer"),
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
    ],
)
def test_no_text_takes_more_than_one_pass(redactor: Redactor, text: str) -> None:
    long = text * (1024 * 1024 // len(text))  # what takes two passes or more would take minutes
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
