"""Entity tags, conditional requests and content encodings."""

from __future__ import annotations

import gzip
import json

import pytest
import zstandard

from hyperfleet.api.context import RequestLimits
from hyperfleet.api.responses import MIN_COMPRESSED
from tests.api.fleet import SPEC, Fleet, errors_of, path_of, problem_of


def inflate(encoding: str, content: bytes) -> bytes:
    return gzip.decompress(content) if encoding == "gzip" else zstandard.ZstdDecompressor().decompress(content)


def raw_get(client: Fleet, path: str, accepted: str) -> tuple[str, str]:
    """Return the content encoding and the entity tag of an answer."""
    response = client.get(path, headers={"Accept-Encoding": accepted})
    return response.headers.get("content-encoding", ""), response.headers["etag"]


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reader_who_has_it_gets_304(client: Fleet) -> None:
    cluster = client.create()
    path = path_of(cluster)
    tag = client.get(path).headers["etag"]
    for known in (
        tag,
        f"W/{tag}",
        f'"other", {tag}',
        "*",
        tag.replace('"', "", 1).replace('"', '-gzip"').join(['"', ""]),
    ):
        response = client.get(path, headers={"If-None-Match": known})
        assert (response.status_code, response.content) == (304, b""), known
        assert response.headers["etag"] == tag
        assert response.headers["vary"] == "Accept-Encoding"
    assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
    client.report(cluster, "dns")
    assert client.get(path, headers={"If-None-Match": tag}).status_code == 200


def test_a_reader_may_want_one_state_only(client: Fleet) -> None:
    cluster = client.create()
    path = path_of(cluster)
    tag = client.get(path).headers["etag"]
    for wanted in (tag, f'"other", {tag}', "*"):
        assert client.get(path, headers={"If-Match": wanted}).status_code == 200
    problem_of(client.get(path, headers={"If-Match": f"W/{tag}"}), 412, "PreconditionFailed")
    client.report(cluster, "dns")
    assert tag not in problem_of(client.get(path, headers={"If-Match": tag}), 412, "PreconditionFailed")["detail"]
    problem_of(client.get("/clusters", headers={"If-Match": '"0"'}), 412, "PreconditionFailed")


def test_a_tag_names_one_state(client: Fleet) -> None:
    cluster = client.create()
    path = path_of(cluster)
    tags = [client.get(path).headers["etag"]]
    changed = client.patch(path, {"labels": {"a": "b"}})
    tags.append(changed.headers["etag"])
    assert client.get(path).headers["etag"] == changed.headers["etag"]
    client.report(cluster, "dns", generation=2)
    tags.append(client.get(path).headers["etag"])
    assert len(set(tags)) == 3


def test_status_objects_have_tags_too(client: Fleet) -> None:
    cluster = client.create()
    client.report(cluster, "dns", data={"a": 1}, observedTime="2025-10-17T11:00:00Z")
    path = f"{path_of(cluster)}/statuses"
    tag = client.get(path).headers["etag"]
    assert client.get(path, headers={"If-None-Match": tag}).status_code == 304
    client.report(cluster, "dns", data={"a": 2}, observedTime="2025-10-17T11:00:00Z")
    assert client.get(path, headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize("value", ["12", '"a', '"a" "b"', 'w/"a"', ","])
def test_a_tag_is_in_quotes(memory_client: Fleet, value: str) -> None:
    path = path_of(memory_client.create())
    response = memory_client.get(path, headers={"If-None-Match": value})
    assert errors_of(response, 400, "InvalidHeader") == {("If-None-Match", "BadFormat")}
    response = memory_client.delete(path, headers={"If-Match": value})
    assert errors_of(response, 400, "InvalidHeader") == {("If-Match", "BadFormat")}


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_a_write_may_be_meant_for_one_state_only(client: Fleet, method: str) -> None:
    cluster = client.create()
    path = path_of(cluster)
    old = client.get(path).headers["etag"]
    client.report(cluster, "dns")
    new = client.get(path).headers["etag"]
    content = {} if method == "DELETE" else {"json": {"spec": {"a": 1}}}
    for stale in (old, f"W/{new}", '"nonsense"', '"99999999999999999999"'):
        problem_of(client.request(method, path, headers={"If-Match": stale}, **content), 412, "PreconditionFailed")
    assert client.get(path).headers["etag"] == new
    exists = client.request(method, path, headers={"If-None-Match": "*"}, **content)
    assert "exists, and If-None-Match: *" in problem_of(exists, 412, "PreconditionFailed")["detail"]
    response = client.request(method, path, headers={"If-Match": f"{old}, {new}"}, **content)
    assert response.is_success, response.text


def test_a_tag_of_a_compressed_answer_is_as_good(client: Fleet) -> None:
    path = path_of(client.create(spec={"text": "x" * MIN_COMPRESSED}))
    _, tag = raw_get(client, path, "gzip")
    assert tag.endswith('-gzip"')
    assert client.patch(path, {"labels": {"a": "b"}}, headers={"If-Match": tag}).status_code == 200
    assert client.patch(path, {"labels": {"a": "c"}}, headers={"If-Match": "*"}).status_code == 200


def test_what_is_not_there_is_not_found_whatever_was_expected(client: Fleet) -> None:
    problem_of(client.delete("/clusters/cls-nobody", headers={"If-Match": "*"}), 404, "NotFound")
    problem_of(client.delete("/clusters/cls-nobody", headers={"If-None-Match": "*"}), 404, "NotFound")
    response = client.delete("/clusters/cls-nobody", headers={"If-None-Match": '"1"'})
    assert errors_of(response, 400, "InvalidHeader") == {("If-None-Match", "BadFormat")}


def test_a_generation_in_the_body_is_a_precondition(client: Fleet) -> None:
    cluster = client.create()
    path = path_of(cluster)
    assert client.patch(path, {"generation": 1, "spec": {"a": 1}}).json()["generation"] == 2
    for method in (client.patch, client.put):
        response = method(path, {"generation": 1, "spec": {"a": 2}})
        assert errors_of(response, 409, "GenerationConflict") == {("/generation", "GenerationConflict")}
    assert client.post("/clusters", {"name": "new", "spec": {}, "generation": 7}).json()["generation"] == 1


# ── content encodings ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("gzip", "gzip"),
        ("zstd", "zstd"),
        ("gzip, zstd", "zstd"),
        ("gzip;q=1, zstd;q=0.5", "gzip"),
        ("gzip;q=0", ""),
        ("*", "zstd"),
        ("*;q=0.5, zstd;q=0", "gzip"),
        ("identity, gzip;q=0.5", ""),
        ("br", ""),
        ("GZIP ; Q=0.5", "gzip"),
        ("gzip;q=nonsense", ""),
        ("", ""),
    ],
)
def test_an_answer_is_compressed_as_the_reader_likes(memory_client: Fleet, accepted: str, expected: str) -> None:
    path = path_of(memory_client.create(spec={"text": "x" * MIN_COMPRESSED}))
    encoding, tag = raw_get(memory_client, path, accepted)
    assert encoding == expected
    assert tag.endswith(f'-{expected}"' if expected else '1"')


def test_what_is_short_is_sent_as_it_is(client: Fleet) -> None:
    assert raw_get(client, path_of(client.create()), "gzip, zstd")[0] == ""


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_what_is_compressed_is_the_same(memory_client: Fleet, encoding: str) -> None:
    created = memory_client.post("/clusters", {"name": "a", "spec": {"text": "x" * MIN_COMPRESSED}})
    sent = memory_client.fetch_raw(path_of(created.json()), {"Accept-Encoding": encoding})
    assert inflate(encoding, sent) == created.content
    assert len(sent) < len(created.content)


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "zstd", "identity", "GZIP"])
def test_a_body_may_be_compressed(client: Fleet, encoding: str) -> None:
    content = json.dumps({"name": "my-cluster", "spec": SPEC}).encode()
    if "gzip" in encoding.lower():
        content = gzip.compress(content)
    elif encoding == "zstd":
        content = zstandard.ZstdCompressor().compress(content)
    response = client.post("/clusters", content=content, headers={"Content-Encoding": encoding})
    assert response.status_code == 201, response.text


class TestLimits:
    """With limits that are quick to reach."""

    @pytest.fixture
    def limits(self) -> RequestLimits:
        return RequestLimits(body_bytes=2_000, batch_bytes=4_000, depth=5, batch=3)

    @pytest.mark.parametrize("encoding", ["gzip", "zstd", "identity"])
    def test_a_large_body_is_refused_however_small_it_was_made(self, memory_client: Fleet, encoding: str) -> None:
        content = json.dumps({"name": "a", "spec": {"text": "x" * 2_000}}).encode()
        if encoding == "gzip":
            content = gzip.compress(content)
        elif encoding == "zstd":
            content = zstandard.ZstdCompressor().compress(content)
        response = memory_client.post("/clusters", content=content, headers={"Content-Encoding": encoding})
        problem_of(response, 413, "BodyTooLarge")

    def test_a_length_that_was_not_promised_is_counted(self, memory_client: Fleet) -> None:
        async def chunks() -> object:
            for _ in range(100):
                yield b" " * 100

        problem_of(memory_client.post("/clusters", content=chunks()), 413, "BodyTooLarge")

    @pytest.mark.parametrize("opening", ["[", '{"a":'])
    @pytest.mark.parametrize("depth", [6, 300])
    def test_a_deep_body_is_refused(self, memory_client: Fleet, opening: str, depth: int) -> None:
        closing = {"[": "]", '{"a":': "}"}[opening]
        content = opening * depth + "1" + closing * depth
        response = memory_client.post("/clusters", content=content)
        assert {code for _, code in errors_of(response)} == {"TooDeep"}

    def test_a_body_as_deep_as_allowed_is_read(self, memory_client: Fleet) -> None:
        assert memory_client.create(spec={"a": {"b": {"c": {}}}}, labels={}, metadata={"labels": {}})
        response = memory_client.post("/clusters", {"name": "b", "spec": {"a": {"b": {"c": {"d": [[]]}}}}})
        assert errors_of(response) == {("/spec/a/b/c/d", "TooDeep")}

    def test_a_batch_has_limits_of_its_own(self, memory_client: Fleet) -> None:
        assert errors_of(memory_client.post("/statuses:batch", {"reports": [1, 2, 3, 4]})) == {
            ("/reports", "OutOfRange")
        }
        padded = json.dumps({"reports": [1]}).encode() + b" " * 3_000
        assert memory_client.post("/statuses:batch", content=padded).status_code == 200
        problem_of(memory_client.post("/statuses:batch", content=padded + b" " * 1_000), 413, "BodyTooLarge")
