// One sandbox: commands, code and files.
/// <reference lib="esnext.disposable" preserve="true" />
import { longestCommandMs, slackMs, type Connection } from './connection.js';
import { NotFound } from './errors.js';
import {
  readDirectoryListing, readExecResult, readFileInfo, readSession, writeCodeRequest, writeExecRequest,
  type ExecResult, type FileInfo, type Json, type Session,
} from './models.js';
import { collect, ExecStream } from './stream.js';

// Node's fetch gives up when no head of an answer comes within five minutes. What may take longer is read as a stream.
const longestPlainAnswerMs = 120_000; // and a person may be asked before it runs

export interface OutputOptions {
  /** After this many milliseconds it is killed and the result says timedOut. */
  timeoutMs?: number | undefined;
  /** Of each of stdout and stderr; what goes beyond is cut and the result says so. */
  maxOutputBytes?: number | undefined;
  /** Ends the reading. The command itself goes on; interrupt() stops it. */
  signal?: AbortSignal | undefined;
}

export interface CommandOptions extends OutputOptions {
  /** Given to the command as its standard input, which then ends. */
  stdin?: string | undefined;
  cwd?: string | undefined;
  env?: Record<string, string> | undefined;
}

export interface CodeOptions extends OutputOptions {
  /** python (the default), javascript, typescript, bash, and what else the image has. */
  language?: string | undefined;
}

/** What a file can be made of. A File of a browser is a Blob. */
export type FileContent = Uint8Array | ArrayBuffer | Blob;

export function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

/** Makes one answer, or a stream of it. */
export async function start(
  connection: Connection, path: string, body: Json, options: OutputOptions, how: {
    stream: boolean; sessionPath: string | undefined; again: 'refused' | 'never'; headers?: Record<string, string>; leftMs?: number | undefined;
  },
): Promise<ExecResult | ExecStream> {
  const { signal, timeoutMs } = options;
  const waitMs = Math.max(0, timeoutMs ?? how.leftMs ?? longestCommandMs) + slackMs;
  const request = { again: how.again, signal, waitMs };
  if (!how.stream && timeoutMs !== undefined && timeoutMs <= longestPlainAnswerMs) {
    return connection.json(readExecResult, 'POST', path, { ...request, json: body, headers: how.headers });
  }
  const headers = { ...how.headers, Accept: 'text/event-stream' };
  const open = (response: Response) => new ExecStream(connection, response, how.sessionPath, signal);
  const stream = await connection.send('POST', path, { ...request, json: { ...body, stream: true }, headers }, open);
  return how.stream ? stream : collect(stream, options.maxOutputBytes);
}

/** One sandbox. Made by the client; ends with destroy(), or with the block of an `await using`. */
export class Sandbox implements AsyncDisposable {
  readonly id: string;
  private readonly path: string;

  constructor(
    private readonly connection: Connection,
    /** As it was when last asked about. */
    public session: Session,
  ) {
    this.id = session.sessionId;
    this.path = `/sessions/${encodeURIComponent(this.id)}`;
  }

  /** Its state now, and what it uses. */
  async info(): Promise<Session> {
    this.session = await this.connection.json(readSession, 'GET', this.path, { again: 'always' });
    return this.session;
  }

  /** Ends it. One that is gone already is as good. */
  async destroy(): Promise<void> {
    try {
      await this.connection.ask('DELETE', this.path, { again: 'always' });
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy();
  }

  // ---- commands and code

  /** Runs a line of shell, or a program and its arguments. */
  run(command: string | readonly string[], options: CommandOptions & { stream: true }): Promise<ExecStream>;
  run(command: string | readonly string[], options?: CommandOptions & { stream?: false }): Promise<ExecResult>;
  run(command: string | readonly string[], options: CommandOptions & { stream?: boolean } = {}): Promise<ExecResult | ExecStream> {
    const { timeoutMs, stdin, cwd, env, maxOutputBytes } = options;
    const body = writeExecRequest({ command, timeoutSeconds: seconds(timeoutMs), stdin, cwd, env, maxOutputBytes });
    return this.start('exec', body, options);
  }

  /** Runs code. Variables live as long as the sandbox, apart for each language. */
  execute(code: string, options: CodeOptions & { stream: true }): Promise<ExecStream>;
  execute(code: string, options?: CodeOptions & { stream?: false }): Promise<ExecResult>;
  execute(code: string, options: CodeOptions & { stream?: boolean } = {}): Promise<ExecResult | ExecStream> {
    const { timeoutMs, maxOutputBytes, language = 'python' } = options;
    return this.start('code', writeCodeRequest({ code, language, timeoutSeconds: seconds(timeoutMs), maxOutputBytes }), options);
  }

  /** Stops a command that runs. */
  async interrupt(execId: string): Promise<void> {
    await this.connection.ask('DELETE', `${this.path}/execs/${encodeURIComponent(execId)}`, { again: 'always' });
  }

  private start(kind: string, body: Json, options: OutputOptions & { stream?: boolean }): Promise<ExecResult | ExecStream> {
    const leftMs = this.session.expiresAt && this.session.expiresAt.getTime() - Date.now();
    const how = { stream: options.stream ?? false, sessionPath: this.path, again: 'never', leftMs } as const;
    return start(this.connection, `${this.path}/${kind}`, body, options, how);
  }

  // ---- files; a relative path begins at /workspace

  /** Writes a file of the sandbox, the folders above it made where they are missing. `mode` is octal, such as "755". */
  async uploadFile(content: FileContent, remote: string, options: { mode?: string; signal?: AbortSignal } = {}): Promise<FileInfo> {
    const body = content instanceof Blob ? content : new Blob([content as Uint8Array<ArrayBuffer> | ArrayBuffer]);
    return this.connection.json(readFileInfo, 'PUT', `${this.path}/files`, {
      again: 'always', body, query: { path: remote, mode: options.mode }, headers: { 'Content-Type': 'application/octet-stream' }, signal: options.signal,
    });
  }

  async downloadFile(remote: string): Promise<Uint8Array> {
    const bytes = (response: Response) => response.arrayBuffer();
    return new Uint8Array(await this.connection.send('GET', `${this.path}/files`, { again: 'always', query: { path: remote } }, bytes));
  }

  /** The bytes of a file as they come, for files that do not fit in memory. */
  async openFile(remote: string, options: { signal?: AbortSignal } = {}): Promise<ReadableStream<Uint8Array>> {
    const stream = (response: Response) => response.body ?? new Blob().stream();
    return this.connection.send('GET', `${this.path}/files`, { again: 'always', query: { path: remote }, signal: options.signal }, stream);
  }

  async readText(remote: string): Promise<string> {
    return new TextDecoder().decode(await this.downloadFile(remote));
  }

  async writeText(remote: string, text: string, options: { mode?: string } = {}): Promise<FileInfo> {
    return this.uploadFile(new TextEncoder().encode(text), remote, options);
  }

  async listFiles(remote = '/workspace'): Promise<readonly FileInfo[]> {
    const query = { path: remote };
    return (await this.connection.json(readDirectoryListing, 'GET', `${this.path}/directories`, { again: 'always', query })).entries;
  }

  async deleteFile(remote: string): Promise<void> {
    await this.connection.ask('DELETE', `${this.path}/files`, { again: 'always', query: { path: remote } });
  }

  /** Makes a folder and those above it. */
  async makeDirectory(remote: string): Promise<void> {
    await this.connection.ask('PUT', `${this.path}/directories`, { again: 'always', query: { path: remote } });
  }
}
