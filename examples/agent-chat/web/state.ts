// What the page shows, made from the events of the chat one by one.
import type { ChatEvent, CommandEnd, Policy, Problem, Question, SandboxView, Verdict } from "../shared/events.ts";

export interface Piece {
  stream: "stdout" | "stderr";
  text: string;
}

export interface CommandItem {
  kind: "command";
  id: string;
  tool: string;
  command: string;
  timeoutSeconds: number;
  state: "judged" | "held" | "running" | "ended" | "refused";
  output: Piece[];
  cut: number;
  question?: Question & { at: number };
  verdict?: Verdict;
  end?: CommandEnd;
  problem?: Problem;
  judged?: boolean;
  rule?: string;
}

export type Item =
  | { kind: "user"; id: string; text: string }
  | { kind: "say"; id: string; text: string }
  | { kind: "problem"; id: string; problem: Problem }
  | { kind: "note"; id: string; text: string }
  | CommandItem;

export interface State {
  connected: boolean;
  lost: boolean;
  closed?: string;
  model: string;
  scripted: boolean;
  policy: Policy;
  commandSeconds: number;
  busy: boolean;
  items: Item[];
  sandbox: SandboxView;
  /** When the page learned about the sandbox: what is left of its time is counted from here. */
  sandboxAt: number;
  sandboxes: number;
}

export const kBeginning: State = {
  connected: false,
  lost: false,
  model: "",
  scripted: false,
  policy: {},
  commandSeconds: 0,
  busy: false,
  items: [],
  sandbox: { state: "pending" },
  sandboxAt: 0,
  sandboxes: 0,
};

export type Change = ChatEvent | { type: "connected" } | { type: "lost" } | { type: "gone"; reason: string } | { type: "complain"; problem: Problem };

/** The state after one event; `at` is the page's clock. */
export function reduce(state: State, change: Change, at = Date.now()): State {
  switch (change.type) {
    case "connected":
      return { ...state, connected: true, lost: false };
    case "lost":
      return { ...state, lost: true };
    case "gone":
    case "closed":
      return { ...state, closed: change.reason, busy: false, sandbox: { state: "ended" } };
    case "hello":
      return { ...state, model: change.model, scripted: change.scripted, policy: change.policy, commandSeconds: change.bounds.command_seconds };
    case "sandbox":
      return { ...state, sandbox: change.sandbox, sandboxAt: at };
    case "new_sandbox":
      return { ...state, sandboxes: state.sandboxes + 1, items: state.sandboxes === 0 ? state.items : [...state.items, note(change.id, "A new sandbox: /workspace is empty again.")] };
    case "busy":
      return { ...state, busy: change.busy };
    case "user":
      return { ...state, items: [...state.items, { kind: "user", id: change.id, text: change.text }] };
    case "say":
      return { ...state, items: say(state.items, change.id, change.text) };
    case "problem":
      return { ...state, items: [...state.items, { kind: "problem", id: change.id, problem: change.problem }] };
    case "complain":
      return { ...state, items: [...state.items, { kind: "problem", id: `p${state.items.length}`, problem: change.problem }] };
    case "command":
      return { ...state, items: [...state.items, command(change)] };
    default:
      return { ...state, items: state.items.map((item) => (item.kind === "command" && item.id === change.id ? turn(item, change, at) : item)) };
  }
}

function note(id: string, text: string): Item {
  return { kind: "note", id: `note-${id}`, text };
}

function command(event: ChatEvent & { type: "command" }): CommandItem {
  return { kind: "command", id: event.id, tool: event.tool, command: event.command, timeoutSeconds: event.timeout_seconds, state: "judged", output: [], cut: 0 };
}

function say(items: Item[], id: string, text: string): Item[] {
  const last = items.at(-1);
  if (last?.kind === "say" && last.id === id) return [...items.slice(0, -1), { ...last, text: last.text + text }];
  return [...items, { kind: "say", id, text }];
}

type CommandChange = Extract<ChatEvent, { type: "held" | "settled" | "started" | "output" | "cut" | "ended" | "refused" }>;

function turn(item: CommandItem, change: CommandChange, at: number): CommandItem {
  switch (change.type) {
    case "held":
      return { ...item, state: "held", question: { ...change.question, at } };
    case "settled":
      return { ...item, state: "judged", question: undefined, verdict: change.verdict };
    case "started":
      return { ...item, state: "running" };
    case "output":
      return { ...item, output: append(item.output, change) };
    case "cut":
      return { ...item, cut: change.bytes };
    case "ended":
      return { ...item, state: "ended", question: undefined, end: change.end };
    case "refused":
      return { ...item, state: "refused", question: undefined, judged: change.judged, problem: change.problem, ...(change.rule ? { rule: change.rule } : {}) };
  }
}

function append(output: Piece[], { stream, text }: Piece): Piece[] {
  const last = output.at(-1);
  if (last?.stream === stream) return [...output.slice(0, -1), { stream, text: last.text + text }];
  return [...output, { stream, text }];
}
