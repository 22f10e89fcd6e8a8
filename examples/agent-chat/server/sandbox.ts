// What the chat needs of a sandbox. The daemon's side of it is daemon_sandbox.ts; tests have their own.
import type { SandboxView, Usage } from "../shared/events.ts";

export interface HeldCommand {
  id: string;
  rule: string;
  reason?: string;
  leftMs: number;
}

/** What happens while a command runs, in order. The last one is `ended`. */
export type RunEvent =
  | { type: "held"; held: HeldCommand }
  | { type: "started" }
  | { type: "output"; stream: "stdout" | "stderr"; text: string }
  | { type: "ended"; exitCode: number; cause: string; durationMs: number; advice?: string };

export interface Sandbox {
  readonly id: string;
  /** As it is now; `usage` is what the kernel counts. */
  look(): Promise<SandboxView>;
  /** Ends early, and stops the command, when `signal` says so. A refused command throws a Failure that names the rule. */
  run(command: string, timeoutSeconds: number, signal: AbortSignal): AsyncIterable<RunEvent>;
  writeFile(path: string, text: string): Promise<void>;
  answer(question: string, allow: boolean): Promise<void>;
  destroy(): Promise<void>;
}

export interface Sandboxes {
  create(): Promise<Sandbox>;
  /** Whether the daemon answers. */
  healthy(): Promise<boolean>;
}

/** The share of its cores a sandbox used between two looks. */
export function cpuShare(before: { at: number; usage?: Usage } | undefined, at: number, usage: Usage | undefined, cores: number | undefined): number | undefined {
  const then = before?.usage?.cpu_seconds;
  const now = usage?.cpu_seconds;
  if (before === undefined || then === undefined || now === undefined || !cores || at <= before.at) return undefined;
  return Math.min(1, Math.max(0, (now - then) / ((at - before.at) / 1000) / cores));
}
