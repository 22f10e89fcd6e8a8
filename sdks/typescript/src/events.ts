// Events of a running command: server-sent events in, typed events out. No I/O here.
import { errorFrom, SandboxError, UnexpectedAnswer } from './errors.js';
import { readExecEvent, type Approval, type CodeResult, type ExecEnd, type ExecEvent } from './models.js';

/** Something that happened to a command. `text` is what it printed, and empty for every other type of event. */
export interface SandboxEvent {
  type: 'started' | 'held' | 'stdout' | 'stderr' | 'result' | 'lost' | 'exit';
  /** Counts up within the command; 0 for events that are not of the command itself. */
  seq: number;
  text: string;
  /** stdout, stderr: the very bytes. */
  data: Uint8Array;
  execId?: string | undefined;
  sessionId?: string | undefined;
  /** held: the question a person has to answer before the command runs. */
  approval?: Approval | undefined;
  /** result: a value, a picture or a table of a code run. */
  result?: CodeResult | undefined;
  /** lost: how many events the server no longer kept. */
  lost?: number | undefined;
  /** exit: how it ended. The last event. */
  exit?: ExecEnd | undefined;
}

const mostLineCharacters = 96 * 1024 * 1024; // the largest output of one command in base64, and room

/** Takes the bytes of one connection and gives the events, in order and each once, also over several connections. */
export class EventReader {
  execId: string | undefined;
  sessionId: string | undefined;
  lastSeq = 0;
  ended = false;
  private utf8 = new TextDecoder();
  private rest = '';
  private data: string[] = [];
  private readonly texts = { stdout: new TextDecoder(), stderr: new TextDecoder() };

  /** What the last connection left half is told again by the next one. */
  newConnection(): void {
    this.utf8 = new TextDecoder();
    this.rest = '';
    this.data = [];
  }

  /** The events that are whole now. Throws the error that an event of type error carries. */
  *feed(chunk: Uint8Array): Generator<SandboxEvent> {
    const lines = (this.rest + this.utf8.decode(chunk, { stream: true })).split('\n');
    this.rest = lines.pop() ?? '';
    if (this.rest.length > mostLineCharacters) throw new UnexpectedAnswer('the server sent an endless line', { code: 'CLIENT::UNEXPECTED_ANSWER' });
    for (const line of lines) {
      const event = this.line(line.endsWith('\r') ? line.slice(0, -1) : line);
      if (event) yield event;
    }
  }

  private line(line: string): SandboxEvent | undefined {
    if (line.startsWith('data:')) {
      this.data.push(line.slice(line.startsWith('data: ') ? 6 : 5));
      return undefined;
    }
    // event and id repeat what the data says; a line that begins with a colon keeps the connection awake
    if (line !== '' || this.data.length === 0) return undefined;
    const data = this.data.join('\n');
    this.data = [];
    return this.event(data);
  }

  private event(data: string): SandboxEvent | undefined {
    let wire: ExecEvent;
    try {
      wire = readExecEvent(JSON.parse(data));
    } catch (cause) {
      throw new UnexpectedAnswer('the server sent an event that is none', { code: 'CLIENT::UNEXPECTED_ANSWER', cause });
    }
    if (wire.type === 'error') throw wire.error ? errorFrom(wire.error) : new SandboxError('the command failed without a reason');
    if (wire.seq) {
      if (wire.seq <= this.lastSeq) return undefined; // told before the connection was lost
      this.lastSeq = wire.seq;
    }
    this.execId = wire.execId ?? this.execId;
    this.sessionId = wire.sessionId ?? this.sessionId;
    if (wire.type === 'exit') this.ended = true;
    return this.typed(wire, wire.type);
  }

  private typed(wire: ExecEvent, type: SandboxEvent['type']): SandboxEvent {
    const data = wire.dataBase64 === undefined ? new TextEncoder().encode(wire.data ?? '') : bytesOf(wire.dataBase64);
    let text = '';
    if (type === 'stdout' || type === 'stderr') text = this.texts[type].decode(data, { stream: true }); // a character may be split
    else if (type === 'exit') text = this.texts.stdout.decode() + this.texts.stderr.decode();
    const { approval, result, lost, exit } = wire;
    return { type, seq: wire.seq, text, data, execId: this.execId, sessionId: this.sessionId, approval, result, lost, exit };
  }
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}
