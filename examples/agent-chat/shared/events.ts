// What the server tells the page: one JSON object for each server-sent event. Everything that came from a model or a command is
// plain text in here and is shown as text.

export interface Limits {
  memory_mb: number;
  cpu_cores: number;
  disk_mb: number;
  pids: number;
}

export interface Usage {
  cpu_seconds?: number;
  memory_bytes?: number;
  memory_peak_bytes?: number;
  disk_bytes?: number;
  pids?: number;
}

export interface Problem {
  where: "sandbox" | "model" | "chat";
  message: string;
  advice?: string;
  code?: string;
}

/** The sandbox of a chat as it is now. `none`: there is no sandbox, and `problem` says why. */
export interface SandboxView {
  state: "none" | "pending" | "running" | "paused" | "ending" | "ended" | "failed";
  id?: string;
  image?: string;
  runtime?: string;
  reason?: string;
  message?: string;
  limits?: Partial<Limits>;
  usage?: Usage;
  /** Share of the cores it may use that it used since the last look, 0 to 1. */
  cpu_share?: number;
  /** Milliseconds left when the event was made; the page counts on from there. */
  left_ms?: number;
  lifetime_ms?: number;
  problem?: Problem;
}

export interface Rule {
  name?: string;
  program?: string;
  args_start?: string[];
  args_any?: string[];
  args_all?: string[];
  action: "allow" | "deny" | "ask";
  reason?: string;
}

export interface Policy {
  default?: "allow" | "deny" | "ask";
  unclear?: "allow" | "deny" | "ask";
  ask_timeout_seconds?: number;
  rules?: Rule[];
}

/** A command that waits for a person. */
export interface Question {
  id: string;
  rule: string;
  reason?: string;
  left_ms: number;
}

export interface CommandEnd {
  exit_code: number;
  cause: string;
  duration_ms: number;
  advice?: string;
  /** Limits that were met while it ran. */
  met?: string[];
}

export type Verdict = "allowed" | "denied" | "expired" | "withdrawn";

export type ChatEvent =
  | { type: "hello"; model: string; scripted: boolean; policy: Policy; bounds: { turns: number; seconds: number; command_seconds: number } }
  | { type: "sandbox"; sandbox: SandboxView }
  | { type: "new_sandbox"; id: string }
  | { type: "user"; id: string; text: string }
  | { type: "busy"; busy: boolean }
  | { type: "say"; id: string; text: string }
  | { type: "command"; id: string; tool: string; command: string; timeout_seconds: number }
  | { type: "held"; id: string; question: Question }
  | { type: "settled"; id: string; verdict: Verdict }
  | { type: "started"; id: string }
  | { type: "output"; id: string; stream: "stdout" | "stderr"; text: string }
  | { type: "cut"; id: string; bytes: number }
  | { type: "ended"; id: string; end: CommandEnd }
  /** `judged`: the policy, or a person, said no. Else it could not be run. */
  | { type: "refused"; id: string; judged: boolean; problem: Problem; rule?: string }
  | { type: "problem"; id: string; problem: Problem }
  | { type: "closed"; reason: string };
