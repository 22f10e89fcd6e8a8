#!/usr/bin/env python3
"""Turns spec/seccomp/*.json into the constexpr tables that src/launch/filter_table.cc compiles in.

    gen_seccomp.py SPEC_DIR OUT_DIR     writes OUT_DIR/seccomp_tables.inc and OUT_DIR/seccomp_names.inc
    gen_seccomp.py SPEC_DIR             only checks the data

The data is refused unless every known system call has exactly one decision in every profile; a typo, a call in
two groups, an exception that changes nothing or a rule nobody uses is an error that names the file and the entry.
"""
import errno
import json
import sys
from pathlib import Path

ARCHES = ("x86_64", "aarch64")
PROFILES = ("minimal", "default", "permissive")
CPP_PROFILE = {"default": "standard"}  # `default` is a keyword in C++
UNKNOWN = "ENOSYS"  # what a number without a row gets; such rows are left out of the tables
FULL_MASK = 0xFFFFFFFF


class SpecError(Exception):
    pass


def need(condition, message):
    if not condition:
        raise SpecError(message)


def load(path):
    def unique(pairs):
        names = [name for name, _ in pairs]
        twice = {name for name in names if names.count(name) > 1}
        need(not twice, f"{path.name}: written twice: {', '.join(sorted(twice))}")
        return dict(pairs)

    try:
        return json.loads(path.read_text(), object_pairs_hook=unique)
    except (OSError, ValueError) as problem:
        raise SpecError(f"{path.name}: {problem}") from None


def number(text, where):
    try:
        value = text if isinstance(text, int) else int(text, 0)
    except (TypeError, ValueError):
        raise SpecError(f"{where}: {text!r} is not a number") from None
    need(0 <= value <= FULL_MASK, f"{where}: {text} does not fit in 32 bits")
    return value


def check_action(action, where):
    known = action in ("allow", "KILL") or action in errno.errorcode.values()
    need(known, f"{where}: unknown action {action!r} (allow, KILL or the name of an errno)")
    return action


def parse_condition(raw, where):
    need(set(raw) <= {"arg", "mask", "in"} and {"arg", "in"} <= set(raw), f"{where}: a condition has arg, in and perhaps mask")
    need(raw["arg"] in range(6), f"{where}: arg is 0 to 5")
    mask = number(raw.get("mask", FULL_MASK), where)
    values = sorted(number(value, f"{where}: {name}") for name, value in raw["in"].items())
    need(values and len(set(values)) == len(values), f"{where}: values are missing or equal")
    for value in values:
        need(value & mask == value, f"{where}: {value:#x} has bits outside the mask and never matches")
    return {"arg": raw["arg"], "mask": mask, "values": values}


def parse_rule(name, raw):
    where = f"rules.json: {name}"
    need(raw.get("about"), f"{where}: says nothing about itself")
    need(raw.get("cases"), f"{where}: has no cases; use an exception in the profile instead")
    cases = []
    for index, case in enumerate(raw["cases"]):
        at = f"{where}: case {index}"
        need(case.get("when"), f"{at}: matches everything; use otherwise")
        conditions = [parse_condition(condition, at) for condition in case["when"]]
        cases.append({"when": conditions, "then": check_action(case.get("then"), at)})
    return {"cases": cases, "otherwise": check_action(raw.get("otherwise"), where)}


class Spec:
    """All data files, checked against each other."""

    def __init__(self, folder):
        self.numbers = {arch: load(folder / f"syscalls-{arch}.json")["calls"] for arch in ARCHES}
        for arch, table in self.numbers.items():
            need(len(set(table.values())) == len(table), f"syscalls-{arch}.json: two calls have one number")
        self.calls = set().union(*self.numbers.values())
        self.group_of = self._groups(load(folder / "groups.json"))
        self.rules = {name: parse_rule(name, raw) for name, raw in load(folder / "rules.json").items()}
        self.profiles = {name: self._profile(name, load(folder / f"{name}.json")) for name in PROFILES}
        used = {entry for profile in self.profiles.values() for entry in profile["rules"].values()}
        need(used == set(self.rules), f"rules.json: unused: {', '.join(sorted(set(self.rules) - used))}")

    def _groups(self, raw):
        group_of = {}
        for group, body in raw.items():
            need(body.get("about"), f"groups.json: {group}: says nothing about itself")
            for call in body["calls"]:
                need(call in self.calls, f"groups.json: {group}: no architecture has a call {call!r}")
                need(call not in group_of, f"groups.json: {call} is in {group_of.get(call)} and in {group}")
                group_of[call] = group
        return group_of

    def _profile(self, name, raw):
        where = f"{name}.json"
        need(raw.get("about"), f"{where}: says nothing about itself")
        action_of_group = {}
        for action in raw.keys() - {"about", "rules", "except"}:
            check_action(action, where)
            for group in raw[action]:
                need(group in self.group_of.values(), f"{where}: unknown group {group!r}")
                need(group not in action_of_group, f"{where}: group {group} has two actions")
                action_of_group[group] = action
        for group in self.group_of.values():
            need(group in action_of_group, f"{where}: group {group} has no action")
        actions = {call: action_of_group[group] for call, group in self.group_of.items()}
        rules = self._profile_rules(where, raw.get("rules", {}))
        for call, entry in raw.get("except", {}).items():
            need(call in self.calls and call not in rules, f"{where}: except {call}: unknown call or already ruled")
            need(entry.get("why"), f"{where}: except {call}: needs a why")
            need(actions.get(call) != entry["action"], f"{where}: except {call}: changes nothing")
            actions[call] = check_action(entry["action"], f"{where}: except {call}")
        undecided = self.calls - actions.keys() - rules.keys()
        need(not undecided, f"{where}: no decision for: {', '.join(sorted(undecided))}")
        return {"actions": actions, "rules": rules}

    def _profile_rules(self, where, raw):
        for call, rule in raw.items():
            need(call in self.calls, f"{where}: rule for an unknown call {call!r}")
            need(rule in self.rules, f"{where}: {call}: no rule {rule!r} in rules.json")
            need(call not in self.group_of, f"{where}: {call} has a rule and is in group {self.group_of.get(call)}")
        return raw


def cpp_action(action):
    return {"allow": "kAllow", "KILL": "kKill"}.get(action) or f"refuse({action})"


def wrap(items, width=136):
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > width:
            lines, line = lines + [line], "   "
        line += f" {item},"
    return "\n".join(lines + [line])


def rule_lines(name, rule):
    """The arrays of one rule, innermost first, because each is spanned by the next."""
    cases = []
    for c, case in enumerate(rule["cases"]):
        conditions = []
        for w, condition in enumerate(case["when"]):
            values = f"k_{name}_{c}_{w}"
            yield f"constexpr std::uint32_t {values}[] = {{\n{wrap(f'{value:#x}' for value in condition['values'])}\n}};"
            conditions.append(f"{{{condition['arg']}, {condition['mask']:#x}, {values}}}")
        yield f"constexpr Condition k_{name}_{c}[] = {{{', '.join(conditions)}}};"
        cases.append(f"{{k_{name}_{c}, {cpp_action(case['then'])}}}")
    yield f"constexpr Case k_{name}[] = {{{', '.join(cases)}}};"


def table_lines(spec, profile, arch):
    numbers, data = spec.numbers[arch], spec.profiles[profile]
    by_number = lambda calls: sorted((numbers[call], call) for call in calls if call in numbers)
    rows = [f"{{{nr}, {cpp_action(data['actions'][call])}}}" for nr, call in by_number(data["actions"]) if data["actions"][call] != UNKNOWN]
    yield f"constexpr Row k_{profile}_{arch}_rows[] = {{\n{wrap(rows)}\n}};"
    rules = []
    for nr, call in by_number(data["rules"]):
        name = data["rules"][call]
        rules.append(f"{{{nr}, k_{name}, {cpp_action(spec.rules[name]['otherwise'])}}}")
    yield f"constexpr ArgumentRule k_{profile}_{arch}_rules[] = {{\n{wrap(rules)}\n}};"


def render_tables(spec):
    lines = ["// Made by tools/gen_seccomp.py from spec/seccomp. Change the data, not this file."]
    for name, rule in spec.rules.items():
        lines += rule_lines(name, rule)
    entries = []
    for profile in PROFILES:
        for arch in ARCHES:
            lines += table_lines(spec, profile, arch)
            tag = f"k_{profile}_{arch}"
            entries.append(f"    {{SyscallProfile::{CPP_PROFILE.get(profile, profile)}, {{Arch::{arch}, {tag}_rows, {tag}_rules}}}},")
    lines += [f"constexpr ProfileTable kProfileTables[] = {{", *entries, "};", ""]
    return "\n".join(lines)


def render_names(spec):
    lines = ["// Made by tools/gen_seccomp.py from spec/seccomp. Change the data, not this file."]
    for arch in ARCHES:
        names = [f'{{{nr}, "{call}"}}' for call, nr in sorted(spec.numbers[arch].items(), key=lambda entry: entry[1])]
        lines.append(f"constexpr Name k_{arch}_names[] = {{\n{wrap(names)}\n}};")
    return "\n".join(lines + [""])


def write_if_changed(path, text):
    """An untouched file keeps its time, so that a re-configure compiles nothing."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main(arguments):
    if len(arguments) not in (1, 2):
        sys.exit(__doc__)
    try:
        spec = Spec(Path(arguments[0]))
    except SpecError as problem:
        sys.exit(f"spec/seccomp: {problem}")
    if len(arguments) == 2:
        write_if_changed(Path(arguments[1]) / "seccomp_tables.inc", render_tables(spec))
        write_if_changed(Path(arguments[1]) / "seccomp_names.inc", render_names(spec))


if __name__ == "__main__":
    main(sys.argv[1:])
