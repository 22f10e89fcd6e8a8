// The page's line to the server: one chat, its events, and what a person can do.
import { useCallback, useEffect, useReducer, useRef } from "react";
import type { ChatEvent, Problem } from "../shared/events.ts";
import { kBeginning, reduce, type Change, type State } from "./state.ts";

export interface Chat {
  state: State;
  send(text: string): Promise<boolean>;
  stop(): void;
  renew(): void;
  /** Whether the answer was taken. */
  answer(question: string, allow: boolean): Promise<boolean>;
}

const kNoServer: Problem = { where: "chat", message: "The chat server does not answer", advice: "Start it again: ./dev example agent-chat" };

async function post(path: string, body: unknown = {}): Promise<Record<string, unknown>> {
  const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }).catch(() => {
    throw kNoServer;
  });
  const answer = response.status === 204 ? {} : ((await response.json().catch(() => ({}))) as Record<string, unknown>);
  if (!response.ok) throw { where: "chat", message: `The server answered ${response.status}`, ...answer } as Problem;
  return answer;
}

export function useChat(): Chat {
  const [state, dispatch] = useReducer((before: State, change: Change) => reduce(before, change), kBeginning);
  const chat = useRef<string | undefined>(undefined);

  useEffect(() => {
    let source: EventSource | undefined;
    let left = false;
    const leave = () => {
      source?.close();
      if (chat.current) navigator.sendBeacon(`/api/chats/${chat.current}/close`);
      chat.current = undefined;
    };
    const open = (id: string) => {
      chat.current = id;
      if (left) return leave();
      source = new EventSource(`/api/chats/${id}/events`);
      source.onopen = () => dispatch({ type: "connected" });
      source.onmessage = (message) => {
        const event = JSON.parse(message.data as string) as ChatEvent;
        if (event.type === "closed") source?.close();
        dispatch(event);
      };
      source.onerror = () => {
        if (source?.readyState === EventSource.CLOSED) dispatch({ type: "gone", reason: "The chat server was started anew." });
        else dispatch({ type: "lost" });
      };
    };
    post("/api/chats").then(
      ({ id }) => open(String(id)),
      (problem: Problem) => dispatch({ type: "gone", reason: [problem.message, problem.advice].filter(Boolean).join(". ") }),
    );
    window.addEventListener("pagehide", leave);
    return () => {
      left = true;
      window.removeEventListener("pagehide", leave);
      leave();
    };
  }, []);

  const call = useCallback(async (path: string, body?: unknown) => {
    if (!chat.current) return false;
    try {
      await post(`/api/chats/${chat.current}/${path}`, body);
      return true;
    } catch (problem) {
      dispatch({ type: "complain", problem: problem as Problem });
      return false;
    }
  }, []);

  return {
    state,
    send: (text) => call("messages", { text }),
    stop: () => void call("stop"),
    renew: () => void call("sandbox"),
    answer: (question, allow) => call(`questions/${encodeURIComponent(question)}`, { answer: allow ? "allow" : "deny" }),
  };
}
