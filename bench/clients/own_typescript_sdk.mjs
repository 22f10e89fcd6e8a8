// create + run + destroy with our own TypeScript SDK: one sample for each line on standard input, microseconds on standard output.
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [sdk, baseUrl, apiKey] = process.argv.slice(2);
const { SandboxClient } = await import(pathToFileURL(sdk));
const client = new SandboxClient({ baseUrl, apiKey });

async function life() {
  const sandbox = await client.createSandbox({ image: 'host', timeoutMs: 300_000, cpuCores: 1, memoryMb: 256 });
  try {
    const done = await sandbox.run('/bin/busybox echo hello', { timeoutMs: 60_000 });
    if (done.stdout !== 'hello\n') throw new Error('it did not say hello');
  } finally {
    await sandbox.destroy();
  }
}

for await (const _ of createInterface({ input: process.stdin })) {
  const start = performance.now();
  try {
    await life();
    console.log((performance.now() - start) * 1e3);
  } catch (error) {
    console.log(String(error).split('\n')[0]);
  }
}
