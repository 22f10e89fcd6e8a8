// The HTTP side: the built page, and the small API it uses. Only this page may call it: the name of the host and the origin are checked, so
// that no other site open in the same browser can drive the agent, also not through a name that points to this address.
import express, { type NextFunction, type Request, type Response } from "express";
import type { Numbered } from "./events.ts";
import type { Chats } from "./chats.ts";
import type { Config } from "./config.ts";
import { asFailure, Failure } from "./failure.ts";

const kPolicy = [
  "default-src 'none'", "script-src 'self'", "style-src 'self'", "font-src 'self'", "img-src 'self'", "connect-src 'self'", "base-uri 'none'",
  "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
].join("; ");

const kBeatMs = 15_000;
const kMostUnsent = 4_000_000; // bytes a page that does not read may keep waiting before it is cut off

const kLoopback = new Set(["localhost", "127.0.0.1", "[::1]"]);

export function makeApp(config: Config, chats: Chats, pageFolder: string): express.Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.use((request, response, next) => guard(config, request, response, next));
  app.use("/api", express.json({ limit: "64kb", strict: true }), (_request, response, next) => {
    response.set("Cache-Control", "no-store");
    next();
  });
  routes(app, config, chats);
  app.use("/api", () => {
    throw new Failure("chat", "There is nothing here", undefined, "CHAT::NO_ROUTE");
  });
  app.use(express.static(pageFolder, { index: "index.html", setHeaders: (response, path) => response.setHeader("Cache-Control", path.includes("/assets/") ? "public, max-age=31536000, immutable" : "no-cache") }));
  app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => fail(error, response));
  return app;
}

function guard(config: Config, request: Request, response: Response, next: NextFunction): void {
  response.set({
    "Content-Security-Policy": kPolicy,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
  });
  const host = request.headers.host ?? "";
  const name = host.replace(/:\d+$/, "");
  const known = kLoopback.has(name) || name === config.host;
  const origin = request.headers.origin;
  const ours = origin === undefined || origin === `http://${host}`;
  if (!known || !ours) return void response.status(403).json({ message: `Requests from ${known ? `the origin ${origin}` : `the host name ${name}`} are not taken` });
  next();
}

function routes(app: express.Express, config: Config, chats: Chats): void {
  const chat = (request: Request) => chats.find(String(request.params.id));

  app.post("/api/chats", (_request, response) => void response.status(201).json({ id: chats.begin().id }));
  app.get("/api/chats/:id/events", (request, response) => stream(chats, String(request.params.id), request, response));

  app.post("/api/chats/:id/messages", (request, response) => {
    const text: unknown = body(request).text;
    if (typeof text !== "string" || text.trim() === "") throw new Failure("chat", "A prompt is needed", undefined, "CHAT::BAD_REQUEST");
    if (text.length > config.bounds.promptCharacters)
      throw new Failure("chat", `The prompt has ${text.length} characters; ${config.bounds.promptCharacters} are allowed`, undefined, "CHAT::BAD_REQUEST");
    chat(request).say(text.trim());
    response.status(202).json({});
  });

  app.post("/api/chats/:id/stop", async (request, response) => {
    await chat(request).stop();
    response.json({});
  });

  app.post("/api/chats/:id/sandbox", async (request, response) => {
    await chat(request).renew();
    response.json({});
  });

  app.post("/api/chats/:id/questions/:question", async (request, response) => {
    const answer: unknown = body(request).answer;
    if (answer !== "allow" && answer !== "deny") throw new Failure("chat", "The answer is allow or deny", undefined, "CHAT::BAD_REQUEST");
    await chat(request).decide(String(request.params.question), answer === "allow");
    response.json({});
  });

  // A page that goes away says so with a beacon, which is a POST.
  app.post("/api/chats/:id/close", async (request, response) => {
    await chats.end(String(request.params.id), "The page was closed.");
    response.status(204).end();
  });
}

function body(request: Request): Record<string, unknown> {
  return (request.body ?? {}) as Record<string, unknown>;
}

/** The events of a chat, from the one behind Last-Event-ID on. */
function stream(chats: Chats, id: string, request: Request, response: Response): void {
  const chat = chats.find(id);
  response.set({ "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no" });
  response.flushHeaders();
  const send = ({ id: number, event }: Numbered) => {
    if (response.writableLength > kMostUnsent) return void response.destroy();
    response.write(`${number ? `id: ${number}\n` : ""}data: ${JSON.stringify(event)}\n\n`);
    if (event.type === "closed") response.end();
  };
  const after = Number(request.headers["last-event-id"] ?? 0);
  for (const numbered of chat.log.since(Number.isSafeInteger(after) ? after : 0)) send(numbered);
  send({ id: 0, event: chat.now });
  const leave = chat.log.read(send);
  const beat = setInterval(() => response.write(": still here\n\n"), kBeatMs);
  response.on("error", () => undefined); // a page that went away while it was written to
  response.on("close", () => {
    clearInterval(beat);
    leave();
  });
}

const kStatus: Record<string, number> = { "CHAT::GONE": 404, "CHAT::NO_ROUTE": 404, "CHAT::TOO_MANY": 429, "CHAT::BAD_REQUEST": 400 };

function fail(error: unknown, response: Response): void {
  const status = (error as { status?: number }).status;
  const failure = status ? new Failure("chat", (error as Error).message) : asFailure(error);
  if (!(error instanceof Failure) && !status) console.error(error);
  if (response.headersSent) return void response.end();
  response.status(status ?? kStatus[failure.code ?? ""] ?? 409).json(failure.problem);
}
