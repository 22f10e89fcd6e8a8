"""The code interpreter through its published Python package, on the host image: what its own suites assert of Python.

The other languages need an image that has their kernels: test_code_languages.py.
"""
import asyncio
from datetime import timedelta

import pytest
from opensandbox.exceptions import SandboxApiException

MEMORY = {"cpu": "1", "memory": "512Mi"}


@pytest.fixture
async def codes(sdk):
    """The service under test: `codes` of an interpreter in a sandbox of its own."""
    box = await sdk.create(resource=MEMORY, timeout=timedelta(minutes=10))
    return await sdk.codes(box)


def said(execution):
    return "".join(message.text for message in execution.logs.stdout)


async def test_python_runs_remembers_and_fails_as_the_published_suite_wants_it(sdk, codes):
    first = await codes.run("result = 2 + 2\nresult", language="python")
    assert first.error is None and first.result[0].text == "4" and first.exit_code is None

    context = await codes.create_context("python")
    seen = sdk.recorder()
    done = await codes.run("print('Hello from Python!')\nresult = 2 + 2\nprint(f'2 + 2 = {result}')", context=context, handlers=seen.handlers)
    assert done.id == context.id == seen.events["on_init"][0].id and len(seen.events["on_init"]) == 1
    assert "Hello from Python!\n2 + 2 = 4\n" in said(done)
    assert len(seen.events["on_execution_complete"]) == 1 and seen.events["on_error"] == []
    assert (await codes.run("result", context=context)).result[0].text == "4"

    seen = sdk.recorder()
    failed = await codes.run("print(not_defined)", context=context, handlers=seen.handlers)
    assert failed.error.name == "NameError" and "not_defined" in failed.error.value
    assert any("NameError" in line for line in failed.error.traceback) and len(seen.events["on_error"]) == 1


async def test_contexts_are_apart_listed_found_and_deleted(codes):
    await codes.delete_contexts("python")
    one, two = await codes.create_context("python"), await codes.create_context("python")
    await codes.run("secret = 'of one'", context=one)
    assert (await codes.run("secret", context=two)).error.name == "NameError"
    listed = await codes.list_contexts("python")
    assert {context.id for context in listed} == {one.id, two.id} and {context.language for context in listed} == {"python"}
    assert (await codes.get_context(one.id)).id == one.id
    await codes.delete_context(one.id)
    with pytest.raises(SandboxApiException) as refused:
        await codes.get_context(one.id)
    assert refused.value.status_code == 404
    assert (await codes.run("1 + 1", context=two)).result[0].text == "2"
    await codes.delete_contexts("python")
    assert await codes.list_contexts("python") == []


async def test_a_loop_is_interrupted_and_its_context_goes_on(sdk, codes):
    context = await codes.create_context("python")
    await codes.run("kept = 42", context=context)
    seen = sdk.recorder()
    run = asyncio.ensure_future(codes.run("while True:\n    pass", context=context, handlers=seen.handlers))
    await asyncio.wait_for(seen.first.wait(), 20)
    await codes.interrupt(context.id)
    done = await asyncio.wait_for(run, 15)
    assert done.id == context.id and done.error.name == "KeyboardInterrupt"
    assert (await codes.run("kept", context=context)).result[0].text == "42"
    with pytest.raises(SandboxApiException):
        await codes.interrupt(context.id)


async def test_every_result_has_its_text(codes):
    # This client keeps only the text of a result; that all types are on the wire is tested without it.
    done = await codes.run("from IPython.display import HTML, display\ndisplay(HTML('<b>bold</b>'))\n[1, 2]", language="python")
    assert done.error is None and [result.text for result in done.result] == ["<IPython.core.display.HTML object>", "[1, 2]"]
