// Values of the session API. Written by tools/gen_sdk.py from spec/sessions.yaml; change that, not this.

/** An object as it is on the wire. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Json = Record<string, any>;

function said<T extends object>(members: T): T {
  for (const name of Object.keys(members) as (keyof T)[]) if (members[name] === undefined) delete members[name];
  return members;
}

function maybe<T>(read: (value: Json) => T, value: Json | undefined): T | undefined {
  return value === undefined ? undefined : read(value);
}

/** What the session gets. There is no "unlimited"; what is not said is the configuration's. */
export interface Resources {
  memoryMb?: number | undefined;
  cpuCores?: number | undefined;
  diskMb?: number | undefined;
  pids?: number | undefined;
  /** Lifetime of the session; then it is killed. */
  timeoutSeconds?: number | undefined;
}

export function readResources(value: Json): Resources {
  return said({
    memoryMb: value.memory_mb,
    cpuCores: value.cpu_cores,
    diskMb: value.disk_mb,
    pids: value.pids,
    timeoutSeconds: value.timeout_seconds,
  });
}

export function writeResources(value: Resources): Json {
  return said({
    memory_mb: value.memoryMb,
    cpu_cores: value.cpuCores,
    disk_mb: value.diskMb,
    pids: value.pids,
    timeout_seconds: value.timeoutSeconds,
  });
}

export interface Security {
  syscallAllowlist?: 'minimal' | 'default' | 'permissive' | undefined;
  /** Any other is refused: SECURITY::NETWORK_POLICY_UNSUPPORTED. */
  networkPolicy?: 'deny_all' | undefined;
  readOnlyRoot?: boolean | undefined;
  commandPolicy?: CommandPolicy | undefined;
}

export function readSecurity(value: Json): Security {
  return said({
    syscallAllowlist: value.syscall_allowlist,
    networkPolicy: value.network_policy,
    readOnlyRoot: value.read_only_root,
    commandPolicy: maybe(readCommandPolicy, value.command_policy),
  });
}

export function writeSecurity(value: Security): Json {
  return said({
    syscall_allowlist: value.syscallAllowlist,
    network_policy: value.networkPolicy,
    read_only_root: value.readOnlyRoot,
    command_policy: value.commandPolicy && writeCommandPolicy(value.commandPolicy),
  });
}

export interface CommandRule {
  action: 'allow' | 'deny' | 'ask';
  name?: string | undefined;
  /** Pattern with * and ?, on the base name, or on the whole path when it has a slash. */
  program?: string | undefined;
  /** Patterns of the first arguments. */
  argsStart?: readonly string[] | undefined;
  /** Patterns; one must match some argument. */
  argsAny?: readonly string[] | undefined;
  /** Patterns; each must match some argument. */
  argsAll?: readonly string[] | undefined;
  reason?: string | undefined;
}

export function readCommandRule(value: Json): CommandRule {
  return said({
    action: value.action,
    name: value.name,
    program: value.program,
    argsStart: value.args_start ?? [],
    argsAny: value.args_any ?? [],
    argsAll: value.args_all ?? [],
    reason: value.reason,
  });
}

export function writeCommandRule(value: CommandRule): Json {
  return said({
    action: value.action,
    name: value.name,
    program: value.program,
    args_start: value.argsStart,
    args_any: value.argsAny,
    args_all: value.argsAll,
    reason: value.reason,
  });
}

/** Judged before a command runs, besides the operator's own; the stricter of the two holds. docs/command-policy.md. */
export interface CommandPolicy {
  default?: 'allow' | 'deny' | 'ask' | undefined;
  unclear?: 'allow' | 'deny' | 'ask' | undefined;
  askTimeoutSeconds?: number | undefined;
  rules?: readonly CommandRule[] | undefined;
}

export function readCommandPolicy(value: Json): CommandPolicy {
  return said({
    default: value.default,
    unclear: value.unclear,
    askTimeoutSeconds: value.ask_timeout_seconds,
    rules: (value.rules ?? []).map(readCommandRule),
  });
}

export function writeCommandPolicy(value: CommandPolicy): Json {
  return said({
    default: value.default,
    unclear: value.unclear,
    ask_timeout_seconds: value.askTimeoutSeconds,
    rules: value.rules?.map(writeCommandRule),
  });
}

export interface CreateSession {
  /** native or process; it must be the one this daemon runs. Absent: that one. */
  runtime?: string | undefined;
  /** Absent: host, the programs of this machine, read-only. */
  image?: string | undefined;
  resources?: Resources | undefined;
  security?: Security | undefined;
  env?: Record<string, string> | undefined;
  metadata?: Record<string, string> | undefined;
  /**
   * true: it also ends by itself when nothing has been asked of it for sessions.idle_seconds. false: it stays until it
   * is deleted or its time is over. Nothing of a session outlives it either way.
   */
  ephemeral?: boolean | undefined;
}

export function writeCreateSession(value: CreateSession): Json {
  return said({
    runtime: value.runtime,
    image: value.image,
    resources: value.resources && writeResources(value.resources),
    security: value.security && writeSecurity(value.security),
    env: value.env,
    metadata: value.metadata,
    ephemeral: value.ephemeral,
  });
}

export interface Usage {
  cpuSeconds?: number | undefined;
  memoryBytes?: number | undefined;
  memoryPeakBytes?: number | undefined;
  diskBytes?: number | undefined;
  pids?: number | undefined;
}

export function readUsage(value: Json): Usage {
  return said({
    cpuSeconds: value.cpu_seconds,
    memoryBytes: value.memory_bytes,
    memoryPeakBytes: value.memory_peak_bytes,
    diskBytes: value.disk_bytes,
    pids: value.pids,
  });
}

export interface Session {
  sessionId: string;
  state: 'pending' | 'running' | 'paused' | 'ending' | 'ended' | 'failed';
  runtime: string;
  image: string;
  ephemeral: boolean;
  createdAt: Date;
  resources: Resources;
  security: Security;
  /** Why it is in this state where that is not plain. */
  reason?: string | undefined;
  message?: string | undefined;
  expiresAt?: Date | undefined;
  metadata: Record<string, string>;
  usage?: Usage | undefined;
}

export function readSession(value: Json): Session {
  return said({
    sessionId: value.session_id,
    state: value.state,
    runtime: value.runtime,
    image: value.image,
    ephemeral: value.ephemeral,
    createdAt: new Date(value.created_at),
    resources: readResources(value.resources),
    security: readSecurity(value.security),
    reason: value.reason,
    message: value.message,
    expiresAt: value.expires_at === undefined ? undefined : new Date(value.expires_at),
    metadata: value.metadata ?? {},
    usage: maybe(readUsage, value.usage),
  });
}

export interface SessionList {
  sessions: readonly Session[];
  total: number;
}

export function readSessionList(value: Json): SessionList {
  return said({
    sessions: (value.sessions ?? []).map(readSession),
    total: value.total,
  });
}

export interface ExecRequest {
  /** A line for the shell, or a program and its arguments. */
  command: string | readonly string[];
  /** Then the command and its children are killed. */
  timeoutSeconds?: number | undefined;
  /** Given to the command as its standard input. */
  stdin?: string | undefined;
  stream?: boolean | undefined;
  cwd?: string | undefined;
  env?: Record<string, string> | undefined;
  /** Of each of stdout and stderr. */
  maxOutputBytes?: number | undefined;
}

export function writeExecRequest(value: ExecRequest): Json {
  return said({
    command: value.command,
    timeout_seconds: value.timeoutSeconds,
    stdin: value.stdin,
    stream: value.stream,
    cwd: value.cwd,
    env: value.env,
    max_output_bytes: value.maxOutputBytes,
  });
}

export interface CodeRequest {
  code: string;
  /** python, javascript, typescript, bash, and what else the image has. */
  language: string;
  timeoutSeconds?: number | undefined;
  stream?: boolean | undefined;
  maxOutputBytes?: number | undefined;
}

export function writeCodeRequest(value: CodeRequest): Json {
  return said({
    code: value.code,
    language: value.language,
    timeout_seconds: value.timeoutSeconds,
    stream: value.stream,
    max_output_bytes: value.maxOutputBytes,
  });
}

/** CreateSession and ExecRequest in one. */
export interface RunRequest {
  command: string | readonly string[];
  timeoutSeconds?: number | undefined;
  stdin?: string | undefined;
  stream?: boolean | undefined;
  cwd?: string | undefined;
  maxOutputBytes?: number | undefined;
  runtime?: string | undefined;
  image?: string | undefined;
  resources?: Resources | undefined;
  security?: Security | undefined;
  env?: Record<string, string> | undefined;
  metadata?: Record<string, string> | undefined;
}

export function writeRunRequest(value: RunRequest): Json {
  return said({
    command: value.command,
    timeout_seconds: value.timeoutSeconds,
    stdin: value.stdin,
    stream: value.stream,
    cwd: value.cwd,
    max_output_bytes: value.maxOutputBytes,
    runtime: value.runtime,
    image: value.image,
    resources: value.resources && writeResources(value.resources),
    security: value.security && writeSecurity(value.security),
    env: value.env,
    metadata: value.metadata,
  });
}

export interface ExecResult {
  sessionId: string;
  execId: string;
  /** UTF-8; bytes that are not are U+FFFD here, and whole in the event stream. */
  stdout: string;
  stderr: string;
  /** As a shell tells it: 128 + signal for a killed one, 124 when the time was over. */
  exitCode: number;
  cause: Cause;
  timedOut: boolean;
  durationMs: number;
  stdoutTruncated: boolean;
  stderrTruncated: boolean;
  /** One sentence on an end that was not the program's own. */
  advice?: string | undefined;
  results: readonly CodeResult[];
  error?: CodeError | undefined;
}

export function readExecResult(value: Json): ExecResult {
  return said({
    sessionId: value.session_id,
    execId: value.exec_id,
    stdout: value.stdout,
    stderr: value.stderr,
    exitCode: value.exit_code,
    cause: value.cause,
    timedOut: value.timed_out,
    durationMs: value.duration_ms,
    stdoutTruncated: value.stdout_truncated ?? false,
    stderrTruncated: value.stderr_truncated ?? false,
    advice: value.advice,
    results: (value.results ?? []).map(readCodeResult),
    error: maybe(readCodeError, value.error),
  });
}

export type Cause = 'exited' | 'signalled' | 'timed_out' | 'out_of_memory' | 'interrupted' | 'session_ended';

/** One result in several forms, by media type; text/plain is text, image/png is base64. */
export interface CodeResult {
  data: Record<string, string>;
}

export function readCodeResult(value: Json): CodeResult {
  return said({
    data: value.data ?? {},
  });
}

export interface CodeError {
  name: string;
  value: string;
  traceback: readonly string[];
}

export function readCodeError(value: Json): CodeError {
  return said({
    name: value.name,
    value: value.value,
    traceback: value.traceback ?? [],
  });
}

export interface ExecEvent {
  type: 'started' | 'held' | 'stdout' | 'stderr' | 'result' | 'lost' | 'exit' | 'error';
  /** Counts up within the command; 0 for events that are not of the command itself (held, error). */
  seq: number;
  /** started. */
  sessionId?: string | undefined;
  /** started. */
  execId?: string | undefined;
  approval?: Approval | undefined;
  /** stdout, stderr: text. */
  data?: string | undefined;
  /** stdout, stderr: instead of data, where the bytes are not UTF-8. */
  dataBase64?: string | undefined;
  result?: CodeResult | undefined;
  /** lost: how many events are no longer kept. */
  lost?: number | undefined;
  exit?: ExecEnd | undefined;
  error?: Error | undefined;
}

export function readExecEvent(value: Json): ExecEvent {
  return said({
    type: value.type,
    seq: value.seq,
    sessionId: value.session_id,
    execId: value.exec_id,
    approval: maybe(readApproval, value.approval),
    data: value.data,
    dataBase64: value.data_base64,
    result: maybe(readCodeResult, value.result),
    lost: value.lost,
    exit: maybe(readExecEnd, value.exit),
    error: maybe(readError, value.error),
  });
}

export interface ExecEnd {
  exitCode: number;
  cause: Cause;
  timedOut: boolean;
  durationMs: number;
  advice?: string | undefined;
  error?: CodeError | undefined;
}

export function readExecEnd(value: Json): ExecEnd {
  return said({
    exitCode: value.exit_code,
    cause: value.cause,
    timedOut: value.timed_out,
    durationMs: value.duration_ms,
    advice: value.advice,
    error: maybe(readCodeError, value.error),
  });
}

export interface FileInfo {
  path: string;
  type: 'file' | 'directory' | 'symlink' | 'other';
  size: number;
  /** Octal. */
  mode: string;
  modifiedAt: Date;
}

export function readFileInfo(value: Json): FileInfo {
  return said({
    path: value.path,
    type: value.type,
    size: value.size,
    mode: value.mode,
    modifiedAt: new Date(value.modified_at),
  });
}

export interface DirectoryListing {
  entries: readonly FileInfo[];
}

export function readDirectoryListing(value: Json): DirectoryListing {
  return said({
    entries: (value.entries ?? []).map(readFileInfo),
  });
}

export interface Approval {
  id: string;
  sessionId: string;
  command: string;
  rule: string;
  state: 'waiting' | 'allowed' | 'denied' | 'expired' | 'withdrawn';
  askedAt: Date;
  expiresAt: Date;
  /** The simple command that the rule applies to. */
  part?: string | undefined;
  reason?: string | undefined;
  askedBy?: string | undefined;
  answeredBy?: string | undefined;
  answeredAt?: Date | undefined;
  comment?: string | undefined;
}

export function readApproval(value: Json): Approval {
  return said({
    id: value.id,
    sessionId: value.session_id,
    command: value.command,
    rule: value.rule,
    state: value.state,
    askedAt: new Date(value.asked_at),
    expiresAt: new Date(value.expires_at),
    part: value.part,
    reason: value.reason,
    askedBy: value.asked_by,
    answeredBy: value.answered_by,
    answeredAt: value.answered_at === undefined ? undefined : new Date(value.answered_at),
    comment: value.comment,
  });
}

export interface ApprovalList {
  approvals: readonly Approval[];
}

export function readApprovalList(value: Json): ApprovalList {
  return said({
    approvals: (value.approvals ?? []).map(readApproval),
  });
}

export interface ApprovalAnswer {
  answer: 'allow' | 'deny';
  comment?: string | undefined;
}

export function writeApprovalAnswer(value: ApprovalAnswer): Json {
  return said({
    answer: value.answer,
    comment: value.comment,
  });
}

export interface Health {
  status: 'healthy';
  version: string;
  runtime: string;
}

export function readHealth(value: Json): Health {
  return said({
    status: value.status,
    version: value.version,
    runtime: value.runtime,
  });
}

export interface Error {
  /** Stable, such as SESSION::NOT_FOUND. */
  code: string;
  message: string;
  field?: string | undefined;
  /** What to do about it. */
  advice?: string | undefined;
  /** COMMAND::DENIED: the rule that refused it. */
  rule?: string | undefined;
  requestId?: string | undefined;
}

export function readError(value: Json): Error {
  return said({
    code: value.code,
    message: value.message,
    field: value.field,
    advice: value.advice,
    rule: value.rule,
    requestId: value.request_id,
  });
}
