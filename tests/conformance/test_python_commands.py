"""Commands through the published Python SDK: what its own suites assert, and the edges around it."""
import asyncio
import time
from datetime import timedelta

import pytest
from opensandbox.exceptions import SandboxApiException, SandboxException
from opensandbox.models.execd import RunCommandOpts


def recent(milliseconds):
    return abs(time.time() * 1000 - milliseconds) < 60_000


async def test_a_command_reports_one_init_its_output_and_one_completion(sdk, box):
    seen = sdk.recorder()
    done = await box.commands.run("echo 'Hello OpenSandbox E2E'", handlers=seen.handlers)
    assert done.id and done.exit_code == 0 and done.error is None
    assert [message.text for message in done.logs.stdout] == ["Hello OpenSandbox E2E"]
    assert done.logs.stderr == []
    assert recent(done.logs.stdout[0].timestamp)
    assert [event.id for event in seen.events["on_init"]] == [done.id]
    assert len(seen.events["on_execution_complete"]) == 1
    assert seen.events["on_execution_complete"][0].execution_time_in_millis >= 0
    assert seen.events["on_error"] == []


async def test_a_short_command_is_not_held_up(box):
    await box.commands.run("true")
    started = time.monotonic()
    for _ in range(5):
        await box.commands.run("true")
    assert time.monotonic() - started < 2.5, "five short commands take no fixed wait"


async def test_working_directory(box):
    done = await box.commands.run("pwd", opts=RunCommandOpts(working_directory="/tmp"))
    assert [message.text for message in done.logs.stdout] == ["/tmp"]


async def test_a_missing_working_directory_is_an_error(box):
    with pytest.raises(SandboxException):
        await box.commands.run("pwd", opts=RunCommandOpts(working_directory="/no/such/directory"))
    assert (await box.commands.run("pwd")).exit_code == 0


async def test_environment_of_one_command(box):
    probe = 'echo "${OSB_PROBE:-__EMPTY__}"'
    before = await box.commands.run(probe)
    with_value = await box.commands.run(probe, opts=RunCommandOpts(envs={"OSB_PROBE": "value with spaces = and 'quotes'"}))
    after = await box.commands.run(probe)
    assert [run.logs.stdout[0].text for run in (before, with_value, after)] == ["__EMPTY__", "value with spaces = and 'quotes'", "__EMPTY__"]


async def test_environment_of_the_sandbox(box):
    done = await box.commands.run('echo "$E2E_TEST"')
    assert done.logs.stdout[0].text == "true"


async def test_standard_error_is_kept_apart(box):
    done = await box.commands.run("echo to-out; echo to-err >&2")
    assert [message.text for message in done.logs.stdout] == ["to-out"]
    assert [message.text for message in done.logs.stderr] == ["to-err"]
    assert done.exit_code == 0


async def test_empty_lines_and_fragments_arrive_as_written(box):
    done = await box.commands.run("printf 'a\\n\\nb\\n\\n\\nc'")
    assert [message.text for message in done.logs.stdout] == ["a", "\n", "b", "\n", "\n", "c"]


async def test_text_beyond_ascii_arrives_whole(box):
    done = await box.commands.run("printf 'åäö \\342\\200\\250 日本\\n'")
    assert done.logs.stdout[0].text == "åäö \u2028 日本"


async def test_a_failing_command_has_an_error_and_no_completion(sdk, box):
    seen = sdk.recorder()
    done = await box.commands.run("echo before; exit 7", handlers=seen.handlers)
    assert done.exit_code == 7 and done.complete is None
    assert (done.error.name, done.error.value) == ("CommandExecError", "7")
    assert seen.events["on_execution_complete"] == [] and len(seen.events["on_error"]) == 1
    assert [message.text for message in done.logs.stdout] == ["before"]


async def test_an_unknown_command_names_itself(box):
    done = await box.commands.run("osb-no-such-command-12345")
    assert done.error.name == "CommandExecError" and done.complete is None
    assert done.exit_code == int(done.error.value) == 127
    assert "osb-no-such-command-12345" in done.logs.stderr[0].text


async def test_a_command_past_its_timeout_is_ended(box):
    started = time.monotonic()
    done = await box.commands.run("sleep 30", opts=RunCommandOpts(timeout=timedelta(seconds=1)))
    assert 0.9 < time.monotonic() - started < 6
    assert done.error is not None and done.complete is None and done.exit_code != 0


async def test_a_backgrounded_grandchild_does_not_hold_the_stream(box):
    started = time.monotonic()
    done = await box.commands.run("sleep 25 & echo done")
    assert done.exit_code == 0 and [message.text for message in done.logs.stdout] == ["done"]
    assert time.monotonic() - started < 10


async def test_background_returns_at_once_without_an_exit_code(box):
    started = time.monotonic()
    done = await box.commands.run("sleep 30", opts=RunCommandOpts(background=True))
    assert time.monotonic() - started < 10
    assert done.id and done.exit_code is None and done.error is None
    status = await box.commands.get_command_status(done.id)
    assert status.id == done.id and status.running is True and status.exit_code is None
    await box.commands.interrupt(done.id)


async def test_status_and_logs_with_a_cursor(box):
    done = await box.commands.run("sh -c 'echo log-line-1; echo log-line-2; sleep 1; echo log-line-3; exit 3'", opts=RunCommandOpts(background=True))
    text, cursor = "", None
    for _ in range(200):
        logs = await box.commands.get_background_command_logs(done.id, cursor)
        text, cursor = text + logs.content, logs.cursor
        status = await box.commands.get_command_status(done.id)
        if not status.running and "log-line-3" in text:
            break
        await asyncio.sleep(0.05)
    assert text == "log-line-1\nlog-line-2\nlog-line-3\n", "each byte once"
    assert status.id == done.id and status.running is False and status.exit_code == 3
    assert status.started_at <= status.finished_at
    again = await box.commands.get_background_command_logs(done.id)
    assert again.content == text, "without a cursor: from the start"


async def test_status_of_a_foreground_command(box):
    done = await box.commands.run("exit 5")
    status = await box.commands.get_command_status(done.id)
    assert (status.running, status.exit_code) == (False, 5)


async def test_unknown_executions_are_errors(box):
    unknown = "0123456789abcdef0123456789abcdef"
    for call in (box.commands.get_command_status, box.commands.get_background_command_logs, box.commands.interrupt):
        with pytest.raises(SandboxApiException):
            await call(unknown)


async def test_interrupt_ends_the_stream_with_one_terminal_event(sdk, box):
    seen = sdk.recorder()
    started = time.monotonic()
    running = asyncio.ensure_future(box.commands.run("sleep 30", handlers=seen.handlers))
    await asyncio.wait_for(seen.first.wait(), 10)
    execution = seen.events["on_init"][0].id
    await box.commands.interrupt(execution)
    done = await asyncio.wait_for(running, 15)
    assert time.monotonic() - started < 20
    assert done.id == execution
    assert (done.complete is None) != (done.error is None), "complete or error, not both"
    assert done.error is None or (done.error.name and done.error.value)
    assert done.error is not None or done.logs.stderr
    assert (await box.commands.run("echo usable")).exit_code == 0


async def test_commands_run_side_by_side(box):
    runs = await asyncio.gather(*(box.commands.run(f"sleep 0.2; echo {number}; exit {number}") for number in range(8)))
    assert [run.exit_code for run in runs] == list(range(8))
    assert [run.logs.stdout[0].text for run in runs] == [str(number) for number in range(8)]


async def test_much_output_arrives_whole(box):
    done = await box.commands.run("seq 1 50000")
    assert done.exit_code == 0 and [int(message.text) for message in done.logs.stdout] == list(range(1, 50001))
