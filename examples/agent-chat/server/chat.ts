// One chat: one sandbox, the conversation with the model, and the events the page shows. One prompt is worked on at a time.
import { randomUUID } from "node:crypto";
import type { ChatEvent, SandboxView } from "../shared/events.ts";
import type { Bounds, Config } from "./config.ts";
import { EventLog } from "./events.ts";
import { asFailure, Failure } from "./failure.ts";
import { ask, type Message, type Model, type ToolCall } from "./llm.ts";
import { CommandRun } from "./run.ts";
import { cpuShare, type Sandbox, type Sandboxes } from "./sandbox.ts";
import { kSystemPrompt, kTools, readCall } from "./tools.ts";

const kCalmLookMs = 2000;
const kBusyLookMs = 400; // often enough to see a limit that is met for a moment

class Stopped extends Error {}

/** The time one prompt may take; it stands still while a person is asked. */
class Clock {
  private readonly ended = new AbortController();
  private timer?: NodeJS.Timeout;
  private left: number;
  private since = 0;

  constructor(seconds: number) {
    this.left = seconds * 1000;
    this.go();
  }
  go(): void {
    this.halt();
    this.since = Date.now();
    this.timer = setTimeout(() => this.ended.abort(new Failure("chat", "This prompt took longer than it may", "Ask for less at once, or raise CHAT_MAX_SECONDS.")), this.left);
  }
  halt(): void {
    if (this.timer === undefined) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.left = Math.max(1, this.left - (Date.now() - this.since));
  }
  get signal(): AbortSignal {
    return this.ended.signal;
  }
}

export class Chat {
  readonly id = randomUUID();
  readonly log = new EventLog();
  lastAsked = Date.now();
  private readonly bounds: Bounds;
  private readonly model: Model;
  private readonly sandboxes: Sandboxes;
  private sandbox?: Sandbox;
  private view: SandboxView = { state: "pending" };
  private measured?: { at: number; usage?: SandboxView["usage"] };
  private history: Message[] = [];
  private work?: { stop: AbortController; done: Promise<void> };
  private run?: CommandRun;
  private looking?: NodeJS.Timeout;
  private changing?: Promise<void>;
  private closed = false;
  private count = 0;

  constructor(config: Config, model: Model, sandboxes: Sandboxes) {
    this.bounds = config.bounds;
    this.model = model;
    this.sandboxes = sandboxes;
    this.log.add({
      type: "hello",
      model: config.model.name,
      scripted: config.model.url === undefined,
      policy: config.policy,
      bounds: { turns: this.bounds.turns, seconds: this.bounds.seconds, command_seconds: this.bounds.commandSeconds },
    });
  }

  get busy(): boolean {
    return this.work !== undefined;
  }

  /** The sandbox as it was last seen, for a page that comes or comes back. */
  get now(): ChatEvent {
    return { type: "sandbox", sandbox: this.view };
  }

  // ---- the sandbox

  /** Destroys the sandbox, if there is one, and makes another. The conversation stays; the model is told. */
  async renew(): Promise<void> {
    if (this.changing) return this.changing;
    this.changing = this.replace().finally(() => (this.changing = undefined));
    return this.changing;
  }

  private async replace(): Promise<void> {
    await this.stop();
    const before = this.sandbox;
    this.sandbox = undefined;
    this.measured = undefined;
    this.show({ state: "pending" });
    if (before) await before.destroy().catch(() => undefined); // it may have ended by itself
    try {
      const made = await this.sandboxes.create();
      if (this.closed) return void (await made.destroy().catch(() => undefined));
      this.sandbox = made;
    } catch (error) {
      return this.show({ state: "none", problem: asFailure(error).problem });
    }
    this.log.add({ type: "new_sandbox", id: this.sandbox.id });
    if (before) this.history.push({ role: "user", content: "[The person replaced the sandbox: /workspace is empty again.]" });
    await this.look(true);
    this.watch();
  }

  private watch(): void {
    clearTimeout(this.looking);
    if (this.closed || !this.sandbox) return;
    this.looking = setTimeout(() => void this.look().finally(() => this.watch()), this.busy ? kBusyLookMs : kCalmLookMs);
  }

  /**
   * Asks the daemon once and tells the page. A daemon that does not answer is told too, and asked again. Where nobody looks, nobody asks:
   * a chat whose page is away must not keep its sandbox awake.
   */
  private async look(first = false): Promise<void> {
    const sandbox = this.sandbox;
    if (!sandbox || (!first && !this.busy && this.log.readerCount === 0)) return;
    try {
      const seen = await sandbox.look();
      if (sandbox !== this.sandbox) return;
      const at = Date.now();
      const share = cpuShare(this.measured, at, seen.usage, seen.limits?.cpu_cores);
      this.measured = { at, usage: seen.usage };
      this.run?.measure(seen);
      this.show({ ...seen, ...(share === undefined ? {} : { cpu_share: share }) });
    } catch (error) {
      if (sandbox === this.sandbox) this.lost(asFailure(error));
    }
  }

  private lost(failure: Failure): void {
    const gone = failure.code === "SESSION::NOT_FOUND";
    if (gone) this.sandbox = undefined;
    this.show({ ...this.view, state: gone ? "ended" : this.view.state, left_ms: undefined, usage: undefined, cpu_share: undefined, problem: failure.problem });
  }

  private show(view: SandboxView): void {
    this.view = view;
    this.log.tell({ type: "sandbox", sandbox: view });
  }

  // ---- the conversation

  /** Begins to work on a prompt. The answer comes as events. */
  say(text: string): void {
    if (this.closed) throw new Failure("chat", "This chat has ended");
    if (this.work) throw new Failure("chat", "The agent is still at work", "Wait for it, or stop it.");
    this.lastAsked = Date.now();
    this.log.add({ type: "user", id: this.name(), text });
    this.history.push({ role: "user", content: text });
    const stop = new AbortController();
    this.log.add({ type: "busy", busy: true });
    this.work = { stop, done: this.answer(stop.signal).finally(() => this.rest()) };
    this.watch();
  }

  private rest(): void {
    this.work = undefined;
    this.lastAsked = Date.now();
    this.log.add({ type: "busy", busy: false });
    void this.look();
  }

  /** Ends the work on the prompt, the running command included. Returns when it has ended. */
  async stop(): Promise<void> {
    const work = this.work;
    if (!work) return;
    work.stop.abort(new Stopped());
    await work.done;
  }

  async decide(question: string, allow: boolean): Promise<void> {
    const sandbox = this.sandbox;
    if (!sandbox || this.run?.question !== question) throw new Failure("chat", "This question is no longer open");
    await sandbox.answer(question, allow);
  }

  private async answer(stop: AbortSignal): Promise<void> {
    const clock = new Clock(this.bounds.seconds);
    const signal = AbortSignal.any([stop, clock.signal]);
    try {
      for (let turn = 1; ; turn++) {
        const calls = await this.turn(signal);
        if (calls.length === 0) return;
        for (const call of calls) this.history.push({ role: "tool", tool_call_id: call.id, content: await this.use(call, clock, signal) });
        if (turn === this.bounds.turns)
          throw new Failure("chat", `The agent was stopped after ${this.bounds.turns} steps`, 'Say "go on", or raise CHAT_MAX_TURNS.');
      }
    } catch (error) {
      const why = signal.aborted ? (signal.reason as unknown) : error;
      const failure = why instanceof Stopped ? new Failure("chat", "Stopped by you") : asFailure(why);
      if (!failure.told) this.log.add({ type: "problem", id: this.name(), problem: failure.problem });
      this.answerOpenCalls(failure.message);
    } finally {
      clock.halt();
    }
  }

  /** One answer of the model: its text goes to the page as it comes, its tool calls are returned. */
  private async turn(signal: AbortSignal): Promise<ToolCall[]> {
    const id = this.name();
    let text = "";
    let calls: ToolCall[] = [];
    for await (const piece of ask(this.model, this.conversation(), kTools, signal)) {
      if ("calls" in piece) {
        calls = piece.calls;
      } else {
        text += piece.text;
        this.log.add({ type: "say", id, text: piece.text });
      }
    }
    const wire = calls.map((call) => ({ id: call.id, type: "function" as const, function: { name: call.name, arguments: call.arguments } }));
    this.history.push({ role: "assistant", content: text, ...(wire.length > 0 ? { tool_calls: wire } : {}) });
    if (text === "" && calls.length === 0) throw new Failure("model", "The model answered nothing", "Ask again, or in other words.");
    return calls;
  }

  /** Carries out one tool call; the text goes back to the model. */
  private async use(call: ToolCall, clock: Clock, signal: AbortSignal): Promise<string> {
    const wish = readCall(call.name, call.arguments, this.bounds.commandSeconds);
    if (typeof wish === "string") return wish;
    if (!this.sandbox) throw new Failure("sandbox", "There is no sandbox to run this in", 'Press "New sandbox".');
    const run = new CommandRun(this.name(), this.log, this.bounds);
    this.run = run;
    try {
      return wish.tool === "write_file" ? await run.write(this.sandbox, wish.path, wish.content) : await run.execute(this.sandbox, wish, clock, signal);
    } finally {
      this.run = undefined;
    }
  }

  // ---- what the model sees

  /** The newest part of the conversation that fits; it begins with something a person said. */
  private conversation(): Message[] {
    let room = this.bounds.historyCharacters;
    let from = this.history.length;
    while (from > 0) {
      room -= JSON.stringify(this.history[from - 1]).length;
      if (room < 0) break;
      from--;
    }
    while (from < this.history.length && this.history[from]!.role !== "user") from++;
    if (from === this.history.length) throw new Failure("chat", "This prompt has become too long for the model", "Begin anew.");
    this.history = this.history.slice(from);
    return [{ role: "system", content: kSystemPrompt }, ...this.history];
  }

  /** Endpoints refuse a conversation with tool calls nobody answered: those of a stopped turn are answered here. */
  private answerOpenCalls(why: string): void {
    const from = this.history.findLastIndex((message) => message.role === "assistant");
    const last = this.history[from];
    const answered = new Set(this.history.slice(from + 1).flatMap((message) => (message.role === "tool" ? [message.tool_call_id] : [])));
    const open = (last?.role === "assistant" ? (last.tool_calls ?? []) : []).filter((call) => !answered.has(call.id));
    for (const call of open) this.history.push({ role: "tool", tool_call_id: call.id, content: `not run: ${why}` });
    if (this.history.at(-1)?.role !== "assistant") this.history.push({ role: "assistant", content: `(${why})` });
  }

  // ---- the end

  /** Ends everything of this chat. Returns when the sandbox is gone. */
  async close(reason: string): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.looking);
    await this.stop();
    await this.changing?.catch(() => undefined);
    const sandbox = this.sandbox;
    this.sandbox = undefined;
    this.show({ state: "ended" });
    this.log.add({ type: "closed", reason });
    await sandbox?.destroy().catch(() => undefined);
  }

  private name(): string {
    return `n${++this.count}`;
  }
}
