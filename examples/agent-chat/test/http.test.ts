// The HTTP side: who may call, what is sent along, and that a page that leaves takes its sandbox with it.
import assert from "node:assert/strict";
import { createServer, request, type Server } from "node:http";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { makeApp } from "../server/app.ts";
import { Chats } from "../server/chats.ts";
import { FakeSandboxes, testConfig } from "./fake.ts";

const sandboxes = new FakeSandboxes();
const config = testConfig({ CHAT_MAX_CHATS: "2", CHAT_AWAY_SECONDS: "1" });
let chats: Chats;
let server: Server;
let port: number;

before(async () => {
  chats = new Chats(config, { url: "http://127.0.0.1:9/v1", name: "none", connectSeconds: 1 }, sandboxes);
  server = createServer(makeApp(config, chats, new URL("../public", import.meta.url).pathname));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as { port: number }).port;
});
after(async () => {
  await chats.close();
  server.closeAllConnections();
  server.close();
});

interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

function call(method: string, path: string, headers: Record<string, string> = {}, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, method, path, headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers } }, (response) => {
      let text = "";
      response.on("data", (bytes) => (text += String(bytes)));
      response.on("end", () => resolve({ status: response.statusCode!, headers: response.headers, body: text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

test("another origin, and another name for this address, are refused; the page itself is not", async () => {
  assert.equal((await call("POST", "/api/chats", { Origin: "https://evil.example" }, "{}")).status, 403);
  assert.equal((await call("POST", "/api/chats", { Origin: "null" }, "{}")).status, 403);
  assert.equal((await call("GET", "/icon.svg", { Host: `evil.example:${port}` })).status, 403);
  const good = await call("GET", "/icon.svg", { Host: `localhost:${port}`, Origin: `http://localhost:${port}` });
  assert.equal(good.status, 200);
  assert.match(String(good.headers["content-security-policy"]), /default-src 'none'.*script-src 'self'/);
  assert.equal(sandboxes.made.length, 0);
});

test("bad requests are answered with what is wrong, and leave nothing", async () => {
  assert.equal((await call("POST", "/api/chats/none/messages", {}, '{"text":"hi"}')).status, 404);
  assert.equal((await call("GET", "/api/nothing")).status, 404);
  const { id } = JSON.parse((await call("POST", "/api/chats", {}, "{}")).body) as { id: string };
  assert.equal((await call("POST", `/api/chats/${id}/messages`, {}, "{")).status, 400);
  assert.equal((await call("POST", `/api/chats/${id}/messages`, {}, '{"text":""}')).status, 400);
  assert.equal((await call("POST", `/api/chats/${id}/messages`, {}, JSON.stringify({ text: "x".repeat(8001) }))).status, 400);
  assert.equal((await call("POST", `/api/chats/${id}/messages`, {}, JSON.stringify({ text: "x".repeat(100_000) }))).status, 413);
  assert.equal((await call("POST", `/api/chats/${id}/questions/q`, {}, '{"answer":"maybe"}')).status, 400);
  assert.equal((await call("POST", `/api/chats/${id}/questions/q`, {}, '{"answer":"allow"}')).status, 409);
  assert.equal((await call("POST", `/api/chats/${id}/close`)).status, 204);
  assert.ok(sandboxes.made.every(({ destroyed }) => destroyed));
});

test("only so many chats at once; one whose page never came or went away ends by itself", async () => {
  for (let i = 0; i < 2; i++) assert.equal((await call("POST", "/api/chats", {}, "{}")).status, 201);
  const refused = await call("POST", "/api/chats", {}, "{}");
  assert.equal(refused.status, 429);
  assert.match(refused.body, /CHAT_MAX_CHATS/);
  const end = Date.now() + 8000;
  while (!sandboxes.made.every(({ destroyed }) => destroyed) && Date.now() < end) await wait(50);
  assert.ok(sandboxes.made.every(({ destroyed }) => destroyed));
});
