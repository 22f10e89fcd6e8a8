// What can go wrong, one class for each thing a caller may want to tell apart. A command that ends with another code than 0 is a
// result, not an error.
import type { Error as WireError } from './models.js';

export interface ErrorDetails {
  /** Stable, such as SESSION::NOT_FOUND; CLIENT::... for what never reached a server. */
  code?: string | undefined;
  /** The HTTP status; undefined where no answer came. */
  status?: number | undefined;
  field?: string | undefined;
  /** The failure of the layer below. */
  cause?: unknown;
  advice?: string | undefined;
  requestId?: string | undefined;
  /** Seconds after which it may work, where the server says so. */
  retryAfter?: number | undefined;
  /** Of a refused command: the rule that refused it. */
  rule?: string | undefined;
}

/** The root of all errors of this package. `message` reads well as it is; `reason` is the bare sentence of it. */
export class SandboxError extends Error {
  readonly reason: string;
  readonly code: string;
  readonly status: number | undefined;
  readonly field: string | undefined;
  readonly advice: string | undefined;
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;
  readonly rule: string | undefined;

  constructor(reason: string, details: ErrorDetails = {}) {
    super(sentence(reason, details), { cause: details.cause });
    this.name = new.target.name;
    this.reason = reason;
    this.code = details.code ?? '';
    this.status = details.status;
    this.field = details.field;
    this.advice = details.advice;
    this.requestId = details.requestId;
    this.retryAfter = details.retryAfter;
    this.rule = details.rule;
  }
}

function sentence(reason: string, details: ErrorDetails): string {
  let text = details.field && !reason.includes(details.field) ? `${details.field}: ${reason}` : reason;
  if (details.cause !== undefined) text += ` (${causeWords(details.cause)})`;
  if (details.advice) {
    text += text.endsWith('.') ? ` ${details.advice}` : `. ${details.advice.charAt(0).toUpperCase()}${details.advice.slice(1)}`;
  }
  const marks = [details.code, details.requestId && `request ${details.requestId}`].filter(Boolean);
  return marks.length ? `${text} [${marks.join(', ')}]` : text;
}

/** fetch says "fetch failed" and hides why in its own cause. */
function causeWords(cause: unknown): string {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  if (!(inner instanceof Error)) return String(inner);
  return inner.message || (inner as { code?: string }).code || inner.name;
}

/** No daemon answers at the address. Nothing was done. */
export class NotReachable extends SandboxError {}
/** The connection broke after the request had left; it is not known what became of it. */
export class ConnectionLost extends SandboxError {}
/** No answer within the client's time limit. (A command that runs past its own is a result with timedOut.) */
export class SandboxTimeout extends SandboxError {}
/** The other side does not speak the session API. */
export class UnexpectedAnswer extends SandboxError {}
/** A value was refused; `field` names it. */
export class InvalidRequest extends SandboxError {}
/** The server cannot open the network as asked. */
export class NetworkPolicyUnsupported extends InvalidRequest {}
/** The image cannot run code of that language. */
export class LanguageMissing extends InvalidRequest {}
/** The key is missing or wrong, or may not do this. */
export class NotAuthorized extends SandboxError {}
/** The command policy refused the command; `rule` says which rule. It did not run. */
export class CommandDenied extends SandboxError {}
/** A person was asked and said no, or did not answer in time. It did not run. */
export class CommandNotApproved extends CommandDenied {}
/** What was named is not there. */
export class NotFound extends SandboxError {}
/** No such sandbox, or it is another key's. */
export class SandboxNotFound extends NotFound {}
/** No such image. */
export class ImageNotFound extends NotFound {}
/** No such file or folder in the sandbox. */
export class RemoteFileNotFound extends NotFound {}
/** The sandbox is in a state in which this cannot be done. */
export class Conflict extends SandboxError {}
/** The sandbox ended before or during the request. */
export class SandboxEnded extends SandboxError {}
/** More was sent than is taken. */
export class TooLarge extends SandboxError {}
/** The sandbox's disk has no room for it. */
export class DiskFull extends SandboxError {}
/** Too much at once; nothing was done. `retryAfter` says when to ask again. */
export class TooMany extends SandboxError {}
/** As many sandboxes run as may. */
export class TooManySandboxes extends TooMany {}
/** The server cannot do it now; `retryAfter` says when to ask again. */
export class ServerUnavailable extends SandboxError {}

type Kind = new (reason: string, details?: ErrorDetails) => SandboxError;

const byCode: Record<string, Kind> = {
  'SECURITY::NETWORK_POLICY_UNSUPPORTED': NetworkPolicyUnsupported,
  'CODE::LANGUAGE_MISSING': LanguageMissing,
  'COMMAND::DENIED': CommandDenied,
  'COMMAND::NOT_APPROVED': CommandNotApproved,
  'SESSION::NOT_FOUND': SandboxNotFound,
  'SESSION::ENDED': SandboxEnded,
  'DOCKER::SANDBOX_NOT_FOUND': SandboxNotFound,
  'SANDBOX::IMAGE_NOT_FOUND': ImageNotFound,
};

const byStatus: Record<number, Kind> = {
  400: InvalidRequest,
  401: NotAuthorized,
  403: NotAuthorized,
  404: NotFound,
  409: Conflict,
  410: SandboxEnded,
  413: TooLarge,
  422: InvalidRequest,
  429: TooMany,
  502: ServerUnavailable,
  503: ServerUnavailable,
  504: ServerUnavailable,
  507: DiskFull,
};

/** The error a server told of, in an answer or in an event. */
export function errorFrom(told: WireError, status?: number, path = '', headers?: Headers): SandboxError {
  let kind = byCode[told.code] ?? byStatus[status ?? 0] ?? SandboxError;
  if (kind === NotFound && /\/(files|directories)$/.test(path)) kind = RemoteFileNotFound;
  if (kind === TooMany && (path === '/sessions' || path === '/run')) kind = TooManySandboxes;
  const seconds = Number.parseFloat(headers?.get('retry-after') ?? '');
  return new kind(told.message, {
    code: told.code,
    status,
    field: told.field,
    advice: told.advice,
    rule: told.rule,
    requestId: told.requestId ?? headers?.get('x-request-id') ?? undefined,
    retryAfter: Number.isFinite(seconds) ? Math.max(0, seconds) : undefined,
  });
}
