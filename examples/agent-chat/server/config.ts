// Everything that can be set, from the environment, with its bounds. A value that makes no sense is an error, not a default.
import { readFileSync } from "node:fs";
import type { Limits, Policy } from "../shared/events.ts";

export interface Config {
  host: string;
  port: number;
  /** The session API of the daemon, and its key where one is needed. Both stay in this process. */
  daemonUrl: string;
  daemonKey?: string;
  /** Where the key of this machine's daemon may lie, when none is given. */
  daemonKeyFiles: string[];
  model: { url?: string; key?: string; name: string; connectSeconds: number };
  image?: string;
  limits: Limits;
  lifetimeSeconds: number;
  policy: Policy;
  bounds: Bounds;
}

/** What one chat may take. Each of these is a number on purpose: none of them can be "unlimited". */
export interface Bounds {
  chats: number;
  promptCharacters: number;
  /** Answers of the model to one prompt. */
  turns: number;
  /** From the prompt to the last answer, waiting for people not counted. */
  seconds: number;
  commandSeconds: number;
  /** Output of one command that goes back to the model, and that the page gets. */
  modelCharacters: number;
  pageCharacters: number;
  /** Text of one chat that is sent to the model. */
  historyCharacters: number;
  /** A chat ends when its page has been away, or nothing was asked, for so long. */
  awaySeconds: number;
  idleSeconds: number;
}

type Environment = Record<string, string | undefined>;

function number(env: Environment, name: string, otherwise: number, least: number, most: number): number {
  const text = env[name];
  if (text === undefined || text === "") return otherwise;
  const value = Number(text);
  if (!Number.isFinite(value) || value < least || value > most) throw new Error(`${name} is "${text}": a number from ${least} to ${most} is needed`);
  return value;
}

function url(env: Environment, name: string): string | undefined {
  const text = env[name];
  if (!text) return undefined;
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) throw new Error(`${name} is "${text}": a http:// or https:// address is needed`);
  return text.replace(/\/+$/, "");
}

export function readConfig(env: Environment, policyFile: string): Config {
  const modelUrl = url(env, "LLM_BASE_URL");
  if (modelUrl && !env.LLM_MODEL) throw new Error("LLM_BASE_URL is set but LLM_MODEL is not: which model shall answer?");
  return {
    host: env.CHAT_HOST || "127.0.0.1",
    port: number(env, "CHAT_PORT", 3000, 0, 65535),
    daemonUrl: url(env, "OPENSANDBOX_URL") ?? "http://127.0.0.1:9111",
    daemonKey: env.OPENSANDBOX_API_KEY || undefined,
    daemonKeyFiles: env.OPENSANDBOX_API_KEY_FILE ? [env.OPENSANDBOX_API_KEY_FILE] : ["/var/lib/opensandbox/api-key", `${env.XDG_STATE_HOME || `${env.HOME}/.local/state`}/opensandbox/api-key`],
    model: {
      url: modelUrl,
      key: env.LLM_API_KEY || undefined,
      name: modelUrl ? env.LLM_MODEL! : "scripted",
      connectSeconds: number(env, "LLM_TIMEOUT_SECONDS", 60, 1, 600),
    },
    image: env.CHAT_IMAGE || undefined,
    limits: {
      memory_mb: number(env, "CHAT_MEMORY_MB", 256, 16, 65536),
      cpu_cores: number(env, "CHAT_CPU_CORES", 1, 0.01, 64),
      disk_mb: number(env, "CHAT_DISK_MB", 64, 1, 65536),
      pids: number(env, "CHAT_PIDS", 64, 8, 4096),
    },
    lifetimeSeconds: number(env, "CHAT_LIFETIME_SECONDS", 900, 10, 86400),
    policy: JSON.parse(readFileSync(env.CHAT_POLICY || policyFile, "utf8")) as Policy,
    bounds: {
      chats: number(env, "CHAT_MAX_CHATS", 8, 1, 200),
      promptCharacters: 8000,
      turns: number(env, "CHAT_MAX_TURNS", 8, 1, 50),
      seconds: number(env, "CHAT_MAX_SECONDS", 180, 1, 3600),
      commandSeconds: number(env, "CHAT_COMMAND_SECONDS", 30, 1, 600),
      modelCharacters: 6000,
      pageCharacters: 60_000,
      historyCharacters: 60_000,
      awaySeconds: number(env, "CHAT_AWAY_SECONDS", 20, 1, 3600),
      idleSeconds: number(env, "CHAT_IDLE_SECONDS", 900, 5, 86400),
    },
  };
}
