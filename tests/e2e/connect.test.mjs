// The official Connect clients against the session listener: Connect and gRPC-Web, both forms, node's and the browser's transport;
// and gRPC itself against its own port.
import assert from 'node:assert/strict'
import test from 'node:test'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import * as node from '@connectrpc/connect-node'
import * as web from '@connectrpc/connect-web'
import { SessionService } from './opensandbox/session/v1/session_pb.js'

const baseUrl = process.env.OSB_SESSIONS
const key = process.env.OSB_API_KEY
const withKey = (next) => (request) => {
  request.header.set('open-sandbox-api-key', key)
  return next(request)
}
const client = (make, options, interceptors = [withKey]) => createClient(SessionService, make({ baseUrl, httpVersion: '1.1', interceptors, ...options }))
const decode = (bytes) => new TextDecoder().decode(bytes)

async function wholeSession(sessions) {
  const made = await sessions.createSession({ resources: { memoryMb: 128n }, metadata: { who: 'connect' } })
  assert.equal(made.state, 'running')
  assert.equal(made.resources.memoryMb, 128n)
  const sessionId = made.sessionId
  try {
    const result = await sessions.exec({ sessionId, command: 'cat; exit 3', stdin: new Uint8Array([0, 255, 104, 105]) })
    assert.deepEqual([...result.stdout], [0, 255, 104, 105])
    assert.equal(result.end.exitCode, 3)
    let said = ''
    let last
    for await (const event of sessions.execStream({ sessionId, argv: ['sh', '-c', 'echo one; echo two'] })) {
      if (event.event.case === 'stdout') said += decode(event.event.value)
      last = event.event.case
    }
    assert.equal(said, 'one\ntwo\n')
    assert.equal(last, 'exit')
    const got = await sessions.getSession({ sessionId })
    assert.ok(got.usage.pids > 0n)
    assert.ok(got.createdAt.seconds > 1700000000n)
  } finally {
    await sessions.deleteSession({ sessionId })
  }
  await assert.rejects(sessions.getSession({ sessionId }), (error) => error instanceof ConnectError && error.code === Code.NotFound)
}

test('connect-node speaks Connect with JSON', () => wholeSession(client(node.createConnectTransport, { useBinaryFormat: false })))
test('connect-node speaks Connect in binary', () => wholeSession(client(node.createConnectTransport, { useBinaryFormat: true })))
test('connect-node speaks gRPC-Web', () => wholeSession(client(node.createGrpcWebTransport, { useBinaryFormat: true })))
test('connect-node speaks gRPC-Web with JSON', () => wholeSession(client(node.createGrpcWebTransport, { useBinaryFormat: false })))
test('connect-web speaks Connect', () => wholeSession(client(web.createConnectTransport, { useBinaryFormat: false })))
test('connect-web speaks gRPC-Web', () => wholeSession(client(web.createGrpcWebTransport, { useBinaryFormat: true })))
test('connect-node speaks gRPC to its own port', () =>
  wholeSession(client(node.createGrpcTransport, { baseUrl: process.env.OSB_GRPC, httpVersion: '2' })))

test('errors have their code and details', async () => {
  for (const make of [node.createConnectTransport, node.createGrpcWebTransport]) {
    const sessions = client(make, { useBinaryFormat: true })
    await assert.rejects(sessions.exec({ sessionId: '0'.repeat(26), command: 'true' }), (error) => {
      assert.equal(error.code, Code.NotFound)
      assert.equal(error.details[0].type, 'google.rpc.ErrorInfo')
      assert.match(decode(error.details[0].value), /SESSION::NOT_FOUND/)
      return true
    })
    await assert.rejects(async () => {
      for await (const _ of sessions.execStream({ sessionId: '0'.repeat(26), command: 'true' }));
    }, (error) => error.code === Code.NotFound)
  }
})

test('a wrong key is refused in the words of the protocol', async () => {
  const wrong = (next) => (request) => {
    request.header.set('open-sandbox-api-key', 'wrong')
    return next(request)
  }
  for (const make of [node.createConnectTransport, node.createGrpcWebTransport])
    await assert.rejects(client(make, { useBinaryFormat: true }, [wrong]).listSessions({}), (error) => error.code === Code.Unauthenticated)
})

test('a file goes in by a client stream and comes out by a server stream', async () => {
  const sessions = client(node.createConnectTransport, { useBinaryFormat: true })
  const { sessionId } = await sessions.createSession({})
  try {
    const data = new Uint8Array(300000).map((_, i) => i % 251)
    async function* parts() {
      yield { part: { case: 'open', value: { sessionId, path: '/workspace/x.bin' } } }
      yield { part: { case: 'data', value: data.subarray(0, 100000) } }
      yield { part: { case: 'data', value: data.subarray(100000) } }
    }
    const info = await sessions.writeFile(parts())
    assert.equal(info.size, 300000n)
    const pieces = []
    for await (const chunk of sessions.readFile({ sessionId, path: '/workspace/x.bin' })) pieces.push(chunk.data)
    assert.deepEqual(new Uint8Array(Buffer.concat(pieces)), data)
  } finally {
    await sessions.deleteSession({ sessionId })
  }
})

test('a deadline and an abort end the wait', async () => {
  const sessions = client(node.createConnectTransport, { useBinaryFormat: false })
  await assert.rejects(sessions.run({ exec: { command: 'sleep 60' } }, { timeoutMs: 400 }), (error) => error.code === Code.DeadlineExceeded)
  const abort = new AbortController()
  await assert.rejects(async () => {
    for await (const event of sessions.runStream({ exec: { command: 'sleep 60' } }, { signal: abort.signal })) if (event.event.case === 'started') abort.abort()
  }, (error) => error.code === Code.Canceled)
  const deadline = Date.now() + 10000
  for (;;) {
    const { total } = await sessions.listSessions({})
    if (total === 0n) break
    assert.ok(Date.now() < deadline, 'sessions of calls that ended are gone')
    await new Promise((done) => setTimeout(done, 50))
  }
})
