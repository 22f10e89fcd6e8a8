// The page: what was said on the left, the sandbox on the right, the prompt below.
import { useEffect, useState } from "react";
import { Composer } from "./Composer.tsx";
import { useChat } from "./connection.ts";
import { SandboxPanel } from "./SandboxPanel.tsx";
import type { State } from "./state.ts";
import { Suggestions } from "./Suggestions.tsx";
import { ThemeButton } from "./ThemeButton.tsx";
import { Transcript } from "./Transcript.tsx";

export function App() {
  const chat = useChat();
  const { state } = chat;
  const [draft, setDraft] = useState("");
  const over = state.closed !== undefined;
  const ready = state.connected && !over;
  useTitle(state);

  const send = async (text: string) => {
    if (await chat.send(text)) setDraft("");
  };

  return (
    <div className="page">
      <header className="top">
        <h1>
          <img src="/icon.svg" alt="" width="26" height="26" />
          Agent chat <span className="house">OpenSandbox</span>
        </h1>
        <span className="model" title={state.scripted ? "No model is configured: a script answers by keywords. Set LLM_BASE_URL and LLM_MODEL." : "The model that answers"}>
          <span className="dot" aria-hidden="true" />
          {state.model === "" ? (over ? "not connected" : "connecting") : state.scripted ? "scripted model" : state.model}
        </span>
        <ThemeButton />
      </header>

      <main className="chat" aria-label="Chat">
        {state.lost && !over && <Banner text="The connection to the chat server is lost. Trying again …" />}
        {over && <Banner text={state.closed!} action="Begin a new chat" onAction={() => location.reload()} />}
        <Transcript items={state.items} busy={state.busy} onAnswer={chat.answer}>
          <Suggestions large disabled={!ready || state.busy} onPick={send} />
        </Transcript>
        <div className="foot">
          {state.items.length > 0 && <Suggestions disabled={!ready || state.busy} onPick={send} />}
          <Composer draft={draft} onDraft={setDraft} onSend={send} onStop={chat.stop} busy={state.busy} disabled={!ready} />
        </div>
      </main>

      <SandboxPanel state={state} onRenew={chat.renew} disabled={!ready} />
    </div>
  );
}

function Banner({ text, action, onAction }: { text: string; action?: string; onAction?: () => void }) {
  return (
    <div className="banner" role="alert">
      <span>{text}</span>
      {action && (
        <button type="button" className="button small" onClick={onAction}>
          {action}
        </button>
      )}
    </div>
  );
}

/** A page in the background says in its tab that a person is asked. */
function useTitle(state: State) {
  const asked = state.items.some((item) => item.kind === "command" && item.state === "held");
  useEffect(() => {
    document.title = `${asked ? "(?) " : state.busy ? "… " : ""}Agent chat · OpenSandbox`;
  }, [asked, state.busy]);
}
