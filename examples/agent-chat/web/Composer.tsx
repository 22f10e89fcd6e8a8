import { useEffect, useRef, type FormEvent, type KeyboardEvent } from "react";

interface Props {
  draft: string;
  onDraft: (text: string) => void;
  onSend: (text: string) => void;
  onStop: () => void;
  busy: boolean;
  disabled: boolean;
}

export function Composer({ draft, onDraft, onSend, onStop, busy, disabled }: Props) {
  const field = useRef<HTMLTextAreaElement>(null);
  const text = draft.trim();

  useEffect(() => {
    if (!busy && !disabled) field.current?.focus({ preventScroll: true });
  }, [busy, disabled]);

  useEffect(() => {
    const area = field.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 180)}px`;
  }, [draft]);

  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (text && !busy && !disabled) onSend(text);
    field.current?.focus();
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      submit();
    }
  };

  return (
    <form className="composer" onSubmit={submit}>
      <label htmlFor="prompt" className="hidden">
        What shall the agent do?
      </label>
      <textarea id="prompt" ref={field} rows={1} maxLength={8000} placeholder="What shall the agent do?" value={draft} onChange={(event) => onDraft(event.target.value)} onKeyDown={key} disabled={disabled} />
      {/* Two keys: a second click on Send must not land on Stop in the same element. */}
      {busy ? (
        <button key="stop" type="button" className="button stop" onClick={onStop}>
          <span className="square" aria-hidden="true" /> Stop
        </button>
      ) : (
        <button key="send" type="submit" className="button primary" disabled={disabled || !text}>
          Send
        </button>
      )}
    </form>
  );
}
