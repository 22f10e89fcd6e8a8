// One command of the model in the sandbox: what the page sees of it, and what the model gets back.
import type { CommandEnd, SandboxView } from "../shared/events.ts";
import type { Bounds } from "./config.ts";
import type { EventLog } from "./events.ts";
import { asFailure, Failure } from "./failure.ts";
import type { RunEvent, Sandbox } from "./sandbox.ts";
import { Excerpt } from "./tools.ts";

export interface Pause {
  go(): void;
  halt(): void;
}

const kSlackMs = 250; // a refusal so shortly before the end of the time is the end of the time

export class CommandRun {
  /** The question that holds the command at this moment. */
  question?: string;
  private readonly id: string;
  private readonly log: EventLog;
  private readonly bounds: Bounds;
  private readonly forModel: Excerpt;
  private readonly began = Date.now();
  private askedUntil = Infinity;
  private shown = 0;
  private cut = 0;
  private readonly met = new Set<string>();

  constructor(id: string, log: EventLog, bounds: Bounds) {
    this.id = id;
    this.log = log;
    this.bounds = bounds;
    this.forModel = new Excerpt(bounds.modelCharacters);
  }

  async execute(sandbox: Sandbox, wish: { command: string; timeoutSeconds: number }, clock: Pause, signal: AbortSignal): Promise<string> {
    this.log.add({ type: "command", id: this.id, tool: "run_command", command: wish.command, timeout_seconds: wish.timeoutSeconds });
    let end: (RunEvent & { type: "ended" }) | undefined;
    try {
      for await (const event of sandbox.run(wish.command, wish.timeoutSeconds, signal)) {
        if (event.type === "ended") end = event;
        else this.take(event, clock);
      }
    } catch (error) {
      return this.failed(error, clock, signal);
    }
    if (!end) return this.failed(new Failure("sandbox", "The stream of its output broke off", "Look whether the daemon runs."), clock, signal);
    this.settle("withdrawn", clock);
    const told = this.ended(end);
    signal.throwIfAborted();
    return told;
  }

  async write(sandbox: Sandbox, path: string, content: string): Promise<string> {
    this.log.add({ type: "command", id: this.id, tool: "write_file", command: path, timeout_seconds: 0 });
    const began = Date.now();
    try {
      await sandbox.writeFile(path, content);
    } catch (error) {
      const failure = asFailure(error);
      this.log.add({ type: "refused", id: this.id, judged: false, problem: failure.problem });
      return `error: ${failure.message}`;
    }
    this.output("stdout", content);
    this.log.add({ type: "ended", id: this.id, end: { exit_code: 0, cause: "written", duration_ms: Date.now() - began } });
    return `written: ${content.length} characters`;
  }

  /** Notes the limits that are met while the command runs: the kernel says no to the program, and nobody else would know why. */
  measure(view: SandboxView): void {
    const { usage, limits } = view;
    if (usage?.pids !== undefined && limits?.pids && usage.pids >= limits.pids) this.met.add("pids");
    if (usage?.disk_bytes !== undefined && limits?.disk_mb && usage.disk_bytes >= limits.disk_mb * 1048576 * 0.98) this.met.add("disk");
  }

  private take(event: Exclude<RunEvent, { type: "ended" }>, clock: Pause): void {
    if (event.type === "held") {
      const { id, rule, reason, leftMs } = event.held;
      this.question = id;
      this.askedUntil = Date.now() + leftMs - kSlackMs;
      clock.halt();
      this.log.add({ type: "held", id: this.id, question: { id, rule, left_ms: leftMs, ...(reason ? { reason } : {}) } });
    } else if (event.type === "started") {
      this.settle("allowed", clock);
      this.log.add({ type: "started", id: this.id });
    } else {
      this.settle("allowed", clock);
      this.forModel.add(event.text);
      this.output(event.stream, event.text);
    }
  }

  private output(stream: "stdout" | "stderr", text: string): void {
    const part = text.slice(0, Math.max(0, this.bounds.pageCharacters - this.shown));
    this.shown += part.length;
    this.cut += text.length - part.length;
    if (part) this.log.add({ type: "output", id: this.id, stream, text: part });
  }

  private settle(verdict: "allowed" | "denied" | "expired" | "withdrawn", clock: Pause): void {
    if (this.question === undefined) return;
    this.question = undefined;
    clock.go();
    this.log.add({ type: "settled", id: this.id, verdict });
  }

  private ended(event: RunEvent & { type: "ended" }): string {
    if (this.cut > 0) this.log.add({ type: "cut", id: this.id, bytes: this.cut });
    const met = [...this.met];
    const end: CommandEnd = { exit_code: event.exitCode, cause: event.cause, duration_ms: event.durationMs };
    if (event.advice) end.advice = event.advice;
    if (met.length > 0) end.met = met;
    this.log.add({ type: "ended", id: this.id, end });
    const how = event.cause === "exited" ? `exit code ${event.exitCode}` : `${event.cause.replaceAll("_", " ")} (exit code ${event.exitCode})`;
    const limits = met.length > 0 ? `\nlimits met: ${met.join(", ")}` : "";
    return `${how}${limits}\n${this.forModel.text}`;
  }

  private failed(error: unknown, clock: Pause, signal: AbortSignal): string {
    if (signal.aborted) {
      this.settle("withdrawn", clock);
      this.log.add({ type: "ended", id: this.id, end: { exit_code: 130, cause: "interrupted", duration_ms: Date.now() - this.began } });
      signal.throwIfAborted();
    }
    const failure = asFailure(error);
    const judged = failure.code?.startsWith("COMMAND::") ?? false;
    this.settle(Date.now() >= this.askedUntil ? "expired" : "denied", clock);
    this.log.add({ type: "refused", id: this.id, judged, problem: failure.problem, ...(failure.rule ? { rule: failure.rule } : {}) });
    if (!judged) {
      failure.told = true;
      throw failure;
    }
    return `refused: ${failure.message}${failure.rule ? ` (rule: ${failure.rule})` : ""}`;
  }
}
