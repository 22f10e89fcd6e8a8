// The events of a running command, over as many connections as it takes.
import { backoffMs, pause, type Connection } from './connection.js';
import { ConnectionLost, SandboxError } from './errors.js';
import { EventReader, type SandboxEvent } from './events.js';
import type { CodeResult, ExecEnd, ExecResult } from './models.js';

const resumeAttempts = 8; // several seconds: a daemon that restarts is back by then
const longConnectionMs = 10_000; // one that lasted this long was no failure, only idle

/**
 * The events of a running command: `for await (const event of stream)`. When the connection breaks it reads on by itself; no event is
 * lost or told twice. Leaving the loop early does not stop the command: interrupt() does.
 */
export class ExecStream implements AsyncIterable<SandboxEvent>, AsyncDisposable {
  /** How the command ended, once it has. */
  exit: ExecEnd | undefined;
  private readonly state = new EventReader();
  private body: ReadableStreamDefaultReader<Uint8Array> | undefined;
  private openedAt = Date.now();
  private breaks = 0;
  private closed = false;

  /** `sessionPath` is undefined for a one-shot run, which is gone with its connection. */
  constructor(
    private readonly connection: Connection,
    response: Response,
    private readonly sessionPath: string | undefined,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.body = response.body?.getReader();
  }

  get execId(): string | undefined {
    return this.state.execId;
  }

  get sessionId(): string | undefined {
    return this.state.sessionId;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SandboxEvent, void, undefined> {
    try {
      while (!this.state.ended && !this.closed) {
        const chunk = await this.chunk();
        for (const event of chunk ? this.state.feed(chunk) : []) {
          this.breaks = 0;
          this.exit = event.exit ?? this.exit;
          yield event;
        }
      }
    } finally {
      await this.close();
    }
  }

  /** Stops the command. Its exit event still comes. */
  async interrupt(): Promise<void> {
    if (!this.sessionPath || !this.execId) {
      const why = 'there is nothing to interrupt: the command has not started, or it is a one-shot run';
      throw new SandboxError(why, { code: 'CLIENT::NOT_STARTED' });
    }
    await this.connection.ask('DELETE', `${this.sessionPath}/execs/${encodeURIComponent(this.execId)}`, { again: 'always' });
  }

  /** Stops reading. The command goes on, except for a one-shot run, which ends with its connection. */
  async close(): Promise<void> {
    this.closed = true;
    await this.body?.cancel().catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** The next bytes, or undefined when the connection was lost and there is a new one. */
  private async chunk(): Promise<Uint8Array | undefined> {
    let lost: unknown = new ConnectionLost('the stream ended before the command did', { code: 'CLIENT::CONNECTION_LOST' });
    try {
      const { done, value } = (await this.body?.read()) ?? { done: true };
      if (!done) return value;
    } catch (error) {
      lost = this.connection.failure(error, this.signal, false);
    }
    await this.readOn(lost);
    return undefined;
  }

  private async readOn(lost: unknown): Promise<void> {
    if (Date.now() - this.openedAt > longConnectionMs) this.breaks = 0;
    if (!(lost instanceof SandboxError) || this.closed || !this.sessionPath || !this.execId || this.breaks >= resumeAttempts) throw lost;
    if (this.breaks > 0) await pause(backoffMs(this.breaks), this.signal);
    this.breaks += 1;
    this.state.newConnection();
    const options = {
      again: 'always', attempts: resumeAttempts, query: { after: this.state.lastSeq }, headers: { Accept: 'text/event-stream' }, signal: this.signal,
    } as const;
    const path = `${this.sessionPath}/execs/${encodeURIComponent(this.execId)}/events`;
    this.body = await this.connection.send('GET', path, options, (response) => response.body?.getReader());
    this.openedAt = Date.now();
  }
}

/** One output of a command, kept up to a bound. */
class Output {
  truncated = false;
  private size = 0;
  private readonly pieces: Uint8Array[] = [];

  constructor(private readonly most: number) {}

  add(piece: Uint8Array): void {
    const kept = piece.subarray(0, this.most - this.size);
    this.truncated ||= kept.length < piece.length;
    this.size += kept.length;
    this.pieces.push(kept);
  }

  text(): string {
    const decoder = new TextDecoder();
    return this.pieces.map((piece) => decoder.decode(piece, { stream: true })).join('') + decoder.decode();
  }
}

/** Reads a stream to its end and makes the single answer of it. */
export async function collect(stream: ExecStream, mostBytes = 8 * 1024 * 1024): Promise<ExecResult> {
  const outputs = { stdout: new Output(mostBytes), stderr: new Output(mostBytes) };
  const results: CodeResult[] = [];
  let lost = false;
  for await (const event of stream) {
    if (event.type === 'stdout' || event.type === 'stderr') outputs[event.type].add(event.data);
    if (event.result) results.push(event.result);
    lost ||= event.type === 'lost';
  }
  const end = stream.exit;
  if (!end) throw new ConnectionLost('the stream ended before the command did', { code: 'CLIENT::CONNECTION_LOST' });
  return {
    ...end,
    sessionId: stream.sessionId ?? '',
    execId: stream.execId ?? '',
    stdout: outputs.stdout.text(),
    stderr: outputs.stderr.text(),
    stdoutTruncated: lost || outputs.stdout.truncated,
    stderrTruncated: lost || outputs.stderr.truncated,
    results,
  };
}
