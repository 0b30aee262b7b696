"""A real server that asks callers who they are: tokens of a file and of an issuer, revoked, rotated, and away."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.server import Server, await_state, run_command, running
from tests.issuing import AUDIENCE, CURVE, FOREIGN, ISSUER, NEXT, RSA, claims, key_set, publishing, sign
from tests.world import body


def make_token(file: Path, *arguments: str) -> str:
    """Make a token as an operator does."""
    done = run_command("token", "create", "--file", str(file), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def ask(server: Server, token: str, method: str = "GET", path: str = "/clusters", **more: Any) -> httpx.Response:
    return server.http.request(method, path, headers={"Authorization": f"Bearer {token}"}, **more)


def test_tokens_of_a_file_are_made_used_and_revoked(tmp_path: Path, database: str) -> None:
    file = tmp_path / "tokens.yaml"
    admin = make_token(file, "--name", "admin", "--role", "admin")
    dns = make_token(file, "--name", "dns", "--role", "reporter", "--adapter", "dns")
    with running(tmp_path, database, auth_tokens=str(file)) as server:
        assert "Callers: authenticated by a file of tokens" in server.log
        assert server.http.get("/clusters").status_code == 401
        cluster = ask(server, admin, "POST", json={"name": "payments", "spec": {}}).json()
        place = f"/clusters/{cluster['id']}/statuses"
        assert ask(server, dns, "POST", place, json=body("dns", "True")).status_code == 200
        assert ask(server, dns, "POST", place, json=body("validation", "True")).status_code == 403
        assert ask(server, dns, "POST", json={"name": "x", "spec": {}}).status_code == 403
        late = make_token(file, "--name", "late", "--role", "reader")
        await_state(lambda: ask(server, late).status_code == 200)
        entries = file.read_text().split("- name: ")
        file.write_text("".join(f"- name: {entry}" for entry in entries if entry and not entry.startswith('"dns"')))
        server.reload()
        await_state(lambda: ask(server, dns).status_code == 401)
        assert ask(server, admin).status_code == 200
        file.write_text("nonsense")
        await_state(lambda: "the token file was not reloaded, keeping the old tokens" in server.log)
        assert ask(server, admin).status_code == 200
        assert server.stop() == 0
        assert not any(token in server.log for token in (admin, dns, late))
        assert "Traceback" not in server.log


def test_tokens_of_an_issuer_whose_keys_change_and_who_goes_away(tmp_path: Path, database: str) -> None:
    with publishing() as directory:
        issuer = {"issuer": ISSUER, "audience": [AUDIENCE], "jwks": directory.url, "roles": {"ops": "admin"}}
        directory.status = 503
        with running(tmp_path, database, auth_issuers=json.dumps([issuer])) as server:
            token = sign(claims(time.time(), roles=["ops"]), RSA)
            answer = ask(server, token)
            assert answer.status_code == 503, "the server runs before the issuer does"
            assert (answer.json()["code"], bool(answer.headers["retry-after"])) == ("IssuerUnavailable", True)
            assert server.is_ready()
            directory.status = 200
            await_state(lambda: ask(server, token).status_code == 200)
            assert ask(server, token, "POST", json={"name": "payments", "spec": {}}).status_code == 201
            assert ask(server, sign(claims(time.time()), FOREIGN)).status_code == 401
            assert ask(server, sign(claims(time.time(), exp=1))).status_code == 401
            directory.document = key_set(NEXT)
            server.reload()
            new = sign(claims(time.time(), roles=["ops"]), NEXT, "ES256")
            await_state(lambda: ask(server, new).status_code == 200)
            assert ask(server, token).status_code == 401, "its key was taken back"
            directory.status = 500
            server.reload()
            assert ask(server, new).status_code == 200
            # A key that is not known may be a new one of theirs: nobody can tell now.
            await_state(lambda: ask(server, sign(claims(time.time()), CURVE, "ES256")).status_code == 503)
            assert server.stop() == 0
            assert "eyJ" not in server.log


@pytest.mark.skipif(shutil.which("curl") is None, reason="Server missing: no curl; to enable: apt-get install curl")
def test_the_commands_of_the_guide_work(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs/security.md").read_text()
    file = tmp_path / "tokens.yaml"
    tokens = {
        name: make_token(file, *shlex.split(arguments))
        for name, arguments in re.findall(
            r"^\$ (\w+)=\$\(hyperfleet token create (.*) --file tokens.yaml\)$", guide, re.M
        )
    }
    assert list(tokens) == ["ADMIN", "DNS"]
    commands = re.findall(r"^\$ curl (.*?)\n# (\d+)$", guide, re.DOTALL | re.MULTILINE)
    assert len(commands) >= 4
    with running(tmp_path, "memory:", auth_tokens=str(file)) as server:
        for command, status in commands:
            for name, token in tokens.items():
                command = command.replace(f"${name}", token)  # noqa: PLW2901  # as a shell does
            words = shlex.split(command.replace("\\\n", "").replace("localhost:8000", server.url))
            done = subprocess.run(  # noqa: S603  # a command of our own guide
                ["/usr/bin/env", "curl", "--silent", "--output", os.devnull, "--write-out", "%{http_code}", *words],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.stdout == status, (command, done.stderr)


def test_a_check_tells_all_that_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    file.write_text("- {name: a, token: short, roles: [king], tenants: ['*']}\n")
    issuers = [{"issuer": ISSUER, "audience": AUDIENCE, "jwks": str(tmp_path / "none.json")}]
    tls = {"tls_certificate": str(tmp_path / "none.pem"), "tls_key": str(tmp_path / "none.key")}
    files = {"policy": str(tmp_path / "none.yaml"), "spec_schemas": f"Cluster={tmp_path / 'schema.json'}"}
    done = run_command("serve", "--check", auth_tokens=str(file), auth_issuers=json.dumps(issuers), **files, **tls)
    assert done.returncode == 1
    assert [line.rpartition("/")[2].partition(":")[0] for line in done.stdout.splitlines()] == [
        *("none.yaml", "schema.json"),
        *("tokens.yaml", "tokens.yaml", "none.json"),
        *("none.pem", "none.key"),
    ]
    done = run_command("serve", database="memory:", listen="127.0.0.1:0", auth_tokens=str(file))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
