"""What a sandbox uses and what happened to it, through the published Python SDK: metrics and diagnostics."""
import time

import pytest
from opensandbox.exceptions import SandboxApiException

SCOPES = ("all", "container", "lifecycle", "runtime", "network", "process")


async def test_metrics_are_those_of_the_sandbox(sdk):
    box = await sdk.create(resource={"cpu": "500m", "memory": "128Mi"})
    metrics = await box.get_metrics()
    assert metrics.cpu_count == 0.5 and metrics.memory_total_in_mib == 128
    assert 0 <= metrics.cpu_used_percentage <= 100
    assert 0 < metrics.memory_used_in_mib <= metrics.memory_total_in_mib
    assert abs(metrics.timestamp / 1000 - time.time()) < 120


async def test_metrics_show_a_busy_sandbox(box):
    """Against its own idle second, not against a number: the machine may be busy with other things."""
    await box.get_metrics()
    await box.commands.run("timeout 0.5 sh -c 'while :; do :; done'; true")
    busy = (await box.get_metrics()).cpu_used_percentage
    await box.commands.run("sleep 0.5")
    assert 0 <= (await box.get_metrics()).cpu_used_percentage < busy <= 100


async def test_diagnostics_answer_every_scope(box):
    for scope in SCOPES:
        logs = await box.get_diagnostic_logs(scope)
        events = await box.get_diagnostic_events(scope)
        for content, kind in ((logs, "logs"), (events, "events")):
            assert (content.sandbox_id, content.kind, content.scope) == (box.id, kind, scope)
            assert content.delivery == "inline" and content.content_type.startswith("text/plain")
            assert content.content_length == len(content.content.encode())
            assert content.truncated is False


async def test_diagnostic_logs_are_what_the_first_program_said(sdk):
    box = await sdk.create(entrypoint=["sh", "-c", "echo to-out; echo to-err >&2; exec sleep 300"])
    for _ in range(100):
        logs = await box.get_diagnostic_logs("container")
        if "to-err" in logs.content:
            break
        await box.commands.run("sleep 0.05")
    assert "to-out" in logs.content and "to-err" in logs.content


async def test_diagnostic_events_tell_the_life_of_a_sandbox(sdk, box):
    await box.pause()
    back = await sdk.resume(box.id)
    events = (await back.get_diagnostic_events("lifecycle")).content
    assert [line.split()[1] for line in events.splitlines()] == ["created", "started", "paused", "resumed"]
    await back.close()


async def test_an_unknown_scope_is_refused(box):
    for call in (box.get_diagnostic_logs, box.get_diagnostic_events):
        with pytest.raises(SandboxApiException) as raised:
            await call("everything")
        assert raised.value.status_code == 400
