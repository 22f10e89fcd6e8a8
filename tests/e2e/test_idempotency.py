"""Idempotency-Key on POST /v1/sandboxes: asked again, the same sandbox; also by many at once and after a restart."""
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import Daemon

BODY = {"image": {"uri": "host"}, "timeout": 600, "resourceLimits": {"cpu": "1", "memory": "64Mi"}, "entrypoint": ["tail", "-f", "/dev/null"]}


@pytest.fixture(scope="module")
def daemon():
    with Daemon("idem") as one:
        yield one


def create(daemon, key, **change):
    return daemon.request("POST", "/v1/sandboxes", {**BODY, **change}, headers={"Idempotency-Key": key})


def test_the_same_request_again_answers_the_same_sandbox(daemon):
    first, again = create(daemon, "job-1"), create(daemon, "job-1")
    assert (first.status, again.status) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    assert "Idempotency-Replayed" not in first.headers and again.headers["Idempotency-Replayed"] == "true"
    assert first.json()["createdAt"] == again.json()["createdAt"]
    assert create(daemon, "job-2").json()["id"] != first.json()["id"]


def test_many_at_once_make_one(daemon):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: create(daemon, "crowd"), range(8)))
    assert {answer.status for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1


def test_another_body_with_the_key_is_refused(daemon):
    assert create(daemon, "mine").status == 202
    refused = create(daemon, "mine", timeout=700)
    assert refused.status == 422 and refused.json()["code"] == "IDEMPOTENCY::CONFLICT"


def test_a_failed_create_frees_the_key(daemon):
    assert create(daemon, "again", entrypoint=["/no/such/program"]).status == 400
    made = create(daemon, "again")
    assert made.status == 202 and "Idempotency-Replayed" not in made.headers


def test_a_sandbox_that_is_gone_is_not_made_twice(daemon):
    made = create(daemon, "short").json()["id"]
    daemon.delete(made)
    gone = create(daemon, "short")
    assert gone.status == 409 and gone.json()["code"] == "IDEMPOTENCY::GONE"


@pytest.mark.parametrize("key", ["", "a b", "x" * 129, "sl/ash"])
def test_keys_of_the_wrong_shape_are_refused(daemon, key):
    answer = create(daemon, key)
    assert answer.status == 400 and answer.json()["field"] == "Idempotency-Key"


def test_keys_survive_a_restart(daemon):
    first = create(daemon, "durable").json()["id"]
    daemon.kill_serve()
    daemon.start()
    again = create(daemon, "durable")
    assert again.status == 202 and again.json()["id"] == first and again.headers["Idempotency-Replayed"] == "true"
    assert create(daemon, "durable", timeout=700).status == 422


def test_the_command_line_takes_a_key(daemon):
    first = daemon.cli("create", "--idempotency-key", "cli-1")
    again = daemon.cli("create", "--idempotency-key", "cli-1")
    assert first.returncode == again.returncode == 0 and first.stdout == again.stdout
