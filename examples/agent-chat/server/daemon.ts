// Starts a daemon when none answers, and stops the one it started.
import { spawn, type ChildProcess } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";

export interface Daemon {
  stop(): Promise<void>;
}

const kStartSeconds = 30;

/** Returns when the daemon answers; `program` is the built opensandbox, if there is one. */
export async function ensureDaemon(healthy: () => Promise<boolean>, program: string | undefined, say: (text: string) => void): Promise<Daemon | undefined> {
  if (await healthy()) return undefined;
  if (!program) {
    say("no daemon answers, and there is no OPENSANDBOX_PROGRAM to start one: the page will say so");
    return undefined;
  }
  say("no daemon answers, starting one");
  const log: string[] = [];
  // Whoever is not root gets the runtime that needs no root (docs/runtimes.md).
  const words = process.getuid?.() === 0 ? ["serve"] : ["serve", "--runtime", "process"];
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"], detached: true });
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (bytes) => keep(log, String(bytes)));
  let failed: string | undefined;
  child.once("error", (error) => (failed = error.message));
  for (const end = Date.now() + kStartSeconds * 1000; Date.now() < end; await wait(50)) {
    if (failed !== undefined || child.exitCode !== null) break;
    if (await healthy()) return { stop: () => stop(child) };
  }
  await stop(child);
  say(`the daemon did not start${failed ? `: ${failed}` : ""}; the page will say so\n${log.join("").trimEnd()}`);
  return undefined;
}

function keep(log: string[], text: string): void {
  log.push(text);
  if (log.length > 50) log.shift();
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await Promise.race([gone, wait(10_000)]);
  if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
}
