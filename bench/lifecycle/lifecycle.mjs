#!/usr/bin/env node
// lifecycle.py from Node: the same lives, the same options, the same table and JSON.
import { spawn } from 'node:child_process';
import { accessSync } from 'node:fs';
import { parseArgs } from 'node:util';

const images = ['busybox', 'alpine', 'debian', 'ubuntu', 'python'];
const warmUp = 3;

async function load() {
  try {
    return await import('opensandbox-client');
  } catch {
    return import(new URL('../../sdks/typescript/dist/index.js', import.meta.url)).catch(() => {
      throw new Error('the SDK is not compiled: ./dev sdks');
    });
  }
}

function run([program, ...words]) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '', errors = '';
    child.stdout.on('data', (piece) => { out += piece; });
    child.stderr.on('data', (piece) => { errors += piece; });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, out, errors }));
  });
}

async function hello(words) {
  const done = await run(words);
  if (done.out !== 'hello\n') throw new Error(`${words[0]} did not say hello: ${(done.errors || done.out).trim().slice(0, 300)}`);
}

async function milliseconds(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function floorWords() {
  for (const busybox of ['/bin/busybox', '/usr/bin/busybox']) {
    try {
      accessSync(busybox);
      return [busybox, 'echo', 'hello'];
    } catch { /* the next one */ }
  }
  return ['/bin/echo', 'hello'];
}

async function life(client, image, parts) {
  const start = performance.now();
  const sandbox = await client.createSandbox({ image });
  const created = performance.now();
  let done, ran;
  try {
    done = await sandbox.run('echo hello', { timeoutMs: 60_000 });
  } finally {
    ran = performance.now();
    await sandbox.destroy();
  }
  const gone = performance.now();
  if (done.stdout !== 'hello\n') throw new Error(`the sandbox did not say hello: ${JSON.stringify(done)}`);
  parts.create.push(created - start);
  parts.exec.push(ran - created);
  parts.delete.push(gone - ran);
  return gone - start;
}

async function dockerImage(wanted) {
  const answers = async (...words) => (await run(['docker', ...words]).catch(() => ({ code: -1 }))).code;
  const version = await answers('version');
  if (version === -1) return { why: 'there is no docker command' };
  if (version !== 0) return { why: 'no Docker daemon answers' };
  for (const name of wanted ? [wanted] : images) if ((await answers('image', 'inspect', name)) === 0) return { name };
  return { why: `none of these images is there: ${wanted ?? images.join(', ')} (docker pull one, or --docker-image)` };
}

function rank(samples, share) {
  const ordered = [...samples].sort((a, b) => a - b);
  return ordered[Math.max(0, Math.ceil(share * ordered.length) - 1)];
}

function row(name, samples, floor) {
  const mean = samples.reduce((sum, one) => sum + one, 0) / samples.length;
  return { name, n: samples.length, mean_ms: mean, p50_ms: rank(samples, 0.5), p99_ms: rank(samples, 0.99), ratio: rank(samples, 0.5) / floor };
}

async function measure(options) {
  const { SandboxClient } = await load();
  const client = new SandboxClient({ baseUrl: options.url, apiKey: options.key });
  const [floor, ours, parts, skipped] = [[], [], { create: [], exec: [], delete: [] }, []];
  let words = floorWords();
  for (let turn = -warmUp; turn < options.n; turn += 1) {
    if (turn === 0) for (const list of [floor, ours, ...Object.values(parts)]) list.length = 0;
    floor.push(await milliseconds(() => hello(words)));
    ours.push(await life(client, options.image, parts));
  }
  const unit = rank(floor, 0.5);
  const rows = [row(`floor: ${['busybox', 'echo'].find((name) => words[0].endsWith(name))} ${words.slice(1).join(' ')}, bare`, floor, unit)];
  rows.push(row('opensandbox, TypeScript SDK: create + exec + delete', ours, unit));
  for (const [name, samples] of Object.entries(parts)) rows.push(row(`  ${name}`, samples, unit));
  const docker = options['no-docker'] ? { why: 'left out (--no-docker)' } : await dockerImage(options['docker-image']);
  if (docker.name) {
    words = ['docker', 'run', '--rm', '--network', 'none', docker.name, 'echo', 'hello'];
    await hello(words);
    const samples = [];
    for (let turn = 0; turn < options.n; turn += 1) samples.push(await milliseconds(() => hello(words)));
    rows.push(row(`docker run --rm ${docker.name}`, samples, unit));
  } else {
    skipped.push({ name: 'docker', why: docker.why });
  }
  return { n: options.n, client: 'typescript', rows, skipped };
}

function show(report) {
  const width = Math.max(...report.rows.map((entry) => entry.name.length)) + 2;
  const number = (value, digits) => value.toFixed(digits).padStart(9);
  console.log(`${report.n} whole lives of a sandbox, one after the other; milliseconds\n`);
  console.log(`${''.padEnd(width)}     mean      p50      p99  x floor`);
  for (const entry of report.rows) {
    console.log(entry.name.padEnd(width) + number(entry.mean_ms, 2) + number(entry.p50_ms, 2) + number(entry.p99_ms, 2) + number(entry.ratio, 1));
  }
  for (const entry of report.skipped) console.log(`${entry.name}: skipped, ${entry.why}`);
}

const usage = 'usage: lifecycle.mjs [-n 100] [--url URL] [--key KEY] [--image host] [--docker-image NAME] [--no-docker] [--json]';
try {
  const { values } = parseArgs({
    options: {
      n: { type: 'string', short: 'n', default: '100' }, url: { type: 'string' }, key: { type: 'string' }, image: { type: 'string', default: 'host' },
      'docker-image': { type: 'string' }, 'no-docker': { type: 'boolean' }, json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' },
    },
  });
  const n = Number(values.n);
  if (!Number.isInteger(n) || n < 1) throw new Error('-n must be a number of at least 1');
  if (values.help) {
    console.log(usage);
  } else {
    const report = await measure({ ...values, n });
    if (values.json) console.log(JSON.stringify(report, null, 2));
    else show(report);
  }
} catch (error) {
  console.error(`lifecycle: ${error.message}`);
  process.exitCode = 1;
}
