"""A tool for agents: `run_in_sandbox(command)`, each agent with a sandbox of its own.

Works without any framework (call it, or hand `schema()` to a model with function calling); `as_langchain_tool()` makes the same thing a
LangChain tool where langchain-core is installed.
"""
from __future__ import annotations

from types import TracebackType
from typing import Any

from opensandbox_client import CommandDenied, Sandbox, SandboxClient, SandboxError

DESCRIPTION = "Runs a shell command in a Linux sandbox without network and returns its exit code and output. Files in /workspace stay."
MOST_CHARACTERS = 4000  # of output that goes back to the model


class SandboxTool:
    """Made at the first call, destroyed at the end of the `with` block. An error comes back as text: the model is who can mend it."""

    name = "run_in_sandbox"
    description = DESCRIPTION

    def __init__(self, client: SandboxClient | None = None, timeout: float = 30, **sandbox_options: Any) -> None:
        self._client = client or SandboxClient()
        self._timeout = timeout
        self._options = sandbox_options
        self._sandbox: Sandbox | None = None

    def __call__(self, command: str) -> str:
        try:
            if self._sandbox is None:
                self._sandbox = self._client.create_sandbox(**self._options)
            done = self._sandbox.run(command, timeout=self._timeout)
        except CommandDenied as refused:
            return f"refused by rule {refused.rule}: do not try to get around it"
        except SandboxError as error:
            return f"error: {error}"
        how = f"exit code {done.exit_code}" + ("" if done.cause == "exited" else f" ({done.cause})")
        return f"{how}\n{shorten(done.stdout + done.stderr)}"

    def schema(self) -> dict[str, Any]:
        """The tool as models with function calling want it described."""
        parameters = {"type": "object", "properties": {"command": {"type": "string", "description": "A line for the shell."}}, "required": ["command"]}
        return {"type": "function", "function": {"name": self.name, "description": self.description, "parameters": parameters}}

    def as_langchain_tool(self) -> Any:
        from langchain_core.tools import StructuredTool

        def run_in_sandbox(command: str) -> str:
            return self(command)

        return StructuredTool.from_function(func=run_in_sandbox, name=self.name, description=self.description)

    def close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.destroy()
            self._sandbox = None

    def __enter__(self) -> SandboxTool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def shorten(text: str) -> str:
    half = MOST_CHARACTERS // 2
    return text if len(text) <= MOST_CHARACTERS else f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
