// What the client does with answers, told by a fetch that answers without a network.
import assert from 'node:assert/strict';
import test from 'node:test';

import * as osb from '../dist/index.js';
import { EventReader } from '../dist/events.js';

const session = {
  session_id: 'abc', state: 'running', runtime: 'native', image: 'host', ephemeral: true, created_at: '2026-01-02T03:04:05.000006Z',
  resources: { memory_mb: 256 }, security: { network_policy: 'deny_all' }, a_member_of_tomorrow: 1,
};
const result = { session_id: 'abc', exec_id: 'e1', stdout: 'hi\n', stderr: '', exit_code: 0, cause: 'exited', timed_out: false, duration_ms: 1.5 };

const json = (status, body, headers) => () => new Response(JSON.stringify(body), { status, headers });
const refusal = (status, code, headers, more) => json(status, { code, message: 'no', ...more }, headers);
const created = json(201, session);
const fails = (code) => () => { throw new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) }); };

/** Answers requests in turn; the last answer repeats. */
function script(...answers) {
  const requests = [];
  const fetch = async (url, init) => {
    requests.push({ url: String(url), ...init });
    return (answers.length > 1 ? answers.shift() : answers[0])();
  };
  return { fetch, requests };
}

function client(answers, options) {
  const told = script(...answers);
  return { client: new osb.SandboxClient({ baseUrl: 'http://test', fetch: told.fetch, ...options }), requests: told.requests };
}

async function sandbox(...answers) {
  const made = client([created, ...answers]);
  const box = await made.client.createSandbox();
  made.requests.length = 0;
  return { box, requests: made.requests };
}

const sse = (...events) => events.map((event) => `event: ${event.type}\nid: ${event.seq}\ndata: ${JSON.stringify(event)}\n\n`).join('');
const stream = (text) => () => new Response(text, { headers: { 'Content-Type': 'text/event-stream' } });
const started = { type: 'started', seq: 1, session_id: 'abc', exec_id: 'e1' };
const euro = [{ type: 'stdout', seq: 2, data_base64: '4oI=' }, { type: 'stdout', seq: 3, data_base64: 'rA==' }];
const exit = { type: 'exit', seq: 4, exit: { exit_code: 0, cause: 'exited', timed_out: false, duration_ms: 1 } };

test('the address may be given with or without the path', async () => {
  for (const baseUrl of ['http://test', 'http://test/', 'http://test/api/v1', 'http://test/api/v1/', 'test']) {
    const made = client([json(200, { status: 'healthy', version: '1', runtime: 'native' })], { baseUrl });
    await made.client.health();
    assert.equal(made.requests[0].url, 'http://test/api/v1/health');
  }
});

test('a create says only what was said', async () => {
  const made = client([created], { runtime: 'native', apiKey: 'secret' });
  await made.client.createSandbox();
  await made.client.createSandbox({
    image: 'host', timeoutMs: 300_000, env: { A_B: 'c' }, memoryMb: 64, cpuCores: 0.5, diskMb: 8, pids: 16, syscallAllowlist: 'minimal', readOnlyRoot: true,
    ephemeral: false, metadata: { m_n: 'o' }, commandPolicy: { default: 'deny', askTimeoutSeconds: 5, rules: [{ program: 'ls', action: 'allow' }] },
  });
  const [first, second] = made.requests.map((request) => JSON.parse(request.body));
  assert.deepEqual(first, { runtime: 'native', resources: {}, security: {} });
  assert.deepEqual(second, {
    runtime: 'native', image: 'host', env: { A_B: 'c' }, metadata: { m_n: 'o' }, ephemeral: false,
    resources: { memory_mb: 64, cpu_cores: 0.5, disk_mb: 8, pids: 16, timeout_seconds: 300 },
    security: {
      syscall_allowlist: 'minimal', read_only_root: true, command_policy: { default: 'deny', ask_timeout_seconds: 5, rules: [{ program: 'ls', action: 'allow' }] },
    },
  });
  assert.equal(made.requests[0].headers['OPEN-SANDBOX-API-KEY'], 'secret');
  assert.notEqual(made.requests[0].headers['Idempotency-Key'], made.requests[1].headers['Idempotency-Key']);
});

test('values are read with their types', async () => {
  const { box } = await sandbox(created);
  assert.equal(box.session.createdAt.toISOString(), '2026-01-02T03:04:05.000Z');
  assert.equal(box.session.resources.memoryMb, 256);
  assert.equal('expiresAt' in box.session, false);
});

test('a create is made again with the same key', async () => {
  for (const failure of [fails('ECONNRESET'), fails('ECONNREFUSED'), refusal(503, 'X'), refusal(429, 'X'), refusal(409, 'IDEMPOTENCY::IN_PROGRESS')]) {
    const made = client([failure, created]);
    assert.equal((await made.client.createSandbox()).id, 'abc');
    assert.equal(new Set(made.requests.map((request) => request.headers['Idempotency-Key'])).size, 1);
    assert.equal(made.requests.length, 2);
  }
});

test('a command is never sent twice', async () => {
  for (const [failure, kind] of [[fails('ECONNRESET'), osb.ConnectionLost], [refusal(503, 'X'), osb.ServerUnavailable], [refusal(429, 'X'), osb.TooMany]]) {
    for (const options of [{}, { stream: true }, { timeoutMs: 1000 }]) {
      for (const word of ['run', 'execute']) {
        const { box, requests } = await sandbox(failure);
        await assert.rejects(box[word]('echo', options), (error) => error.constructor === kind);
        assert.equal(requests.length, 1);
      }
    }
  }
});

test('a command that cannot have left is sent again', async () => {
  const { box, requests } = await sandbox(fails('ECONNREFUSED'), json(200, result));
  assert.equal((await box.run('echo hi', { timeoutMs: 1000 })).stdout, 'hi\n');
  assert.equal(requests.length, 2);
  assert.deepEqual(JSON.parse(requests[1].body), { command: 'echo hi', timeout_seconds: 1 });
});

test('a one-shot run is repeated only when nothing was done', async () => {
  const refused = client([refusal(429, 'X', { 'Retry-After': '0' }), json(200, result)]);
  assert.equal((await refused.client.run('echo hi', { timeoutMs: 1000 })).exitCode, 0);
  assert.equal(new Set(refused.requests.map((request) => request.headers['Idempotency-Key'])).size, 1);
  const cut = client([fails('ECONNRESET')]);
  await assert.rejects(cut.client.run('echo hi'), osb.ConnectionLost);
  assert.equal(cut.requests.length, 1);
});

test('retries are bounded and a long Retry-After is told', async () => {
  const cut = client([fails('ECONNRESET')], { maxRetries: 1 });
  await assert.rejects(cut.client.getSandbox('abc'), osb.ConnectionLost);
  assert.equal(cut.requests.length, 2);
  const full = client([refusal(429, 'X', { 'Retry-After': '60' })]);
  await assert.rejects(full.client.createSandbox(), (error) => error instanceof osb.TooManySandboxes && error.retryAfter === 60);
  assert.equal(full.requests.length, 1);
});

test('errors have their class and read well', async () => {
  const cases = [
    [400, 'SESSION::UNKNOWN_FIELD', osb.InvalidRequest], [401, 'X', osb.NotAuthorized], [403, 'COMMAND::DENIED', osb.CommandDenied],
    [404, 'SESSION::NOT_FOUND', osb.SandboxNotFound], [409, 'X', osb.Conflict], [410, 'X', osb.SandboxEnded], [413, 'X', osb.TooLarge],
    [422, 'CODE::LANGUAGE_MISSING', osb.LanguageMissing], [400, 'SECURITY::NETWORK_POLICY_UNSUPPORTED', osb.NetworkPolicyUnsupported],
    [507, 'X', osb.DiskFull], [500, 'X', osb.SandboxError],
  ];
  for (const [status, code, kind] of cases) {
    const { box } = await sandbox(refusal(status, code, { 'X-Request-ID': 'r-1' }, { field: 'command', advice: 'do it better', rule: 'no-rm' }));
    await assert.rejects(box.run('x'), (error) => {
      assert.equal(error.constructor, kind);
      assert.deepEqual([error.name, error.code, error.status, error.field, error.rule, error.requestId], [kind.name, code, status, 'command', 'no-rm', 'r-1']);
      assert.equal(error.message, `command: no. Do it better [${code}, request r-1]`);
      return true;
    });
  }
  const { box } = await sandbox(refusal(404, 'FILE::NOT_FOUND'));
  await assert.rejects(box.downloadFile('x'), osb.RemoteFileNotFound);
});

test('no daemon says what to do', async () => {
  await assert.rejects(new osb.SandboxClient({ baseUrl: 'http://127.0.0.1:65535', maxRetries: 0 }).health(), (error) => {
    assert.ok(error instanceof osb.NotReachable, error);
    assert.match(error.message, /nothing answers at http:\/\/127.0.0.1:65535\/api\/v1 \(.*ECONNREFUSED.*\)\. Is the daemon running\? opensandbox daemon start/);
    return true;
  });
});

test('another server is told as such', async () => {
  await assert.rejects(client([() => new Response('<html>')]).client.getSandbox('x'), osb.UnexpectedAnswer);
  await assert.rejects(client([() => new Response('bad gateway', { status: 502 })], { maxRetries: 0 }).client.getSandbox('x'), /502: bad gateway/);
});

test('a request that takes too long is given up', async () => {
  const never = (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const slow = new osb.SandboxClient({ baseUrl: 'http://test', fetch: never, timeoutMs: 20, maxRetries: 0 });
  await assert.rejects(slow.health(), osb.SandboxTimeout);
  const stop = AbortSignal.timeout(10);
  await assert.rejects(new osb.SandboxClient({ baseUrl: 'http://test', fetch: never }).createSandbox({ signal: stop }), { name: 'TimeoutError' });
});

test('events are whole however the bytes come', () => {
  const wire = new TextEncoder().encode(`: awake\n\n${sse(started, ...euro, exit)}`.replaceAll('\n', '\r\n'));
  for (const size of [1, 2, 7, 1000]) {
    const reader = new EventReader();
    const events = [];
    for (let at = 0; at < wire.length; at += size) events.push(...reader.feed(wire.subarray(at, at + size)));
    assert.deepEqual(events.map((event) => event.type), ['started', 'stdout', 'stdout', 'exit']);
    assert.equal(events.map((event) => event.text).join(''), '€');
  }
});

test('a stream reads on after what it has', async () => {
  const { box, requests } = await sandbox(stream(`${sse(started, euro[0])}data: {"type": "std`), stream(sse(started, ...euro, exit)));
  const events = await box.run('x', { stream: true });
  const seen = [];
  for await (const event of events) seen.push(event.seq);
  assert.deepEqual(seen, [1, 2, 3, 4]);
  assert.equal(events.exit.exitCode, 0);
  assert.deepEqual(requests.map((request) => [request.method, request.url]),
    [['POST', 'http://test/api/v1/sessions/abc/exec'], ['GET', 'http://test/api/v1/sessions/abc/execs/e1/events?after=2']]);
});

test('a run without a time limit is collected from a stream', async () => {
  const { box, requests } = await sandbox(stream(sse(started, euro[0])), stream(sse(euro[1], { type: 'result', seq: 5, result: { data: { 'text/plain': '1' } } }, { ...exit, seq: 6 })));
  const done = await box.run('x', { maxOutputBytes: 100 });
  assert.deepEqual([done.stdout, done.stderr, done.exitCode, done.sessionId, done.execId, done.results.length, done.stdoutTruncated],
    ['€', '', 0, 'abc', 'e1', 1, false]);
  assert.equal(requests.length, 2);
  const bounded = await sandbox(stream(sse(started, ...euro, exit)));
  assert.deepEqual([(await bounded.box.run('x', { maxOutputBytes: 2 })).stdoutTruncated], [true]);
});

test('a stream cut before the command started is not repeated', async () => {
  const { box, requests } = await sandbox(stream(''));
  await assert.rejects(box.run('x'), osb.ConnectionLost);
  assert.equal(requests.length, 1);
});

test('events before an error are told first', async () => {
  const { box } = await sandbox(stream(sse(started, { type: 'error', seq: 0, error: { code: 'COMMAND::DENIED', message: 'no', rule: 'r' } })));
  const seen = [];
  await assert.rejects(async () => {
    for await (const event of await box.run('x', { stream: true })) seen.push(event.type);
  }, (error) => error instanceof osb.CommandDenied && error.rule === 'r');
  assert.deepEqual(seen, ['started']);
});

test('destroy is content with a sandbox that is gone', async () => {
  const { box } = await sandbox(refusal(404, 'SESSION::NOT_FOUND'));
  await box.destroy();
  await box[Symbol.asyncDispose]();
});

test('the core names nothing of Node', async () => {
  const { readFile, readdir } = await import('node:fs/promises');
  const folder = new URL('../dist/', import.meta.url);
  for (const name of (await readdir(folder)).filter((file) => file.endsWith('.js') && file !== 'node.js')) {
    const text = await readFile(new URL(name, folder), 'utf8');
    assert.doesNotMatch(text, /from ['"](?!\.\/)|\brequire\(|\bBuffer\b|__dirname/, name);
  }
});
