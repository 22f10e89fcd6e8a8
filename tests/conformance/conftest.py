"""Both clients of the published Python SDK behind one face, so that each case is written once and run twice."""
import asyncio
import inspect
import logging
from datetime import timedelta

import pytest
from code_interpreter import CodeInterpreter, CodeInterpreterSync
from opensandbox import Sandbox, SandboxManager, SandboxManagerSync, SandboxSync
from opensandbox.config import ConnectionConfig, ConnectionConfigSync
from opensandbox.models.execd import ExecutionHandlers
from opensandbox.models.execd_sync import ExecutionHandlersSync

IMAGE = "opensandbox/code-interpreter:latest"  # what the published suites ask for; an alias of the host image here

logging.getLogger("opensandbox").setLevel(logging.CRITICAL)  # the cases that must fail are many


class Awaited:
    """A synchronous object driven with `await`: every call runs in a thread."""

    def __init__(self, target):
        self._target = target

    def __getattr__(self, name):
        value = getattr(self._target, name)
        if not callable(value):
            return Awaited(value) if type(value).__module__.startswith("opensandbox.sync") else value

        async def call(*args, **options):
            return await asyncio.to_thread(value, *args, **options)

        return call


class Recorder:
    """Collects the events of one execution through the SDK's handlers."""

    NAMES = ("on_init", "on_stdout", "on_stderr", "on_execution_complete", "on_error")

    def __init__(self, handlers_type):
        self.events = {name: [] for name in self.NAMES}
        self.first = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        is_async = handlers_type is ExecutionHandlers
        self.handlers = handlers_type(**{name: self._handler(name, is_async) for name in self.NAMES})

    def _handler(self, name, is_async):
        def note(event):
            self.events[name].append(event)
            if name == "on_init":
                self._loop.call_soon_threadsafe(self.first.set)

        async def note_async(event):
            note(event)

        return note_async if is_async else note


class Sdk:
    """The SDK under test: `async` or `sync`."""

    image = IMAGE

    def __init__(self, kind, daemon):
        self.daemon = daemon
        self.is_async = kind == "async"
        self.made = []

    def config(self, **options):
        kind = ConnectionConfig if self.is_async else ConnectionConfigSync
        return kind(**{"domain": f"127.0.0.1:{self.daemon.port}", "api_key": self.daemon.key, "request_timeout": timedelta(seconds=30), **options})

    def _face(self, target):
        return target if self.is_async else Awaited(target)

    async def _call(self, name, *args, **options):
        function = getattr(Sandbox if self.is_async else SandboxSync, name)
        if inspect.iscoroutinefunction(function):
            return await function(*args, **options)
        return await asyncio.to_thread(function, *args, **options)

    async def create(self, image=IMAGE, config=None, **options):
        options = {"timeout": timedelta(minutes=5), "metadata": {"tag": "e2e-test"}, "resource": {"cpu": "1", "memory": "256Mi"}, **options}
        made = self._face(await self._call("create", image, connection_config=config or self.config(), **options))
        self.made.append(made)
        return made

    async def connect(self, sandbox, config=None, **options):
        return self._face(await self._call("connect", sandbox, connection_config=config or self.config(), **options))

    async def resume(self, sandbox):
        return self._face(await self._call("resume", sandbox, connection_config=self.config()))

    async def manager(self, **options):
        if self.is_async:
            return await SandboxManager.create(self.config(**options))
        return Awaited(SandboxManagerSync.create(self.config(**options)))

    async def codes(self, sandbox):
        """The code interpreter of a sandbox. What the SDK calls its health is a port of Jupyter's own server, which we do not need."""
        if self.is_async:
            return (await CodeInterpreter.create(sandbox, skip_health_check=True)).codes
        made = await asyncio.to_thread(CodeInterpreterSync.create, sandbox._target, skip_health_check=True)
        return Awaited(made.codes)

    def recorder(self):
        return Recorder(ExecutionHandlers if self.is_async else ExecutionHandlersSync)

    async def clean(self):
        for sandbox in self.made:
            try:
                await sandbox.kill()
            except Exception:
                pass  # the case killed it
            await sandbox.close()


@pytest.fixture(params=["async", "sync"])
async def sdk(request, daemon):
    used = Sdk(request.param, daemon)
    yield used
    await used.clean()


@pytest.fixture
async def box(sdk):
    """A sandbox with the settings of the published suites."""
    return await sdk.create(env={"E2E_TEST": "true"})
