// Everything a caller needs. Runs in Node and in browsers; files of the machine are in 'opensandbox-client/node'.
export { runInOpenSandbox, SandboxClient, type ClientOptions, type CreateOptions, type SandboxOptions } from './client.js';
export * from './errors.js';
export type { SandboxEvent } from './events.js';
export type {
  Approval, Cause, CodeError, CodeResult, CommandPolicy, CommandRule, ExecEnd, ExecResult, FileInfo, Health, Resources, Security, Session, Usage,
} from './models.js';
export { Sandbox, type CodeOptions, type CommandOptions, type FileContent, type OutputOptions } from './sandbox.js';
export { ExecStream } from './stream.js';
