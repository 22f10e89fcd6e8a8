// The tools the model may call, how their arguments are read, and how much of a command's output goes back to it.

export const kSystemPrompt = `You are an agent that works in a Linux sandbox by calling tools.
The sandbox has no network, a read-only root and a small writable folder /workspace, where commands start.
A policy judges each command: one may be refused, or a person may be asked first. When a command is refused, do not try to get around
the rule: say what you could not do. Each call starts a new shell; files stay, variables do not. Keep answers short.`;

export const kTools = [
  {
    type: "function",
    function: {
      name: "run_command",
      description: "Run a shell command in the sandbox and get its output.",
      parameters: {
        type: "object",
        properties: {
          command: { type: "string", description: "A line for the shell." },
          timeout_seconds: { type: "number", description: "The command is killed after so long." },
        },
        required: ["command"],
      },
    },
  },
  {
    type: "function",
    function: {
      name: "write_file",
      description: "Write a text file in the sandbox.",
      parameters: {
        type: "object",
        properties: { path: { type: "string", description: "Relative to /workspace." }, content: { type: "string" } },
        required: ["path", "content"],
      },
    },
  },
];

export type Wish = { tool: "run_command"; command: string; timeoutSeconds: number } | { tool: "write_file"; path: string; content: string };

/** What a tool call asks for; a string says what is wrong with it, for the model to read. */
export function readCall(name: string, text: string, mostSeconds: number): Wish | string {
  let given: Record<string, unknown>;
  try {
    given = JSON.parse(text || "{}") as Record<string, unknown>;
  } catch {
    return "error: the arguments are not JSON";
  }
  if (given === null || typeof given !== "object") return "error: the arguments are not an object";
  if (name === "run_command") {
    if (typeof given.command !== "string" || given.command.trim() === "") return "error: command must be a text";
    const wanted = typeof given.timeout_seconds === "number" && given.timeout_seconds > 0 ? given.timeout_seconds : mostSeconds;
    return { tool: "run_command", command: given.command, timeoutSeconds: Math.min(wanted, mostSeconds) };
  }
  if (name === "write_file") {
    if (typeof given.path !== "string" || given.path === "") return "error: path must be a text";
    if (typeof given.content !== "string") return "error: content must be a text";
    return { tool: "write_file", path: given.path, content: given.content };
  }
  return `error: there is no tool ${JSON.stringify(name.slice(0, 80))}`;
}

/** The beginning and the end of a text that grows, in `most` characters. */
export class Excerpt {
  private head = "";
  private tail = "";
  private dropped = 0;
  private readonly half: number;

  constructor(most: number) {
    this.half = Math.floor(most / 2);
  }

  add(text: string): void {
    const room = this.half - this.head.length;
    this.head += text.slice(0, room);
    this.tail += text.slice(room);
    if (this.tail.length > this.half) {
      this.dropped += this.tail.length - this.half;
      this.tail = this.tail.slice(-this.half);
    }
  }

  get text(): string {
    return this.dropped === 0 ? this.head + this.tail : `${this.head}\n[... ${this.dropped} characters left out ...]\n${this.tail}`;
  }
}
