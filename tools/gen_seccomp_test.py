#!/usr/bin/env python3
"""The generator must refuse data that does not hold together, and name the culprit."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "spec" / "seccomp"


class GenSeccomp(unittest.TestCase):
    def generate(self, change=None, file="default.json", out=None):
        with tempfile.TemporaryDirectory() as folder:
            for source in SPEC.glob("*.json"):
                (Path(folder) / source.name).write_text(source.read_text())
            if change:
                path = Path(folder) / file
                data = json.loads(path.read_text())
                change(data)
                path.write_text(json.dumps(data))
            command = [sys.executable, str(ROOT / "tools" / "gen_seccomp.py"), folder] + ([str(out)] if out else [])
            return subprocess.run(command, capture_output=True, text=True)

    def refuses(self, words, change, file="default.json"):
        result = self.generate(change, file)
        self.assertNotEqual(result.returncode, 0, "the generator took broken data")
        self.assertIn(words, result.stderr)

    def test_takes_the_data_as_it_is(self):
        self.assertEqual(self.generate().returncode, 0)

    def test_refuses_a_misspelt_call(self):
        self.refuses("no architecture has a call 'opneat'", lambda d: d["fs"]["calls"].append("opneat"), "groups.json")

    def test_refuses_a_call_in_two_groups(self):
        self.refuses("bpf is in kernel_surface and in machine", lambda d: d["machine"]["calls"].append("bpf"), "groups.json")

    def test_refuses_a_call_without_a_decision(self):
        self.refuses("no decision for: brand_new", lambda d: d["calls"].update(brand_new=900), "syscalls-x86_64.json")

    def test_refuses_two_calls_with_one_number(self):
        self.refuses("two calls have one number", lambda d: d["calls"].update(brand_new=0), "syscalls-x86_64.json")

    def test_refuses_a_group_without_an_action(self):
        self.refuses("group uring has no action", lambda d: d["ENOSYS"].remove("uring"))

    def test_refuses_a_group_with_two_actions(self):
        self.refuses("group uring has two actions", lambda d: d["allow"].append("uring"))

    def test_refuses_an_unknown_action(self):
        self.refuses("unknown action 'EPREM'", lambda d: d.update(EPREM=[]))

    def test_refuses_an_exception_without_a_reason(self):
        self.refuses("needs a why", lambda d: d.update({"except": {"bpf": {"action": "allow"}}}))

    def test_refuses_an_exception_that_changes_nothing(self):
        self.refuses("changes nothing", lambda d: d.update({"except": {"bpf": {"action": "EPERM", "why": "x"}}}))

    def test_refuses_a_rule_for_a_call_that_a_group_decides(self):
        self.refuses("bind has a rule and is in group net", lambda d: d["rules"].update(bind="socket_families"))

    def test_refuses_a_rule_nobody_uses(self):
        spare = {"about": "x", "cases": [{"when": [{"arg": 0, "in": {"a": 1}}], "then": "allow"}], "otherwise": "EPERM"}
        self.refuses("unused: spare", lambda d: d.update(spare=spare), "rules.json")

    def test_refuses_a_value_outside_its_mask(self):
        widen = lambda d: d["socket_families"]["cases"][0]["when"][1]["in"].update(SOCK_WIDE=17)
        self.refuses("has bits outside the mask", widen, "rules.json")

    def test_refuses_a_value_wider_than_32_bits(self):
        widen = lambda d: d["personality_plain"]["cases"][0]["when"][0]["in"].update(wide="0x100000000")
        self.refuses("does not fit in 32 bits", widen, "rules.json")

    def test_leaves_an_unchanged_output_untouched(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.generate(out=folder).returncode, 0)
            tables = Path(folder) / "seccomp_tables.inc"
            before = tables.stat().st_mtime_ns
            self.assertEqual(self.generate(out=folder).returncode, 0)
            self.assertEqual(tables.stat().st_mtime_ns, before)


if __name__ == "__main__":
    unittest.main()
