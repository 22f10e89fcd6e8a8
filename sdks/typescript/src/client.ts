// The way to a daemon: makes and finds sandboxes, runs single commands, answers questions.
import { Connection } from './connection.js';
import {
  readApproval, readApprovalList, readHealth, readSession, readSessionList, writeApprovalAnswer, writeCreateSession, writeRunRequest,
  type Approval, type CommandPolicy, type ExecResult, type Health, type Security, type SessionList,
} from './models.js';
import { Sandbox, seconds, start, type CommandOptions } from './sandbox.js';
import type { ExecStream } from './stream.js';

export interface ClientOptions {
  /** Else OPENSANDBOX_URL of the environment, else the daemon of this machine. */
  baseUrl?: string | undefined;
  /** Else OPENSANDBOX_API_KEY of the environment. */
  apiKey?: string | undefined;
  /** Of the sandboxes this client makes. */
  runtime?: string | undefined;
  /** Milliseconds a request may take that is not a command. */
  timeoutMs?: number | undefined;
  maxRetries?: number | undefined;
  /** Another fetch than the global one. */
  fetch?: typeof fetch | undefined;
}

/** What the sandbox is. What is not said is the daemon's configuration. */
export interface SandboxOptions {
  image?: string | undefined;
  runtime?: string | undefined;
  env?: Record<string, string> | undefined;
  memoryMb?: number | undefined;
  cpuCores?: number | undefined;
  diskMb?: number | undefined;
  pids?: number | undefined;
  syscallAllowlist?: Security['syscallAllowlist'];
  readOnlyRoot?: boolean | undefined;
  commandPolicy?: CommandPolicy | undefined;
  metadata?: Record<string, string> | undefined;
}

export interface CreateOptions extends SandboxOptions {
  /** How long it lives; whole seconds, rounded up. */
  timeoutMs?: number | undefined;
  /** Whether it may reach the network. The server refuses true today. */
  egressEnabled?: boolean | undefined;
  /** Whether it also ends when nothing has been asked of it for a while; the server's default. */
  ephemeral?: boolean | undefined;
  /** Asking twice with the same key gives the same sandbox; each call has one of its own unless you give one. */
  idempotencyKey?: string | undefined;
  signal?: AbortSignal | undefined;
}

const pageSize = 1000;

function newKey(): string {
  return Array.from(globalThis.crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** What a create and a one-shot run have in common. */
function sandboxBody(options: SandboxOptions, runtime: string | undefined, timeoutMs?: number, egressEnabled?: boolean) {
  const { memoryMb, cpuCores, diskMb, pids, syscallAllowlist, readOnlyRoot, commandPolicy } = options;
  const timeoutSeconds = timeoutMs === undefined ? undefined : Math.ceil(timeoutMs / 1000);
  // The specification names deny_all alone; the other is sent so that the server says why not.
  const networkPolicy = egressEnabled ? ('allow_all' as 'deny_all') : undefined;
  return {
    image: options.image,
    runtime: options.runtime ?? runtime,
    env: options.env,
    metadata: options.metadata,
    resources: { memoryMb, cpuCores, diskMb, pids, timeoutSeconds },
    security: { syscallAllowlist, networkPolicy, readOnlyRoot, commandPolicy },
  };
}

/** The way to one daemon. Nothing is opened before it is used, and nothing has to be closed. */
export class SandboxClient {
  private readonly connection: Connection;
  private readonly runtime: string | undefined;

  constructor(options: ClientOptions = {}) {
    const fetcher = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.connection = new Connection(options.baseUrl, options.apiKey, options.timeoutMs ?? 60_000, options.maxRetries ?? 2, fetcher);
    this.runtime = options.runtime;
  }

  health(): Promise<Health> {
    return this.connection.json(readHealth, 'GET', '/health', { again: 'always' });
  }

  // ---- sandboxes

  /** A sandbox that runs. */
  async createSandbox(options: CreateOptions = {}): Promise<Sandbox> {
    const body = { ...sandboxBody(options, this.runtime, options.timeoutMs, options.egressEnabled), ephemeral: options.ephemeral };
    const headers = { 'Idempotency-Key': options.idempotencyKey ?? newKey() };
    const request = { again: 'always', json: writeCreateSession(body), headers, signal: options.signal } as const;
    return new Sandbox(this.connection, await this.connection.json(readSession, 'POST', '/sessions', request));
  }

  async getSandbox(id: string): Promise<Sandbox> {
    return new Sandbox(this.connection, await this.connection.json(readSession, 'GET', `/sessions/${encodeURIComponent(id)}`, { again: 'always' }));
  }

  /** All of the caller's, newest first. */
  async listSandboxes(): Promise<Sandbox[]> {
    const found = new Map<string, Sandbox>();
    for (let page = 1; ; page += 1) {
      const query = { page, page_size: pageSize };
      const listed: SessionList = await this.connection.json(readSessionList, 'GET', '/sessions', { again: 'always', query });
      for (const session of listed.sessions) found.set(session.sessionId, new Sandbox(this.connection, session));
      if (listed.sessions.length === 0 || page * pageSize >= listed.total) return [...found.values()];
    }
  }

  // ---- one command in a sandbox of its own

  /** Makes a sandbox, runs one command in it and ends it, in one request. Nothing of it is left, whatever happens. */
  run(command: string | readonly string[], options: SandboxOptions & CommandOptions & { stream: true }): Promise<ExecStream>;
  run(command: string | readonly string[], options?: SandboxOptions & CommandOptions & { stream?: false }): Promise<ExecResult>;
  run(
    command: string | readonly string[], options: SandboxOptions & CommandOptions & { stream?: boolean } = {},
  ): Promise<ExecResult | ExecStream> {
    const { stdin, cwd, maxOutputBytes, timeoutMs } = options;
    const own = { command, stdin, cwd, maxOutputBytes, timeoutSeconds: seconds(timeoutMs) };
    const body = writeRunRequest({ ...sandboxBody(options, this.runtime), ...own });
    // With a key the server never runs it twice, whoever repeats the request.
    const headers = { 'Idempotency-Key': newKey() };
    return start(this.connection, '/run', body, options, { stream: options.stream ?? false, sessionPath: undefined, again: 'refused', headers });
  }

  // ---- commands that wait for a person

  async listApprovals(): Promise<readonly Approval[]> {
    return (await this.connection.json(readApprovalList, 'GET', '/approvals', { again: 'always' })).approvals;
  }

  getApproval(id: string): Promise<Approval> {
    return this.connection.json(readApproval, 'GET', `/approvals/${encodeURIComponent(id)}`, { again: 'always' });
  }

  /** Lets the command run, or refuses it. */
  answerApproval(id: string, answer: 'allow' | 'deny', comment?: string): Promise<Approval> {
    const json = writeApprovalAnswer({ answer, comment });
    return this.connection.json(readApproval, 'POST', `/approvals/${encodeURIComponent(id)}`, { again: 'never', json });
  }
}

/** One command in a fresh sandbox of the daemon of this machine (or of OPENSANDBOX_URL), which is gone when this returns. */
export function runInOpenSandbox(command: string | readonly string[], timeoutMs?: number): Promise<ExecResult> {
  return new SandboxClient().run(command, { timeoutMs });
}
