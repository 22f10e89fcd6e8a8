// The program: reads the configuration, sees that there is a daemon and a model, serves the page, and leaves nothing behind.
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { makeApp } from "./app.ts";
import { Chats } from "./chats.ts";
import { readConfig, type Config } from "./config.ts";
import { ensureDaemon } from "./daemon.ts";
import { DaemonSandboxes } from "./daemon_sandbox.ts";
import type { Model } from "./llm.ts";
import { startStandIn } from "./standin.ts";

const home = join(dirname(fileURLToPath(import.meta.url)), "../.."); // this file runs as dist/server/main.js
const kFarewellMs = 1000;
const say = (text: string) => console.error(`agent-chat: ${text}`);

async function modelOf(config: Config): Promise<{ model: Model; close: () => void }> {
  const { url, key, name, connectSeconds } = config.model;
  if (url) return { model: { url, key, name, connectSeconds }, close: () => undefined };
  say("LLM_BASE_URL is not set: a script answers by keywords of the prompt");
  const standIn = await startStandIn();
  return { model: { url: standIn.url, name, connectSeconds }, close: () => standIn.server.closeAllConnections() };
}

async function main(): Promise<void> {
  const config = readConfig(process.env, join(home, "policy.json"));
  const sandboxes = new DaemonSandboxes(config);
  const daemon = await ensureDaemon(() => sandboxes.healthy(), process.env.OPENSANDBOX_PROGRAM, say);
  await sandboxes.findKey();
  const { model, close } = await modelOf(config);
  const chats = new Chats(config, model, sandboxes);
  const server = createServer(makeApp(config, chats, join(home, "dist/page")));
  server.listen(config.port, config.host, () => {
    const { port } = server.address() as { port: number };
    console.log(`http://${config.host === "0.0.0.0" ? "127.0.0.1" : config.host}:${port}/`);
  });
  server.on("error", (error) => {
    say(`cannot listen on ${config.host}:${config.port}: ${error.message}`);
    process.exitCode = 1;
    void end();
  });

  let ending = false;
  const end = async () => {
    if (ending) return;
    ending = true;
    const closed = new Promise((resolve) => server.close(resolve));
    await chats.close();
    server.closeIdleConnections();
    await Promise.race([closed, wait(kFarewellMs)]); // the pages still read why
    server.closeAllConnections();
    close();
    await daemon?.stop();
    process.exit();
  };
  process.on("SIGINT", () => void end());
  process.on("SIGTERM", () => void end());
  process.on("SIGHUP", () => void end());
}

main().catch((error: Error) => {
  say(error.message);
  process.exit(1);
});
