// The client against a real daemon: OPENSANDBOX_URL, and OSB_CUT_URL for one behind a proxy that cuts event streams.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';

import * as osb from '../dist/index.js';
import { downloadFile, uploadFile } from '../dist/node.js';

const client = new osb.SandboxClient();
const person = new osb.SandboxClient({ apiKey: process.env.OSB_KEY });

async function withSandbox(work, options, from = client) {
  const sandbox = await from.createSandbox({ memoryMb: 256, ...options });
  try {
    await work(sandbox);
  } finally {
    await sandbox.destroy();
  }
}

async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

const textOf = (events) => events.map((event) => event.text).join('');
const lines = Array.from({ length: 80 }, (_, index) => `line ${index + 1}\n`).join('');
const slow = 'for i in $(seq 1 80); do echo line $i; sleep 0.005; done';

test('a sandbox lives until it is destroyed', async () => {
  const sandbox = await client.createSandbox({ image: 'host', timeoutMs: 120_000, memoryMb: 128, metadata: { who: 'me' }, env: { GREETING: 'hi' } });
  const info = await sandbox.info();
  assert.deepEqual([info.sessionId, info.state, info.image, info.resources.memoryMb, info.metadata], [sandbox.id, 'running', 'host', 128, { who: 'me' }]);
  assert.ok(info.expiresAt > info.createdAt);
  assert.equal((await sandbox.run('echo $GREETING', { timeoutMs: 20_000 })).stdout, 'hi\n');
  assert.equal((await (await client.getSandbox(sandbox.id)).run(['echo', '$GREETING'])).stdout, '$GREETING\n');
  assert.ok((await client.listSandboxes()).some((other) => other.id === sandbox.id));
  await sandbox.destroy();
  await sandbox.destroy();
  await assert.rejects(sandbox.info(), (error) => error instanceof osb.SandboxNotFound && error.code === 'SESSION::NOT_FOUND' && Boolean(error.requestId));
});

test('what is refused says which field', async () => {
  for (const [options, kind, field] of [
    [{ memoryMb: 1 }, osb.InvalidRequest, 'resources.memory_mb'], [{ egressEnabled: true }, osb.NetworkPolicyUnsupported, 'security.network_policy'],
  ]) {
    await assert.rejects(client.createSandbox(options), (error) => error instanceof kind && error.field === field);
  }
  assert.equal((await client.health()).runtime, 'native');
});

test('both forms of a run tell the same', () => withSandbox(async (sandbox) => {
  for (const timeoutMs of [undefined, 20_000]) {
    const done = await sandbox.run('cat; echo oh >&2; pwd; echo $A; exit 3', { stdin: 'in\n', cwd: '/tmp', env: { A: 'b' }, timeoutMs });
    assert.deepEqual([done.stdout, done.stderr, done.exitCode, done.cause, done.timedOut, done.sessionId, done.stdoutTruncated],
      ['in\n/tmp\nb\n', 'oh\n', 3, 'exited', false, sandbox.id, false]);
    assert.ok(done.execId && done.durationMs > 0);
    const cut = await sandbox.run('yes | head -c 100000', { maxOutputBytes: 1000, timeoutMs });
    assert.deepEqual([cut.stdout.length, cut.stdoutTruncated, cut.stderrTruncated], [1000, true, false]);
  }
}));

test('a command past its time is a result', () => withSandbox(async (sandbox) => {
  const late = await sandbox.run('echo begun; sleep 60', { timeoutMs: 300 });
  assert.deepEqual([late.stdout, late.exitCode, late.timedOut], ['begun\n', 124, true]);
}));

test('a stream tells events as they come', () => withSandbox(async (sandbox) => {
  const stream = await sandbox.run('echo first; read line; echo $line >&2', { stream: true, stdin: 'second\n' });
  const events = await all(stream);
  assert.deepEqual(events.map((event) => [event.type, event.text]), [['started', ''], ['stdout', 'first\n'], ['stderr', 'second\n'], ['exit', '']]);
  assert.equal(stream.exit.exitCode, 0);
}));

test('interrupt stops the command and an abort the reading', () => withSandbox(async (sandbox) => {
  const stream = await sandbox.run('echo begun; sleep 60', { stream: true });
  for await (const event of stream) if (event.text === 'begun\n') await stream.interrupt();
  assert.equal(stream.exit.cause, 'interrupted');
  const stop = new AbortController();
  await assert.rejects(async () => {
    for await (const event of await sandbox.run('echo begun; sleep 60', { stream: true, signal: stop.signal })) if (event.text) stop.abort();
  }, { name: 'AbortError' });
  for await (const event of await sandbox.run('echo begun; sleep 60', { stream: true })) if (event.text) break;
}));

test('a cut stream reads on without loss or repetition', async () => {
  const behind = new osb.SandboxClient({ baseUrl: process.env.OSB_CUT_URL });
  await withSandbox(async (sandbox) => {
    const events = await all(await sandbox.run(slow, { stream: true }));
    assert.equal(textOf(events), lines);
    assert.deepEqual(events.map((event) => event.seq), events.map((_, index) => events[0].seq + index));
    assert.equal((await sandbox.run(slow)).stdout, lines, 'a plain run without a time limit is a stream behind the scenes');
  }, {}, behind);
});

test('code keeps its variables and tells results', () => withSandbox(async (sandbox) => {
  assert.equal((await sandbox.execute("x = 41; print('set')")).stdout, 'set\n');
  assert.equal((await sandbox.execute('x + 1', { timeoutMs: 20_000 })).results[0].data['text/plain'], '42');
  const failed = await sandbox.execute('1 / 0');
  assert.deepEqual([failed.exitCode, failed.error.name], [1, 'ZeroDivisionError']);
  await assert.rejects(sandbox.execute('x', { language: 'cobol' }), osb.LanguageMissing);
}));

test('files go in and out', () => withSandbox(async (sandbox) => {
  const folder = await mkdtemp(join(tmpdir(), 'osb-ts-'));
  try {
    const big = new Uint8Array(2 * 1024 * 1024).map((_, index) => index % 251);
    await writeFile(join(folder, 'big'), big);
    const info = await uploadFile(sandbox, join(folder, 'big'), 'deep/in/big.bin', { mode: '755' });
    assert.deepEqual([info.path, info.size, info.type], ['/workspace/deep/in/big.bin', big.length, 'file']);
    assert.deepEqual(await sandbox.downloadFile('/workspace/deep/in/big.bin'), big);
    await downloadFile(sandbox, 'deep/in/big.bin', join(folder, 'back'));
    assert.deepEqual(new Uint8Array(await readFile(join(folder, 'back'))), big);
    await assert.rejects(downloadFile(sandbox, 'nothing', join(folder, 'x')), osb.RemoteFileNotFound);
    assert.deepEqual((await readdir(folder)).sort(), ['back', 'big']);
    await sandbox.uploadFile(new Blob(['from a blob']), 'blob');
    await sandbox.writeText('a ü&b.txt', 'grüße\n');
    assert.equal(await sandbox.readText('a ü&b.txt'), 'grüße\n');
    await sandbox.makeDirectory('made/too');
    await sandbox.deleteFile('blob');
    assert.deepEqual((await sandbox.listFiles()).map((file) => file.path).sort(), ['/workspace/a ü&b.txt', '/workspace/deep', '/workspace/made']);
  } finally {
    await rm(folder, { recursive: true });
  }
}));

test('a refused command names its rule and a held one waits for an answer', async () => {
  const commandPolicy = { default: 'allow', rules: [{ name: 'no-rm', program: 'rm', action: 'deny' }, { name: 'ask-mv', program: 'mv', action: 'ask' }] };
  await withSandbox(async (sandbox) => {
    await assert.rejects(sandbox.run('rm x'), (error) => error instanceof osb.CommandDenied && error.rule === 'no-rm');
    const events = [];
    for await (const event of await sandbox.run('mv --version >/dev/null && echo ran', { stream: true })) {
      events.push(event);
      if (event.type !== 'held') continue;
      assert.ok((await client.listApprovals()).some((asked) => asked.id === event.approval.id));
      await assert.rejects(client.answerApproval(event.approval.id, 'allow'), osb.NotAuthorized);
      assert.equal((await person.answerApproval(event.approval.id, 'allow', 'by a test')).state, 'allowed');
    }
    assert.equal(events[0].type, 'held');
    assert.equal(textOf(events), 'ran\n');
  }, { commandPolicy });
});

test('one line runs a command and leaves nothing', async () => {
  const done = await osb.runInOpenSandbox('echo once; echo oh >&2; exit 2', 20_000);
  assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['once\n', 'oh\n', 2]);
  assert.equal((await client.run('cat', { stdin: 'in', memoryMb: 128 })).stdout, 'in');
  assert.equal(textOf(await all(await client.run('echo streamed', { stream: true }))), 'streamed\n');
  await assert.rejects(client.getSandbox(done.sessionId), osb.SandboxNotFound);
});
