import { useEffect, useRef, type ReactNode } from "react";
import type { Problem } from "../shared/events.ts";
import { CommandBlock } from "./CommandBlock.tsx";
import type { Item } from "./state.ts";

interface Props {
  items: Item[];
  busy: boolean;
  onAnswer: (question: string, allow: boolean) => Promise<boolean>;
  children: ReactNode;
}

export function Transcript({ items, busy, onAnswer, children }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);

  // Follows what is new unless the person scrolled up to read.
  useEffect(() => {
    if (items.length > 0 && follows.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [items]);
  const scrolled = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current!;
    follows.current = scrollHeight - scrollTop - clientHeight < 80;
  };

  return (
    <div className="transcript" ref={box} onScroll={scrolled} tabIndex={0} role="region" aria-label="Conversation">
      <div className="column" role="log" aria-live="polite" aria-relevant="additions">
        {items.length === 0 && (
          <div className="welcome">
            <h2>Give an agent a computer, safely.</h2>
            <p>What it runs goes through a command policy and into a sandbox of its own: no network, a read-only root, limits on everything, gone when you close this page.</p>
            {children}
          </div>
        )}
        {items.map((item) => (
          <One key={item.id} item={item} onAnswer={onAnswer} />
        ))}
        {busy && <Thinking items={items} />}
      </div>
    </div>
  );
}

function One({ item, onAnswer }: { item: Item; onAnswer: Props["onAnswer"] }) {
  switch (item.kind) {
    case "user":
      return (
        <article className="user">
          <h2 className="hidden">You</h2>
          <p>{item.text}</p>
        </article>
      );
    case "say":
      return (
        <article className="say">
          <h2 className="hidden">Agent</h2>
          <p>{item.text}</p>
        </article>
      );
    case "note":
      return <p className="note">{item.text}</p>;
    case "problem":
      return <ProblemCard problem={item.problem} />;
    case "command":
      return <CommandBlock item={item} onAnswer={onAnswer} />;
  }
}

const kWhere: Record<Problem["where"], string> = { sandbox: "Sandbox", model: "Model", chat: "Chat" };

export function ProblemCard({ problem }: { problem: Problem }) {
  return (
    <div className="problem" data-where={problem.where}>
      <span className="tag">{kWhere[problem.where]}</span>
      <div>
        <p>{problem.message}</p>
        {problem.advice && <p className="advice">{problem.advice}</p>}
      </div>
    </div>
  );
}

function Thinking({ items }: { items: Item[] }) {
  const last = items.at(-1);
  if (last?.kind === "command" && last.state !== "ended" && last.state !== "refused") return null;
  return (
    <p className="thinking">
      <span className="hidden">The agent is thinking</span>
      <i aria-hidden="true" />
      <i aria-hidden="true" />
      <i aria-hidden="true" />
    </p>
  );
}
