// Files of this machine, for Node. The rest of the package needs no Node.
import { createWriteStream, openAsBlob } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';

import type { FileInfo } from './models.js';
import type { Sandbox } from './sandbox.js';

/** Writes a file of the sandbox from a local one, without holding it in memory. */
export async function uploadFile(sandbox: Sandbox, local: string, remote: string, options: { mode?: string } = {}): Promise<FileInfo> {
  return sandbox.uploadFile(await openAsBlob(local), remote, options);
}

/** Writes a local file from one of the sandbox, without holding it in memory. A broken download leaves no half file. */
export async function downloadFile(sandbox: Sandbox, remote: string, local: string): Promise<string> {
  const content = await sandbox.openFile(remote);
  const half = join(dirname(local), `.${basename(local)}.${globalThis.crypto.randomUUID().slice(0, 8)}.part`);
  try {
    await pipeline(content, createWriteStream(half));
    await rename(half, local);
  } finally {
    await rm(half, { force: true });
  }
  return local;
}
