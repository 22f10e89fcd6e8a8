// The published TypeScript SDK against a real daemon. Run by test_typescript.py, which starts the daemon.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';

const { ConnectionConfig, Sandbox, SandboxApiException, SandboxManager } = await import(pathToFileURL(process.env.OSB_TS_SDK));

const IMAGE = 'opensandbox/code-interpreter:latest';
const UNKNOWN = 'zzzzzzzzzzzzzzzzzzzzzzzzzz';
const made = [];
let box;

const config = (options = {}) => new ConnectionConfig({ domain: process.env.OSB_DOMAIN, apiKey: process.env.OSB_API_KEY, ...options });
const texts = (messages) => messages.map((message) => message.text);
const refused = (status) => (error) => error instanceof SandboxApiException && error.statusCode === status;

async function create(options = {}) {
  const sandbox = await Sandbox.create({
    connectionConfig: config(), image: IMAGE, timeoutSeconds: 300, metadata: { tag: 'e2e-test' }, resource: { cpu: '1', memory: '256Mi' }, ...options,
  });
  made.push(sandbox);
  return sandbox;
}

async function ids(manager, filter) {
  return new Set((await manager.listSandboxInfos({ pageSize: 50, ...filter })).items.map((item) => item.id));
}

before(async () => { box = await create(); });
after(async () => {
  for (const sandbox of made) {
    await sandbox.kill().catch(() => {});
    await sandbox.close();
  }
});

test('a created sandbox is healthy and tells what it is', async () => {
  assert.equal(await box.isHealthy(), true);
  const info = await box.getInfo();
  assert.equal(info.id, box.id);
  assert.equal(info.status.state, 'Running');
  assert.deepEqual(info.entrypoint, ['tail', '-f', '/dev/null']);
  assert.equal(info.metadata.tag, 'e2e-test');
  assert.ok(info.expiresAt > info.createdAt);
});

test('without a timeout it never expires', async () => {
  const manual = await create({ timeoutSeconds: null, metadata: { tag: 'manual-e2e-test' } });
  const info = await manual.getInfo();
  assert.equal(info.expiresAt, null);
  assert.equal(info.metadata.tag, 'manual-e2e-test');
});

test('endpoints have the shape clients check', async () => {
  for (const port of [44772, 18080, 8080]) {
    const { endpoint } = await box.getEndpoint(port);
    assert.ok(!endpoint.includes('://') && !endpoint.endsWith('/'));
    assert.ok(endpoint.includes('/') ? endpoint.endsWith(`/${port}`) : endpoint.endsWith(`:${port}`), endpoint);
  }
});

test('metrics are those of the sandbox', async () => {
  const small = await create({ resource: { cpu: '500m', memory: '128Mi' } });
  const metrics = await small.getMetrics();
  assert.equal(metrics.cpuCount, 0.5);
  assert.equal(metrics.memoryTotalMiB, 128);
  assert.ok(metrics.cpuUsedPercentage >= 0 && metrics.cpuUsedPercentage <= 100);
  assert.ok(metrics.memoryUsedMiB > 0 && metrics.memoryUsedMiB <= 128);
  assert.ok(Math.abs(metrics.timestamp - Date.now()) < 120000);
});

test('renew moves the expiry', async () => {
  const earlier = (await box.getInfo()).expiresAt;
  const answered = await box.renew(1200);
  const later = (await box.getInfo()).expiresAt;
  assert.ok(answered.expiresAt instanceof Date && later > earlier);
  assert.ok(Math.abs(answered.expiresAt - later) < 10_000);
});

test('a second client connects by id', async () => {
  const other = await Sandbox.connect({ connectionConfig: config(), sandboxId: box.id });
  assert.deepEqual(texts((await other.commands.run('echo connect-ok')).logs.stdout), ['connect-ok']);
  await other.close();
});

test('a command reports one init, its output and one completion', async () => {
  const seen = { init: [], complete: [], error: [] };
  const done = await box.commands.run("echo 'Hello OpenSandbox E2E'", undefined, {
    onInit: (event) => { seen.init.push(event.id); },
    onExecutionComplete: (event) => { seen.complete.push(event); },
    onError: (event) => { seen.error.push(event); },
  });
  assert.deepEqual(texts(done.logs.stdout), ['Hello OpenSandbox E2E']);
  assert.deepEqual(done.logs.stderr, []);
  assert.equal(done.exitCode, 0);
  assert.deepEqual(seen.init, [done.id]);
  assert.equal(seen.complete.length, 1);
  assert.deepEqual(seen.error, []);
});

test('working directory, environment and standard error', async () => {
  assert.deepEqual(texts((await box.commands.run('pwd', { workingDirectory: '/tmp' })).logs.stdout), ['/tmp']);
  const probe = 'echo "${OSB_PROBE:-__EMPTY__}"';
  assert.deepEqual(texts((await box.commands.run(probe)).logs.stdout), ['__EMPTY__']);
  assert.deepEqual(texts((await box.commands.run(probe, { envs: { OSB_PROBE: 'x y' } })).logs.stdout), ['x y']);
  const both = await box.commands.run('echo to-out; echo to-err >&2');
  assert.deepEqual([texts(both.logs.stdout), texts(both.logs.stderr)], [['to-out'], ['to-err']]);
});

test('a failing and an unknown command have an error and no completion', async () => {
  const failed = await box.commands.run('exit 7');
  assert.deepEqual([failed.exitCode, failed.error.name, failed.error.value, failed.complete], [7, 'CommandExecError', '7', undefined]);
  const unknown = await box.commands.run('osb-no-such-command-12345');
  assert.equal(unknown.exitCode, 127);
  assert.match(unknown.logs.stderr[0].text, /osb-no-such-command-12345/);
});

test('a command past its timeout is ended', async () => {
  const started = Date.now();
  const done = await box.commands.run('sleep 30', { timeoutSeconds: 1 });
  assert.ok(Date.now() - started < 6000);
  assert.ok(done.error && !done.complete && done.exitCode !== 0);
});

test('background, status and logs with a cursor', async () => {
  const run = await box.commands.run("sh -c 'echo log-line-1; echo log-line-2; sleep 1'", { background: true });
  assert.ok(run.id && (run.exitCode === null || run.exitCode === undefined));
  let text = '', cursor, status;
  for (let round = 0; round < 200; round += 1) {
    const logs = await box.commands.getBackgroundCommandLogs(run.id, cursor);
    text += logs.content;
    cursor = logs.cursor;
    status = await box.commands.getCommandStatus(run.id);
    if (!status.running) break;
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
  assert.equal(text, 'log-line-1\nlog-line-2\n');
  assert.deepEqual([status.id, status.running, status.exitCode], [run.id, false, 0]);
});

test('interrupt ends the stream with one terminal event', async () => {
  let begun;
  const begins = new Promise((resolve) => { begun = resolve; });
  const running = box.commands.run('sleep 30', undefined, { onInit: (event) => { begun(event.id); } });
  const id = await begins;
  await box.commands.interrupt(id);
  const done = await running;
  assert.equal(done.id, id);
  assert.notEqual(done.complete === undefined, done.error === undefined);
});

test('interrupt of an unknown execution rejects', async () => {
  await assert.rejects(box.commands.interrupt(`fake-${Date.now()}`), SandboxApiException);
});

test('a bash session keeps directory, environment and functions', async () => {
  const session = await box.commands.createSession({ workingDirectory: '/tmp' });
  const run = (command, options) => box.commands.runInSession(session, command, options);
  assert.deepEqual(texts((await run('pwd')).logs.stdout), ['/tmp']);
  assert.deepEqual(texts((await run('pwd', { workingDirectory: '/var' })).logs.stdout), ['/var']);
  assert.deepEqual(texts((await run('pwd', { workingDirectory: '/tmp' })).logs.stdout), ['/tmp']);
  await run('export E2E_SESSION_ENV=session-env-ok; f() { echo fun; }');
  assert.deepEqual(texts((await run('echo $E2E_SESSION_ENV; f')).logs.stdout), ['session-env-ok', 'fun']);
  const failed = await run("sh -c 'echo session-fail >&2; exit 7'");
  assert.deepEqual([failed.exitCode, failed.error.name, failed.error.value, failed.complete], [7, 'CommandExecError', '7', undefined]);
  assert.equal(failed.id, session);
  const late = await run('sleep 30', { timeoutSeconds: 1 });
  assert.ok(late.error && !late.complete);
  const other = await box.commands.createSession({ workingDirectory: '/var' });
  assert.deepEqual(texts((await box.commands.runInSession(other, 'pwd')).logs.stdout), ['/var']);
  await box.commands.deleteSession(session);
  await box.commands.deleteSession(other);
  await assert.rejects(run('pwd'), SandboxApiException);
});

test('pause shows at once and resume brings it back', async () => {
  const frozen = await create();
  await frozen.pause();
  assert.equal((await frozen.getInfo()).status.state, 'Paused');
  assert.equal(await frozen.isHealthy(), false);
  const back = await frozen.resume();
  assert.equal((await back.getInfo()).status.state, 'Running');
  assert.deepEqual(texts((await back.commands.run('echo resume-ok')).logs.stdout), ['resume-ok']);
  await back.close();
});

test('list filters states and metadata, and pages', async () => {
  const tag = `mgr-${randomUUID().slice(0, 8)}`;
  const small = { cpu: '100m', memory: '64Mi' };
  const kinds = [{ team: 't1', env: 'prod' }, { team: 't1', env: 'dev' }, { env: 'prod' }];
  const boxes = [];
  for (const kind of kinds) boxes.push(await create({ metadata: { tag, ...kind }, resource: small }));
  await boxes[2].pause();
  const [a, b, c] = boxes.map((sandbox) => sandbox.id);
  const manager = SandboxManager.create({ connectionConfig: config() });
  assert.deepEqual(await ids(manager, { states: ['Running', 'Paused'], metadata: { tag } }), new Set([a, b, c]));
  assert.deepEqual(await ids(manager, { states: ['Paused'], metadata: { tag } }), new Set([c]));
  assert.deepEqual(await ids(manager, { states: ['Running'], metadata: { tag } }), new Set([a, b]));
  assert.deepEqual(await ids(manager, { metadata: { tag, team: 't1', env: 'prod' } }), new Set([a]));
  assert.deepEqual(await ids(manager, { metadata: { tag, team: 't2' } }), new Set());
  const page = await manager.listSandboxInfos({ metadata: { tag }, page: 2, pageSize: 2 });
  assert.deepEqual([page.items.map((item) => item.id), page.pagination.totalItems, page.pagination.hasNextPage], [[a], 3, false]);
  await manager.close();
});

test('metadata patch sets, removes and keeps', async () => {
  const patched = await box.patchMetadata({ env: 'stage', extra: null });
  assert.equal(patched.metadata.env, 'stage');
  assert.deepEqual((await box.patchMetadata({ env: null })).metadata, { tag: 'e2e-test' });
});

test('every operation on an unknown id rejects', async () => {
  const manager = SandboxManager.create({ connectionConfig: config() });
  for (const call of ['getSandboxInfo', 'pauseSandbox', 'resumeSandbox', 'killSandbox']) {
    await assert.rejects(manager[call](UNKNOWN), refused(404), call);
  }
  await assert.rejects(manager.renewSandbox(UNKNOWN, 300), SandboxApiException);
  await manager.close();
});

test('the request id comes back with the error', async () => {
  const wanted = `e2e-${randomUUID()}`;
  const manager = SandboxManager.create({ connectionConfig: config({ headers: { 'X-Request-ID': wanted } }) });
  await assert.rejects(manager.getSandboxInfo(UNKNOWN), (error) => error.requestId === wanted);
  await manager.close();
});

test('a wrong key is refused', async () => {
  const manager = SandboxManager.create({ connectionConfig: config({ apiKey: 'not-the-key' }) });
  await assert.rejects(manager.listSandboxInfos({}), refused(401));
  await manager.close();
});

test('killed is gone', async () => {
  const doomed = await create();
  await doomed.kill();
  await assert.rejects(doomed.getInfo(), refused(404));
  await assert.rejects(Sandbox.connect({ connectionConfig: config(), sandboxId: doomed.id }), SandboxApiException);
});

test('files and directories, as the published suites use them', async () => {
  const [one, two] = ['/tmp/fs_js1', '/tmp/fs_js2'];
  await box.files.createDirectories([{ path: one, mode: 755 }, { path: two, mode: 644 }]);
  const made = await box.files.getFileInfo([one, two]);
  assert.deepEqual([made[one].mode, made[two].mode], [755, 644]);
  assert.ok(Math.abs(made[one].createdAt - made[one].modifiedAt) <= 2000);
  const listing = await box.commands.run('ls -la /tmp | grep fs_js');
  assert.equal(listing.logs.stdout.length, 2);

  const text = 'Hello åäö\nline two\n';
  const [a, b, c] = [`${one}/a.txt`, `${one}/b.bin`, `${one}/c.txt`];
  async function* pieces() { yield new TextEncoder().encode(text); }
  await box.files.writeFiles([
    { path: a, data: text, mode: 644 }, { path: b, data: new TextEncoder().encode(text), mode: 755 },
    { path: c, data: pieces(), mode: 755, owner: 'nobody', group: 'nogroup' },
  ]);
  assert.equal(await box.files.readFile(a), text);
  assert.equal(new TextDecoder().decode(await box.files.readBytes(b)), text);
  let streamed = '';
  for await (const piece of box.files.readBytesStream(c)) streamed += new TextDecoder().decode(piece);
  assert.equal(streamed, text);
  assert.equal((await box.files.readBytes(b, { range: 'bytes=0-4' })).length, 5);
  const info = await box.files.getFileInfo([c]);
  assert.deepEqual([info[c].owner, info[c].group, info[c].mode], ['nobody', 'nogroup', 755]);
  assert.deepEqual((await box.files.search({ path: one, pattern: '*' })).map((entry) => entry.path).sort(), [a, b, c]);

  await box.files.setPermissions([{ path: a, mode: 600, owner: 'nobody', group: 'nogroup' }]);
  assert.equal((await box.files.getFileInfo([a]))[a].mode, 600);
  await box.files.replaceContents([{ path: a, oldContent: 'Hello', newContent: 'Bye' }, { path: b, oldContent: 'line', newContent: 'row' }]);
  assert.ok((await box.files.readFile(a)).startsWith('Bye') && (await box.files.readFile(b)).includes('row two'));
  await box.files.moveFiles([{ src: a, dest: `${two}/a.txt` }]);
  await assert.rejects(box.files.getFileInfo([a]), refused(404));
  assert.ok((await box.files.readFile(`${two}/a.txt`)).startsWith('Bye'));
  await box.files.deleteFiles([b]);
  await assert.rejects(box.files.readFile(b), refused(404));
  await box.files.deleteDirectories([one, two]);
  assert.deepEqual(texts((await box.commands.run(`test ! -d ${one} && test ! -d ${two} && echo OK`)).logs.stdout), ['OK']);
});

test('a snapshot makes a sandbox with the same files', async () => {
  const manager = SandboxManager.create({ connectionConfig: config() });
  await box.commands.run('echo kept > /workspace/snapshot-note');
  let snapshot = await manager.createSnapshot(box.id, { name: 'base' });
  assert.equal(snapshot.status.reason, 'snapshot_accepted');
  while (snapshot.status.state === 'Creating') {
    await new Promise((done) => setTimeout(done, 20));
    snapshot = await manager.getSnapshot(snapshot.id);
  }
  assert.equal(snapshot.status.state, 'Ready');
  const copy = await create({ image: undefined, snapshotId: snapshot.id });
  assert.deepEqual(texts((await copy.commands.run('cat /workspace/snapshot-note')).logs.stdout), ['kept']);
  await copy.kill();
  await manager.deleteSnapshot(snapshot.id);
  await manager.close();
});

test('host and named volumes hold what is written', async () => {
  const path = `${process.env.OSB_SHARED}/typescript`;
  const volumes = [
    { name: 'host-data', host: { path }, mountPath: '/mnt/host-data', readOnly: false },
    { name: 'host-ro', host: { path }, mountPath: '/mnt/host-ro', readOnly: true },
    { name: 'pvc-data', pvc: { claimName: 'typescript' }, mountPath: '/mnt/pvc-data', readOnly: false },
    { name: 'pvc-sub', pvc: { claimName: 'typescript' }, mountPath: '/mnt/sub', readOnly: false, subPath: 'datasets/train' },
  ];
  const sandbox = await create({ volumes });
  const run = async (command) => texts((await sandbox.commands.run(command)).logs.stdout);
  assert.deepEqual(await run('echo a > /mnt/host-data/a; cat /mnt/host-ro/a'), ['a']);
  assert.notEqual((await sandbox.commands.run('echo b > /mnt/host-ro/b')).error, undefined);
  assert.deepEqual(await run('echo c > /mnt/sub/c; cat /mnt/pvc-data/datasets/train/c'), ['c']);
});
