// Requests: every failure becomes one of our errors, and what may be repeated is repeated. Needs fetch and nothing else.
import { ConnectionLost, errorFrom, NotReachable, SandboxError, SandboxTimeout, UnexpectedAnswer } from './errors.js';
import { readError, type Json } from './models.js';

export const longestCommandMs = 86_400_000;
export const slackMs = 30_000; // what the server may need beyond the time a command has
const longestWaitSeconds = 10; // a Retry-After beyond this is the caller's to wait for

/**
 * When a request may be made a second time. always: reading, deleting, replacing, and creating with an Idempotency-Key, where twice is
 * the same as once. refused: only when the server says that nothing was done. never: a command, unless the request cannot have left.
 */
export type Again = 'always' | 'refused' | 'never';

export interface RequestOptions {
  again: Again;
  json?: Json | undefined;
  body?: Blob | Uint8Array<ArrayBuffer> | undefined;
  query?: Record<string, string | number | undefined> | undefined;
  headers?: Record<string, string> | undefined;
  signal?: AbortSignal | undefined;
  /** Milliseconds until the answer is there; of a stream, its head. */
  waitMs?: number | undefined;
  /** How often it is tried again; the client's maxRetries where it is not said. */
  attempts?: number | undefined;
}

function environment(name: string): string | undefined {
  // Where there is a process (Node, not a browser) its environment counts.
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name] || undefined;
}

export class Connection {
  readonly url: string;
  private readonly headers: Record<string, string>;

  constructor(
    url: string | undefined,
    apiKey: string | undefined,
    readonly timeoutMs: number,
    readonly maxRetries: number,
    private readonly fetcher: typeof fetch,
  ) {
    const given = (url ?? environment('OPENSANDBOX_URL') ?? 'http://127.0.0.1:9111').replace(/\/+$/, '');
    const absolute = given.includes('://') ? given : `http://${given}`;
    this.url = absolute.endsWith('/api/v1') ? absolute : `${absolute}/api/v1`;
    const key = apiKey ?? environment('OPENSANDBOX_API_KEY');
    this.headers = key ? { 'OPEN-SANDBOX-API-KEY': key } : {};
  }

  /** Sends, and gives the answer to `read` when it says that the request succeeded. The time limit holds until `read` is done. */
  async send<T>(method: string, path: string, options: RequestOptions, read: (response: Response) => Promise<T> | T): Promise<T> {
    const most = options.attempts ?? this.maxRetries;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.once(method, path, options, read);
      } catch (error) {
        if (attempt >= most || !(error instanceof SandboxError) || !mayRepeat(error, options.again)) throw error;
        await pause(backoffMs(attempt, error.retryAfter), options.signal);
      }
    }
  }

  /** For answers without a body. */
  async ask(method: string, path: string, options: RequestOptions): Promise<void> {
    await this.send(method, path, options, (response) => response.arrayBuffer());
  }

  async json<T>(read: (value: Json) => T, method: string, path: string, options: RequestOptions): Promise<T> {
    const text = await this.send(method, path, options, (response) => response.text());
    try {
      return read(JSON.parse(text));
    } catch (cause) {
      const advice = 'check the address of the daemon';
      throw new UnexpectedAnswer('the answer is not one of the session API', { code: 'CLIENT::UNEXPECTED_ANSWER', cause, advice });
    }
  }

  /** What a failed fetch, or a failed read of its answer, was. */
  failure(error: unknown, signal: AbortSignal | undefined, timedOut: boolean): unknown {
    if (error instanceof SandboxError || signal?.aborted) return error; // an abort is the caller's own
    if (timedOut) {
      return new SandboxTimeout('no answer in time', { code: 'CLIENT::TIMEOUT', advice: 'give the client a longer timeout' });
    }
    if (neverLeft(error)) {
      const advice = 'is the daemon running? opensandbox daemon start';
      return new NotReachable(`nothing answers at ${this.url}`, { code: 'CLIENT::NOT_REACHABLE', cause: error, advice });
    }
    const advice = 'what became of it is not known; a command with stream: true reads on by itself';
    return new ConnectionLost('the connection broke before the answer was there', { code: 'CLIENT::CONNECTION_LOST', cause: error, advice });
  }

  private async once<T>(
    method: string, path: string, options: RequestOptions, read: (response: Response) => Promise<T> | T,
  ): Promise<T> {
    const headers: Record<string, string> = { ...this.headers, ...options.headers };
    if (options.json) headers['Content-Type'] = 'application/json';
    const late = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, late.signal]) : late.signal;
    const timer = setTimeout(() => late.abort(), Math.min(options.waitMs ?? this.timeoutMs, 2 ** 31 - 1));
    try {
      const body = options.json ? JSON.stringify(options.json) : options.body ?? null;
      const response = await this.fetcher(this.url + path + queryText(options.query), { method, headers, body, signal });
      if (response.ok) return await read(response);
      throw answerError(response, path, await response.text());
    } catch (error) {
      throw this.failure(error, options.signal, late.signal.aborted);
    } finally {
      clearTimeout(timer);
    }
  }
}

function queryText(query: RequestOptions['query']): string {
  const said = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  return said.length ? `?${new URLSearchParams(said.map(([name, value]) => [name, String(value)]))}` : '';
}

function answerError(response: Response, path: string, text: string): SandboxError {
  let told = { code: `HTTP::${response.status}`, message: `the server answered ${response.status}${text ? `: ${text.slice(0, 200).trim()}` : ''}` };
  try {
    const parsed = readError(JSON.parse(text));
    if (parsed.code && parsed.message) told = parsed;
  } catch {
    // not JSON: what stands above is all that is known
  }
  return errorFrom(told, response.status, path, response.headers);
}

/** Whether the request cannot have reached a server. A browser does not say; there it is unknown. */
function neverLeft(error: unknown): boolean {
  const codes = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);
  for (let inner: unknown = error; inner instanceof Error; inner = inner.cause) {
    const some = inner as Error & { code?: string; errors?: { code?: string }[] };
    if (codes.has(some.code ?? '') || some.errors?.some((one) => codes.has(one.code ?? ''))) return true;
  }
  return false;
}

export function mayRepeat(error: SandboxError, again: Again): boolean {
  if (error instanceof NotReachable) return true; // no connection, so no request either
  if ((error.retryAfter ?? 0) > longestWaitSeconds) return false;
  if (error.status === 429 || error.status === 503) return again !== 'never';
  if (error.code === 'IDEMPOTENCY::IN_PROGRESS') return again === 'always';
  const lost = error instanceof ConnectionLost || error instanceof SandboxTimeout || error.status === 502 || error.status === 504;
  return lost && again === 'always';
}

/** Twice as long each time, spread so that clients do not come back all at once. */
export function backoffMs(attempt: number, retryAfter?: number): number {
  if (retryAfter !== undefined) return retryAfter * 1000 + Math.random() * 100;
  return Math.min(2000, 100 * 2 ** attempt) * (0.5 + Math.random() / 2);
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => { clearTimeout(timer); reject(signal?.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener('abort', onAbort); resolve(); }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
