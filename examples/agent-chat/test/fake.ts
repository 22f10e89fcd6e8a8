// Sandboxes that only pretend: what a command "does" depends on its first word. For tests of the chat itself.
import { setTimeout as wait } from "node:timers/promises";
import type { SandboxView } from "../shared/events.ts";
import type { Config } from "../server/config.ts";
import { readConfig } from "../server/config.ts";
import { Failure } from "../server/failure.ts";
import type { RunEvent, Sandbox, Sandboxes } from "../server/sandbox.ts";

export function testConfig(env: Record<string, string> = {}): Config {
  return readConfig({ CHAT_PORT: "0", ...env }, new URL("../policy.json", import.meta.url).pathname);
}

export class FakeSandbox implements Sandbox {
  readonly id: string;
  destroyed = false;
  files = new Map<string, string>();
  commands: string[] = [];
  pids = 3;
  private waiting?: (allow: boolean) => void;

  constructor(id: string) {
    this.id = id;
  }

  async look(): Promise<SandboxView> {
    if (this.destroyed) throw new Failure("sandbox", "There is no such session", undefined, "SESSION::NOT_FOUND");
    return {
      state: "running", id: this.id, image: "host", runtime: "native", limits: { memory_mb: 256, cpu_cores: 1, disk_mb: 64, pids: 64 },
      usage: { memory_bytes: 23_000_000, cpu_seconds: 0.1, disk_bytes: 12_288, pids: this.pids }, left_ms: 845_000, lifetime_ms: 900_000,
    };
  }

  async *run(command: string, timeoutSeconds: number, signal: AbortSignal): AsyncIterable<RunEvent> {
    this.commands.push(command);
    if (command.startsWith("curl")) throw new Failure("sandbox", "The policy refuses curl: this sandbox has no network", "Do without it.", "COMMAND::DENIED", "no-network");
    if (command.startsWith("rm")) {
      yield { type: "held", held: { id: "ask-1", rule: "deleting", reason: "deleting cannot be undone", leftMs: 60_000 } };
      const allowed = await new Promise<boolean>((resolve) => {
        this.waiting = resolve;
        signal.addEventListener("abort", () => resolve(false));
      });
      if (!allowed) throw new Failure("sandbox", "A person said no", undefined, "COMMAND::DENIED", "deleting");
    }
    yield { type: "started" };
    if (command.includes("fork")) {
      this.pids = 64;
      await wait(600);
      this.pids = 3;
      return yield { type: "ended", exitCode: 124, cause: "timed_out", durationMs: 600, advice: "Give it more time, or do less at once." };
    }
    if (command.includes("sleep 600")) {
      yield { type: "output", stream: "stdout", text: "started\n" };
      await wait(timeoutSeconds * 1000, undefined, { signal }).catch(() => undefined);
      return yield { type: "ended", exitCode: signal.aborted ? 130 : 124, cause: signal.aborted ? "interrupted" : "timed_out", durationMs: timeoutSeconds * 1000 };
    }
    for (const line of ["one\n", "two\n", "three\n"]) {
      yield { type: "output", stream: "stdout", text: line };
      await wait(5);
    }
    yield { type: "output", stream: "stderr", text: "a warning\n" };
    yield { type: "ended", exitCode: 0, cause: "exited", durationMs: 15.2 };
  }

  async writeFile(path: string, text: string): Promise<void> {
    this.files.set(path, text);
  }

  async answer(_question: string, allow: boolean): Promise<void> {
    this.waiting?.(allow);
  }

  async destroy(): Promise<void> {
    this.destroyed = true;
  }
}

export class FakeSandboxes implements Sandboxes {
  made: FakeSandbox[] = [];
  down = false;

  async create(): Promise<Sandbox> {
    if (this.down) throw new Failure("sandbox", "The daemon at http://127.0.0.1:9111/api/v1 does not answer", "Start it: ./dev serve");
    const sandbox = new FakeSandbox(`fake-${this.made.length + 1}`);
    this.made.push(sandbox);
    return sandbox;
  }

  async healthy(): Promise<boolean> {
    return !this.down;
  }
}
