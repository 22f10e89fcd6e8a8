// The small parts: what the model may ask for, what it gets back, what people see, what may be configured.
import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLog } from "../server/events.ts";
import { cpuShare } from "../server/sandbox.ts";
import { Excerpt, readCall } from "../server/tools.ts";
import { plain, visible } from "../web/text.ts";
import { testConfig } from "./fake.ts";

test("arguments of the model are read, bounded, and refused with words", () => {
  assert.deepEqual(readCall("run_command", '{"command":"ls"}', 30), { tool: "run_command", command: "ls", timeoutSeconds: 30 });
  assert.deepEqual(readCall("run_command", '{"command":"ls","timeout_seconds":9999}', 30), { tool: "run_command", command: "ls", timeoutSeconds: 30 });
  assert.deepEqual(readCall("run_command", '{"command":"ls","timeout_seconds":-1}', 30), { tool: "run_command", command: "ls", timeoutSeconds: 30 });
  assert.match(String(readCall("run_command", "{", 30)), /not JSON/);
  assert.match(String(readCall("run_command", "null", 30)), /not an object/);
  assert.match(String(readCall("run_command", '{"command":7}', 30)), /must be a text/);
  assert.match(String(readCall("write_file", '{"path":"a"}', 30)), /content/);
  assert.match(String(readCall("format_disk", "{}", 30)), /no tool/);
});

test("an excerpt keeps the beginning and the end", () => {
  const excerpt = new Excerpt(20);
  for (let i = 0; i < 100; i++) excerpt.add(String(i % 10));
  assert.equal(excerpt.text, "0123456789\n[... 80 characters left out ...]\n0123456789");
  const short = new Excerpt(20);
  short.add("all of it");
  assert.equal(short.text, "all of it");
});

test("characters that hide or turn a command around are spelt out; terminal commands in output are dropped", () => {
  assert.equal(visible("rm a\u202eb\u200b\tc\nd"), "rm a\\u202eb\\u200b\tc\nd");
  assert.equal(plain("\u001b[31mred\u001b[0m\u001b]0;title\u0007 10%\r20%\nlast\r\n"), "20%\nlast\n");
});

test("events are numbered, read on from any number, and bounded", () => {
  const log = new EventLog();
  for (let i = 0; i < 50; i++) log.add({ type: "output", id: "n1", stream: "stdout", text: "x".repeat(100_000) });
  assert.ok(log.since(0).length < 25);
  assert.deepEqual(log.since(48).map(({ id }) => id), [49, 50]);
  const seen: number[] = [];
  const leave = log.read(({ id }) => seen.push(id));
  log.tell({ type: "busy", busy: true });
  log.add({ type: "busy", busy: true });
  leave();
  log.add({ type: "busy", busy: false });
  assert.deepEqual(seen, [0, 51]);
});

test("the share of the processor", () => {
  assert.equal(cpuShare({ at: 0, usage: { cpu_seconds: 1 } }, 1000, { cpu_seconds: 2 }, 2), 0.5);
  assert.equal(cpuShare(undefined, 1000, { cpu_seconds: 2 }, 2), undefined);
  assert.equal(cpuShare({ at: 0, usage: { cpu_seconds: 5 } }, 1000, { cpu_seconds: 2 }, 2), 0);
});

test("settings that make no sense are refused, and none means unlimited", () => {
  assert.throws(() => testConfig({ CHAT_MAX_TURNS: "0" }), /CHAT_MAX_TURNS/);
  assert.throws(() => testConfig({ CHAT_MAX_SECONDS: "Infinity" }), /CHAT_MAX_SECONDS/);
  assert.throws(() => testConfig({ CHAT_MEMORY_MB: "-1" }), /CHAT_MEMORY_MB/);
  assert.throws(() => testConfig({ LLM_BASE_URL: "example.com" }), /LLM_BASE_URL/);
  assert.throws(() => testConfig({ LLM_BASE_URL: "http://127.0.0.1:1/v1" }), /LLM_MODEL/);
});
