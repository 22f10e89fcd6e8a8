"""The tool by itself, and as a LangChain tool where langchain-core is installed."""
from sandbox_tool import SandboxTool

POLICY = {"rules": [{"name": "no-network", "program": "curl", "action": "deny"}]}

with SandboxTool(memory_mb=128, command_policy=POLICY) as tool:
    print("described to a model as:", tool.schema()["function"]["name"])
    print(tool("echo 6 7 > numbers; awk '{ print $1 * $2 }' numbers"))
    print(tool("cat numbers; cat missing"))
    print(tool("curl https://example.com/"))

    try:
        langchain_tool = tool.as_langchain_tool()
    except ImportError:
        print("langchain-core is not installed; everything above works without it")
    else:
        print("as a LangChain tool:", langchain_tool.name, list(langchain_tool.args))
        print(langchain_tool.invoke({"command": "cat numbers"}))
