// Sandboxes of a real daemon, through the TypeScript SDK.
import { readFile } from "node:fs/promises";
import { NotReachable, SandboxClient, SandboxError, type CommandRule, type ExecStream, type Sandbox as SdkSandbox, type SandboxEvent } from "opensandbox-client";
import type { Rule, SandboxView } from "../shared/events.ts";
import type { Config } from "./config.ts";
import { Failure } from "./failure.ts";
import type { RunEvent, Sandbox, Sandboxes } from "./sandbox.ts";

const kMostOutputBytes = 1 << 20; // of a command; more than the page and the model are shown
const kInterruptMs = 5000;

export class DaemonSandboxes implements Sandboxes {
  private client: SandboxClient;
  private readonly config: Config;

  constructor(config: Config) {
    this.config = config;
    this.client = this.clientWith(config.daemonKey);
  }

  private clientWith(apiKey: string | undefined): SandboxClient {
    return new SandboxClient({ baseUrl: this.config.daemonUrl, apiKey, timeoutMs: 15_000, maxRetries: 1 });
  }

  /**
   * Programs of root and of the daemon's user need no key to run commands, but one to answer questions about them: that takes a person. The
   * chat speaks for one, so it uses the key of this machine's daemon where it may read it and the daemon takes it.
   */
  async findKey(): Promise<void> {
    if (this.config.daemonKey || !/^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(:|\/|$)/.test(this.config.daemonUrl)) return;
    for (const file of this.config.daemonKeyFiles) {
      const key = await readFile(file, "utf8").then((text) => text.trim(), () => "");
      if (!key) continue;
      const client = this.clientWith(key);
      if (await client.listApprovals().then(() => true, () => false)) return void (this.client = client);
    }
  }

  healthy(): Promise<boolean> {
    return this.client.health().then(() => true, () => false);
  }

  create(): Promise<Sandbox> {
    const { limits, policy, lifetimeSeconds } = this.config;
    return translated(this.config, async () => {
      const made = await this.client.createSandbox({
        image: this.config.image,
        timeoutMs: lifetimeSeconds * 1000,
        memoryMb: limits.memory_mb,
        cpuCores: limits.cpu_cores,
        diskMb: limits.disk_mb,
        pids: limits.pids,
        ephemeral: true, // should this server be killed, the daemon ends it
        metadata: { example: "agent-chat" },
        commandPolicy: { default: policy.default, unclear: policy.unclear, askTimeoutSeconds: policy.ask_timeout_seconds, rules: policy.rules?.map(ruleOf) },
      });
      return new DaemonSandbox(this.client, made, this.config);
    });
  }
}

/** A rule as the policy's file has it, in the words of the SDK. */
function ruleOf({ args_start, args_any, args_all, ...rest }: Rule): CommandRule {
  return { ...rest, argsStart: args_start, argsAny: args_any, argsAll: args_all };
}

class DaemonSandbox implements Sandbox {
  private readonly client: SandboxClient;
  private readonly inner: SdkSandbox;
  private readonly config: Config;

  constructor(client: SandboxClient, inner: SdkSandbox, config: Config) {
    this.client = client;
    this.inner = inner;
    this.config = config;
  }

  get id(): string {
    return this.inner.id;
  }

  look(): Promise<SandboxView> {
    return translated(this.config, async () => {
      const { state, reason, message, image, runtime, resources, usage, expiresAt, createdAt } = await this.inner.info();
      return {
        state, id: this.id, image, runtime,
        ...(reason ? { reason } : {}),
        ...(message ? { message } : {}),
        limits: { memory_mb: resources.memoryMb, cpu_cores: resources.cpuCores, disk_mb: resources.diskMb, pids: resources.pids },
        ...(usage ? { usage: { cpu_seconds: usage.cpuSeconds, memory_bytes: usage.memoryBytes, memory_peak_bytes: usage.memoryPeakBytes, disk_bytes: usage.diskBytes, pids: usage.pids } } : {}),
        ...(expiresAt ? { left_ms: Math.max(0, expiresAt.getTime() - Date.now()), lifetime_ms: expiresAt.getTime() - createdAt.getTime() } : {}),
      };
    });
  }

  async *run(command: string, timeoutSeconds: number, signal: AbortSignal): AsyncIterable<RunEvent> {
    const stream = await translated(this.config, () => this.inner.run(command, { stream: true, timeoutMs: timeoutSeconds * 1000, maxOutputBytes: kMostOutputBytes }));
    const stop = () => void interrupt(stream);
    signal.addEventListener("abort", stop, { once: true });
    try {
      if (signal.aborted) stop();
      for await (const event of stream) {
        const told = translate(event);
        if (told) yield told;
      }
    } catch (error) {
      throw failureOf(this.config, error);
    } finally {
      signal.removeEventListener("abort", stop);
      await stream.close();
    }
  }

  writeFile(path: string, text: string): Promise<void> {
    return translated(this.config, async () => void (await this.inner.uploadFile(new TextEncoder().encode(text), path)));
  }

  answer(question: string, allow: boolean): Promise<void> {
    return translated(this.config, async () => void (await this.client.answerApproval(question, allow ? "allow" : "deny", "answered in the agent chat")));
  }

  destroy(): Promise<void> {
    return translated(this.config, () => this.inner.destroy());
  }
}

/** A running command is told to stop, and its end awaited; one that has not begun is given up with the connection. */
async function interrupt(stream: ExecStream): Promise<void> {
  if (!stream.execId) return stream.close();
  const patience = setTimeout(() => void stream.close(), kInterruptMs);
  patience.unref();
  await stream.interrupt().catch(() => stream.close());
}

function translate(event: SandboxEvent): RunEvent | undefined {
  if (event.type === "started") return { type: "started" };
  if (event.type === "held" && event.approval) {
    const { id, rule, reason, expiresAt } = event.approval;
    return { type: "held", held: { id, rule, reason, leftMs: Math.max(0, expiresAt.getTime() - Date.now()) } };
  }
  if (event.type === "stdout" || event.type === "stderr") return { type: "output", stream: event.type, text: event.text };
  if (event.type === "lost") return { type: "output", stream: "stderr", text: `[${event.lost ?? 0} pieces of output were lost]\n` };
  if (event.type === "exit" && event.exit) {
    const { exitCode, cause, durationMs, advice } = event.exit;
    return { type: "ended", exitCode, cause, durationMs, advice };
  }
  return undefined;
}

async function translated<T>(config: Config, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw failureOf(config, error);
  }
}

function failureOf(config: Config, error: unknown): unknown {
  if (error instanceof NotReachable)
    return new Failure("sandbox", `The daemon at ${config.daemonUrl} does not answer`, "Start it with ./dev serve, then press New sandbox.", error.code);
  if (!(error instanceof SandboxError)) return error;
  return new Failure("sandbox", error.reason, error.advice, error.code, error.rule);
}
