// A language model without one: an OpenAI-compatible endpoint that answers by keywords of the prompt, always the same, streamed in small
// pieces as real ones do. It lets the chat run offline, shows every limit, and is what the tests talk to.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Message } from "./llm.ts";

interface Step {
  say?: string;
  tool?: { name: string; arguments: Record<string, unknown> };
}

interface Scene {
  words: RegExp;
  steps: Step[];
  /** Said after the last step, from what the tools answered. */
  sum: (results: string[]) => string;
  fails?: boolean;
  forever?: boolean;
}

const run = (say: string, command: string, timeout_seconds?: number): Step => ({
  say,
  tool: { name: "run_command", arguments: { command, ...(timeout_seconds ? { timeout_seconds } : {}) } },
});

const kSieve = `import time

def primes(limit):
    sieve = [True] * (limit + 1)
    for n in range(2, limit + 1):
        if sieve[n]:
            yield n
            for multiple in range(n * n, limit + 1, n):
                sieve[multiple] = False

for count, prime in enumerate(primes(20), start=1):
    print(f"{count:3}  {prime}", flush=True)
    time.sleep(0.05)
`;

const last = (results: string[]) => results.at(-1) ?? "";
const refused = (results: string[]) => last(results).startsWith("refused:");

// The first scene whose words are in the prompt is played.
const kScenes: Scene[] = [
  { words: /offline|unreachable|broken model/i, steps: [], sum: () => "", fails: true },
  { words: /never stop|for ?ever and ever|endless/i, steps: [run("One more.", "date +%T.%N")], sum: () => "", forever: true },
  {
    words: /prime/i,
    steps: [
      { say: "I will write a small sieve and run it.", tool: { name: "write_file", arguments: { path: "primes.py", content: kSieve } } },
      run("", "python3 primes.py"),
    ],
    sum: (results) => `There are ${(last(results).match(/^\s*\d+ {2}\d+$/gm) ?? []).length} primes up to 20; the list is above.`,
  },
  {
    words: /download|curl|internet|web ?site/i,
    steps: [run("I will fetch the page.", "curl -sS https://example.com/")],
    sum: (results) => (refused(results) ? "I may not do that: the policy refuses programs that reach for the network, and this sandbox has none." : "The page is above."),
  },
  {
    words: /delete|clean|remove/i,
    steps: [run("First something to delete.", "mkdir -p build && touch build/a.o build/b.o && ls build"), run("Now I would remove the folder. Deleting needs your word.", "rm -rv build")],
    sum: (results) => (refused(results) ? "You did not allow it, so the folder stays." : "The folder is gone."),
  },
  {
    words: /fork ?bomb/i,
    steps: [run("A program that only makes copies of itself. The process limit stops it from growing, the time limit ends it.", "python3 -c 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass'", 3)],
    sum: () => "It was killed. The sandbox met its limit of processes and the machine did not notice: a new command works at once.",
  },
  {
    words: /memory|ram/i,
    steps: [run("I will ask for more memory than there is.", "python3 -c 'held = [bytearray(8 << 20) for _ in range(1000)]; print(len(held))'", 10)],
    sum: (results) => `The kernel ended it: ${last(results).split("\n")[0]}.`,
  },
  {
    words: /disk|fill/i,
    steps: [run("I will write until the disk is full.", "dd if=/dev/zero of=big bs=1M count=10000; ls -lh big", 20)],
    sum: () => "The disk of the sandbox has an end, and programs are told so. A new sandbox has an empty one.",
  },
  {
    words: /for ?ever|timeout|time ?out|hang|sleep/i,
    steps: [run("This will not end by itself, so I give it two seconds.", "echo started; sleep 600", 2)],
    sum: (results) => (/timed out/.test(last(results)) ? "It was still running after two seconds and was killed." : "It has ended."),
  },
  {
    words: /count|slow|stream/i,
    steps: [run("I will count slowly.", "for i in 1 2 3 4 5 6 7 8; do echo tick $i; sleep 0.25; done")],
    sum: () => "Done counting.",
  },
  {
    words: /error|fail/i,
    steps: [run("I will look for a file that is not there.", "cat /workspace/missing.txt")],
    sum: (results) => `It failed as it should: ${last(results).split("\n")[0]}.`,
  },
  {
    words: /script ?tag|html|markup/i,
    steps: [run("Here is <b>markup</b>: it must be shown, not obeyed.", "echo '<img src=x onerror=alert(1)><script>document.title=\"taken\"</script>'")],
    sum: () => "<i>Nothing</i> of it was obeyed.",
  },
];

const kOtherwise: Scene = {
  words: /./,
  steps: [run("I will look around first.", "whoami; uname -sr; pwd; ls -la; python3 --version")],
  sum: () => "This is a sandbox of its own: no network, a read-only root, and /workspace to write in. Ask me for primes, a download, a clean-up, a fork bomb …",
};

const isText = (message: Message): message is Message & { role: "user" } => message.role === "user" && !message.content.startsWith("[");

/** What is said next in this conversation; undefined: this endpoint "fails". */
export function next(messages: Message[]): Step | undefined {
  const from = messages.findLastIndex(isText);
  const prompt = messages[from]?.content ?? "";
  const scene = kScenes.find(({ words }) => words.test(prompt)) ?? kOtherwise;
  if (scene.fails) return undefined;
  const results = messages.slice(from + 1).flatMap((message) => (message.role === "tool" ? [message.content] : []));
  if (scene.forever) return scene.steps[0];
  if (results.length < scene.steps.length && !refused(results)) return scene.steps[results.length];
  return { say: scene.sum(results) };
}

/** The step as chunks of a stream, text and arguments in small pieces. */
export function* chunks(step: Step, turn: number): Generator<unknown> {
  yield { role: "assistant", content: "" };
  for (const piece of (step.say ?? "").match(/\S+\s*/g) ?? []) yield { content: piece };
  if (!step.tool) return;
  const text = JSON.stringify(step.tool.arguments);
  yield { tool_calls: [{ index: 0, id: `call_${turn}`, type: "function", function: { name: step.tool.name, arguments: "" } }] };
  for (let at = 0; at < text.length; at += 16) yield { tool_calls: [{ index: 0, function: { arguments: text.slice(at, at + 16) } }] };
}

async function answer(request: IncomingMessage, response: ServerResponse, pieceMs: number): Promise<void> {
  let text = "";
  for await (const bytes of request) {
    text += String(bytes);
    if (text.length > 1_000_000) return void response.writeHead(413).end();
  }
  if (request.method !== "POST" || !request.url?.endsWith("/chat/completions")) return void response.writeHead(404).end();
  const { messages } = JSON.parse(text) as { messages: Message[] };
  const step = next(messages);
  if (!step) return void response.writeHead(503, { "Content-Type": "application/json" }).end('{"error":{"message":"the scripted model plays an outage"}}');
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  for (const delta of chunks(step, messages.length)) {
    response.write(`data: ${JSON.stringify({ object: "chat.completion.chunk", choices: [{ index: 0, delta }] })}\n\n`);
    await new Promise((resolve) => setTimeout(resolve, pieceMs));
    if (response.destroyed) return;
  }
  const reason = step.tool ? "tool_calls" : "stop";
  response.end(`data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: reason }] })}\n\ndata: [DONE]\n\n`);
}

/** Listens on loopback; `port` 0 takes a free one. */
export function startStandIn(port = 0, pieceMs = 12): Promise<{ url: string; server: Server }> {
  const server = createServer((request, response) => {
    answer(request, response, pieceMs).catch(() => response.destroy());
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve({ url: `http://127.0.0.1:${(server.address() as { port: number }).port}/v1`, server }));
  });
}
