// The chat against pretended sandboxes and the scripted model: the loop, its bounds, and what the page is told.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { Chat } from "../server/chat.ts";
import { startStandIn } from "../server/standin.ts";
import type { ChatEvent } from "../shared/events.ts";
import { kBeginning, reduce, type CommandItem, type State } from "../web/state.ts";
import { FakeSandboxes, testConfig } from "./fake.ts";

let standIn: { url: string; server: Server };
let sandboxes: FakeSandboxes;
before(async () => void (standIn = await startStandIn(0, 0)));
after(() => standIn.server.close());
beforeEach(() => void (sandboxes = new FakeSandboxes()));

async function begin(env: Record<string, string> = {}, url = standIn.url): Promise<Chat> {
  const chat = new Chat(testConfig(env), { url, name: "scripted", connectSeconds: 2 }, sandboxes);
  await chat.renew();
  return chat;
}

const eventsOf = (chat: Chat): ChatEvent[] => chat.log.since(0).map(({ event }) => event);
const shown = (chat: Chat): State => eventsOf(chat).reduce((state, event) => reduce(state, event, 0), kBeginning);
const commandsOf = (chat: Chat): CommandItem[] => shown(chat).items.filter((item) => item.kind === "command");

async function until<T>(look: () => T | undefined | false, what: string): Promise<T> {
  for (const end = Date.now() + 5000; Date.now() < end; await wait(5)) {
    const value = look();
    if (value) return value;
  }
  throw new Error(`never: ${what}`);
}

async function ask(chat: Chat, text: string): Promise<void> {
  chat.say(text);
  await until(() => !chat.busy, `an answer to ${text}`);
}

test("a program is written, run, and its output told piece by piece", async () => {
  const chat = await begin();
  await ask(chat, "primes please");
  const [file, run] = commandsOf(chat);
  assert.equal(file?.tool, "write_file");
  assert.match(sandboxes.made[0]!.files.get("primes.py")!, /def primes/);
  assert.equal(run?.end?.exit_code, 0);
  assert.deepEqual(run?.output, [{ stream: "stdout", text: "one\ntwo\nthree\n" }, { stream: "stderr", text: "a warning\n" }]);
  assert.ok(eventsOf(chat).filter(({ type }) => type === "output").length >= 4);
  await chat.close("done");
});

test("a refused command names its rule and the model goes on", async () => {
  const chat = await begin();
  await ask(chat, "download it");
  const [run] = commandsOf(chat);
  assert.equal(run?.state, "refused");
  assert.equal(run?.rule, "no-network");
  const last = shown(chat).items.at(-1);
  assert.ok(last?.kind === "say" && last.text.startsWith("I may not"));
  await chat.close("done");
});

for (const allow of [true, false]) {
  test(`a question is told, answered with ${allow ? "yes" : "no"}, and only once`, async () => {
    const chat = await begin();
    chat.say("delete it");
    const question = await until(() => commandsOf(chat).find(({ state }) => state === "held")?.question, "a question");
    await assert.rejects(chat.decide("another", true), /no longer open/);
    await chat.decide(question.id, allow);
    await until(() => !chat.busy, "an answer");
    const run = commandsOf(chat).at(-1)!;
    assert.equal(run.verdict, allow ? "allowed" : "denied");
    assert.equal(run.state, allow ? "ended" : "refused");
    await assert.rejects(chat.decide(question.id, allow), /no longer open/);
    await chat.close("done");
  });
}

test("time a person takes to answer does not count against the prompt", async () => {
  const chat = await begin({ CHAT_MAX_SECONDS: "1" });
  chat.say("delete it");
  const question = await until(() => commandsOf(chat).find(({ state }) => state === "held")?.question, "a question");
  await wait(1100);
  await chat.decide(question.id, true);
  await until(() => !chat.busy, "an answer");
  assert.equal(commandsOf(chat).at(-1)?.end?.exit_code, 0);
  await chat.close("done");
});

test("a prompt that takes too long is ended, its command too", async () => {
  const chat = await begin({ CHAT_MAX_SECONDS: "1" });
  await ask(chat, "hang forever");
  assert.equal(commandsOf(chat)[0]?.end?.cause, "interrupted");
  const last = shown(chat).items.at(-1);
  assert.ok(last?.kind === "problem" && /longer than it may/.test(last.problem.message));
  await chat.close("done");
});

test("stop interrupts the command, and the next prompt works", async () => {
  const chat = await begin();
  chat.say("hang forever");
  await until(() => commandsOf(chat)[0]?.output.length, "output");
  await chat.stop();
  assert.equal(commandsOf(chat)[0]?.end?.cause, "interrupted");
  await ask(chat, "hello");
  assert.equal(commandsOf(chat).at(-1)?.end?.exit_code, 0);
  await chat.close("done");
});

test("a model that never stops is stopped after so many steps", async () => {
  const chat = await begin({ CHAT_MAX_TURNS: "3" });
  await ask(chat, "never stop");
  assert.equal(commandsOf(chat).length, 3);
  const last = shown(chat).items.at(-1);
  assert.ok(last?.kind === "problem" && /after 3 steps/.test(last.problem.message));
  await chat.close("done");
});

test("a limit that is met while a command runs is told", async () => {
  const chat = await begin();
  chat.log.read(() => undefined);
  await ask(chat, "fork bomb");
  assert.deepEqual(commandsOf(chat)[0]?.end?.met, ["pids"]);
  await chat.close("done");
});

test("a model that answers an error, and one that is not there, are told", async () => {
  const chat = await begin();
  await ask(chat, "model offline");
  const last = shown(chat).items.at(-1);
  assert.ok(last?.kind === "problem" && last.problem.where === "model" && /503: the scripted model plays an outage/.test(last.problem.message));
  await chat.close("done");
  const other = await begin({}, "http://127.0.0.1:9/v1");
  await ask(other, "hello");
  const problem = shown(other).items.at(-1);
  assert.ok(problem?.kind === "problem" && /cannot be reached/.test(problem.problem.message));
  await other.close("done");
});

test("an answer that is no chat completion, or has no end, is an error and not a hang", async () => {
  const server = createServer((request, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    if (request.url?.startsWith("/page")) response.end("data: <html>\n\n");
    else for (let i = 0; i < 300; i++) response.write(`data: {"choices":[{"delta":{"content":"${"x".repeat(1000)}"}}]}\n\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  for (const [path, message] of [["/page", /does not speak/], ["/long", /too long/]] as const) {
    const chat = await begin({}, url + path);
    await ask(chat, "hello");
    const last = shown(chat).items.at(-1);
    assert.ok(last?.kind === "problem" && message.test(last.problem.message), JSON.stringify(last));
    await chat.close("done");
  }
  server.closeAllConnections();
  server.close();
});

test("a daemon that is not there is told, and a new sandbox works when it is back", async () => {
  sandboxes.down = true;
  const chat = await begin();
  assert.ok(chat.now.type === "sandbox" && chat.now.sandbox.state === "none" && /does not answer/.test(chat.now.sandbox.problem!.message));
  sandboxes.down = false;
  await chat.renew();
  await ask(chat, "hello");
  assert.equal(commandsOf(chat).at(-1)?.end?.exit_code, 0);
  await chat.close("done");
});

test("a new sandbox replaces the old one, and the end of the chat destroys it", async () => {
  const chat = await begin();
  await chat.renew();
  assert.deepEqual(sandboxes.made.map(({ destroyed }) => destroyed), [true, false]);
  await chat.close("done");
  assert.deepEqual(sandboxes.made.map(({ destroyed }) => destroyed), [true, true]);
  assert.throws(() => chat.say("hello"), /has ended/);
});
