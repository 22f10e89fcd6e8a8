"""Bash sessions through the published Python SDK: what its own suites assert, and what a real shell adds."""
import asyncio
from datetime import timedelta

import pytest
from opensandbox.exceptions import SandboxException


def lines(run):
    return [message.text for message in run.logs.stdout]


async def test_a_session_keeps_its_directory_and_environment(sdk, box):
    session = await box.commands.create_session(working_directory="/tmp")
    assert session
    assert lines(await box.commands.run_in_session(session, "pwd")) == ["/tmp"]
    assert lines(await box.commands.run_in_session(session, "pwd", working_directory="/var")) == ["/var"]
    assert lines(await box.commands.run_in_session(session, "pwd", working_directory="/tmp")) == ["/tmp"]
    await box.commands.run_in_session(session, "export E2E_SESSION_ENV=session-env-ok")
    assert lines(await box.commands.run_in_session(session, "echo $E2E_SESSION_ENV")) == ["session-env-ok"]
    seen = sdk.recorder()
    failed = await box.commands.run_in_session(session, "sh -c 'echo session-fail >&2; exit 7'", handlers=seen.handlers)
    assert (failed.error.name, failed.error.value, failed.exit_code, failed.complete) == ("CommandExecError", "7", 7, None)
    assert [message.text for message in failed.logs.stderr] == ["session-fail"]
    assert [event.id for event in seen.events["on_init"]] == [session] == [failed.id]
    assert seen.events["on_execution_complete"] == []
    other = await box.commands.create_session(working_directory="/var")
    assert lines(await box.commands.run_in_session(other, "pwd; echo ${E2E_SESSION_ENV-none}")) == ["/var", "none"]
    for opened in (session, other):
        await box.commands.delete_session(opened)
        with pytest.raises(SandboxException):
            await box.commands.run_in_session(opened, "pwd")
    with pytest.raises(SandboxException):
        await box.commands.delete_session(session)


async def test_functions_aliases_options_and_jobs_stay(box):
    session = await box.commands.create_session()
    await box.commands.run_in_session(session, "f() { echo fun $1; }; alias hello='echo alias'; x=plain; set -o pipefail; sleep 60 &")
    done = await box.commands.run_in_session(session, "f 1\nhello\necho $x\njobs -r | wc -l\nfalse | true")
    assert lines(done) == ["fun 1", "alias", "plain", "1"] and done.exit_code == 1
    assert (await box.commands.run_in_session(session, "exit 3")).exit_code == 3
    assert lines(await box.commands.run_in_session(session, "f 2")) == ["fun 2"], "exit ended the run, not the shell"
    await box.commands.delete_session(session)


async def test_a_session_run_past_its_timeout_ends_and_the_session_stays(box):
    session = await box.commands.create_session()
    await box.commands.run_in_session(session, "x=kept")
    late = await box.commands.run_in_session(session, "sleep 30; echo no", timeout=timedelta(seconds=1))
    assert late.error is not None and late.complete is None and late.logs.stdout == []
    assert lines(await box.commands.run_in_session(session, "echo $x")) == ["kept"]


async def test_interrupting_a_session_by_its_id_ends_it(sdk, box):
    session = await box.commands.create_session()
    seen = sdk.recorder()
    running = asyncio.ensure_future(box.commands.run_in_session(session, "sleep 30", handlers=seen.handlers))
    await asyncio.wait_for(seen.first.wait(), 10)
    await box.commands.interrupt(session)
    done = await asyncio.wait_for(running, 15)
    assert done.error is not None and done.complete is None
    with pytest.raises(SandboxException):
        await box.commands.run_in_session(session, "true")
