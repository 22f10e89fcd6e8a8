// One call of an OpenAI-compatible chat completions endpoint, streamed: text as it comes, tool calls when they are whole.
import { Failure } from "./failure.ts";

export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

export type Message =
  | { role: "system" | "user"; content: string }
  | { role: "assistant"; content: string; tool_calls?: WireCall[] }
  | { role: "tool"; tool_call_id: string; content: string };

export interface WireCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

export interface Model {
  url: string;
  key?: string;
  name: string;
  connectSeconds: number;
}

export type Piece = { text: string } | { calls: ToolCall[] };

interface Delta {
  choices?: { delta?: { content?: string | null; tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[] } }[];
  error?: { message?: string };
}

const kMostCalls = 8;
const kMostCharacters = 200_000; // of one answer, text and arguments together
const kMostLine = 1_000_000;

/** Text pieces as they arrive; at the end, where the model wants tools, one piece with the calls. */
export async function* ask(model: Model, messages: Message[], tools: unknown[], signal: AbortSignal): AsyncGenerator<Piece> {
  const response = await connect(model, messages, tools, signal);
  const calls: ToolCall[] = [];
  let characters = 0;
  for await (const line of lines(response, model, signal)) {
    if (!line.startsWith("data:")) continue;
    const data = line.slice(5).trim();
    if (data === "[DONE]") break;
    const delta = parse(data, model);
    if (delta.error) throw new Failure("model", `The model stopped: ${shorten(delta.error.message ?? "no reason given")}`);
    const change = delta.choices?.[0]?.delta;
    if (change?.content) {
      characters += change.content.length;
      yield { text: change.content };
    }
    for (const part of change?.tool_calls ?? []) characters += collect(calls, part);
    if (characters > kMostCharacters) throw new Failure("model", "The model's answer is too long", "Ask for less at once.");
  }
  if (calls.length > 0) yield { calls: calls.filter((call) => call.name !== "") };
}

async function connect(model: Model, messages: Message[], tools: unknown[], signal: AbortSignal): Promise<Response> {
  const patience = AbortSignal.timeout(model.connectSeconds * 1000);
  let response: Response;
  try {
    response = await fetch(`${model.url}/chat/completions`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...(model.key ? { Authorization: `Bearer ${model.key}` } : {}) },
      body: JSON.stringify({ model: model.name, messages, tools, stream: true }),
      signal: AbortSignal.any([signal, patience]),
      redirect: "error", // the key goes to the address that was configured and nowhere else
    });
  } catch (error) {
    signal.throwIfAborted();
    throw unreachable(model, patience.aborted ? `no answer within ${model.connectSeconds} s` : causeOf(error));
  }
  if (response.ok && response.body) return response;
  const text = shorten(reasonIn(await response.text().catch(() => "")));
  const advice = response.status === 401 || response.status === 403 ? "Check LLM_API_KEY." : response.status === 404 ? "Check LLM_BASE_URL and LLM_MODEL." : "Try again, or look at the endpoint's log.";
  throw new Failure("model", `The model's endpoint answered ${response.status}${text ? `: ${text}` : ""}`, advice);
}

async function* lines(response: Response, model: Model, signal: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
      const parts = (rest + decoder.decode(bytes, { stream: true })).split(/\r?\n/);
      rest = parts.pop() ?? "";
      if (rest.length > kMostLine) throw new Failure("model", "The model's endpoint sent a line without end");
      yield* parts;
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
    signal.throwIfAborted();
    throw unreachable(model, `the answer broke off: ${causeOf(error)}`);
  }
  if (rest) yield rest;
}

function parse(data: string, model: Model): Delta {
  try {
    return JSON.parse(data) as Delta;
  } catch {
    throw unreachable(model, "it does not speak the chat completions protocol");
  }
}

function collect(calls: ToolCall[], part: { index?: number; id?: string; function?: { name?: string; arguments?: string } }): number {
  const index = part.index ?? (part.id ? calls.length : calls.length - 1);
  if (!Number.isInteger(index) || index < 0 || index >= kMostCalls) throw new Failure("model", `The model asked for more than ${kMostCalls} tools at once`);
  while (calls.length <= index) calls.push({ id: `call_${calls.length}`, name: "", arguments: "" });
  const call = calls[index]!;
  if (part.id) call.id = part.id;
  call.name += part.function?.name ?? "";
  call.arguments += part.function?.arguments ?? "";
  return part.function?.arguments?.length ?? 0;
}

function unreachable(model: Model, why: string): Failure {
  return new Failure("model", `The model at ${model.url} cannot be reached: ${why}`, "Check LLM_BASE_URL and that the endpoint runs.");
}

function causeOf(error: unknown): string {
  const cause = (error as { cause?: { code?: string; message?: string } }).cause;
  return cause?.code ?? cause?.message ?? (error as Error).message;
}

/** The message of an error as such endpoints write it, or the whole text. */
function reasonIn(text: string): string {
  try {
    const said = (JSON.parse(text) as { error?: { message?: unknown } }).error?.message;
    return typeof said === "string" ? said : text;
  } catch {
    return text;
  }
}

function shorten(text: string): string {
  const flat = text.replace(/\s+/g, " ").trim();
  return flat.length > 300 ? `${flat.slice(0, 300)}…` : flat;
}
