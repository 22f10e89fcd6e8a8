// create + run + kill with the published TypeScript SDK: one sample for each line on standard input, microseconds on standard output.
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [sdk, domain, apiKey] = process.argv.slice(2);
const { ConnectionConfig, Sandbox } = await import(pathToFileURL(sdk));

async function life() {
  const box = await Sandbox.create({
    connectionConfig: new ConnectionConfig({ domain, apiKey }), image: 'host', timeoutSeconds: 300, resource: { cpu: '1', memory: '256Mi' },
  });
  try {
    const done = await box.commands.run('/bin/busybox echo hello');
    if (done.logs.stdout.map((message) => message.text).join() !== 'hello') throw new Error('it did not say hello');
  } finally {
    await box.kill();
    await box.close();
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
