// A sandbox from TypeScript: a command, a program that streams, files in and out, limits that hold.
import { CommandDenied, SandboxClient, type CommandPolicy } from 'opensandbox-client';

const commandPolicy: CommandPolicy = { rules: [{ name: 'no-curl', program: 'curl', action: 'deny', reason: 'there is no network in here' }] };

const program = `
import collections, pathlib
words = pathlib.Path("text.txt").read_text().lower().split()
for word, count in collections.Counter(words).most_common(3):
    print(count, word, flush=True)
`;

const bytes = (text: string) => new TextEncoder().encode(text);

const sandbox = await new SandboxClient().createSandbox({ timeoutMs: 120_000, memoryMb: 128, pids: 32, commandPolicy });
try {
  console.log('made', sandbox.session.image, 'with', sandbox.session.resources.memoryMb, 'MB');

  await sandbox.uploadFile(bytes(program), 'count.py');
  await sandbox.uploadFile(bytes('the cat saw the dog and the dog saw the cat'), 'text.txt');
  const stream = await sandbox.run('python3 count.py | tee counts.txt', { stream: true });
  for await (const event of stream) process.stdout.write(event.text);
  console.log('exit', stream.exit?.exitCode);
  console.log('downloaded', (await sandbox.downloadFile('counts.txt')).length, 'bytes');

  const late = await sandbox.run('sleep 60', { timeoutMs: 500 });
  console.log('a command that hangs:', late.cause);
  const greedy = await sandbox.run(['python3', '-c', 'bytearray(1 << 30)']);
  console.log('a command that wants a gigabyte:', greedy.cause, greedy.exitCode);
  await sandbox.run('curl https://example.com/').catch((refused: unknown) => {
    if (!(refused instanceof CommandDenied)) throw refused;
    console.log('a command that is not allowed:', refused.rule);
  });
} finally {
  await sandbox.destroy();
}
