"""tools/gen_sdk.py: what it writes follows the specification, and what it cannot write is an error."""
import importlib.util
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
LOADED = importlib.util.spec_from_file_location("gen_sdk", ROOT / "tools" / "gen_sdk.py")
gen = importlib.util.module_from_spec(LOADED)
LOADED.loader.exec_module(gen)


def specification(change=lambda document: None):
    document = yaml.safe_load(gen.SPEC.read_text())
    change(document)
    return gen.Spec(document)


def test_a_new_member_of_the_specification_makes_the_models_stale():
    def add(document):
        document["components"]["schemas"]["Usage"]["properties"]["open_files"] = {"type": "integer", "description": "How many"}

    for language in (gen.Python, gen.TypeScript):
        assert language(specification()).text() in {path.read_text() for path in gen.outputs()}
        assert language(specification(add)).text() != language(specification()).text()
    assert "open_files: int | None = None" in gen.Python(specification(add)).text()
    assert "openFiles?: number | undefined;" in gen.TypeScript(specification(add)).text()


def test_a_required_member_that_is_not_there_is_refused():
    with pytest.raises(gen.SpecError, match="Usage requires"):
        gen.Python(specification(lambda document: document["components"]["schemas"]["Usage"].update(required=["nothing"]))).text()


def test_the_plain_client_is_the_awaited_one_without_its_waits():
    source = '"""What."""\nimport asyncio\n\n\nclass AsyncX:\n    async def f(self) -> None:\n        await asyncio.sleep(1)\n        await self.g()\n'
    assert gen.synchronous("x.py", source).endswith("import time\n\n\nclass X:\n    def f(self) -> None:\n        time.sleep(1)\n        self.g()\n")
    with pytest.raises(gen.SpecError, match="'asyncio' is left"):
        gen.synchronous("x.py", '"""What."""\nasyncio.gather()\n')
