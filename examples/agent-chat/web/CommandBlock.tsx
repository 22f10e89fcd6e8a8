import { useEffect, useRef } from "react";
import { QuestionCard } from "./QuestionCard.tsx";
import type { CommandItem } from "./state.ts";
import { bytes, duration, plain, visible } from "./text.ts";

const kMet: Record<string, string> = { pids: "process limit met", disk: "disk full" };

/** A command and its output, as a terminal would show them, with how it ended. */
export function CommandBlock({ item, onAnswer }: { item: CommandItem; onAnswer: (question: string, allow: boolean) => Promise<boolean> }) {
  return (
    <section className="command" data-state={item.state} aria-label={item.tool === "write_file" ? `File ${item.command}` : `Command ${item.command}`}>
      <div className="line">
        <span className="prompt" aria-hidden="true">
          {item.tool === "write_file" ? "✎" : "$"}
        </span>
        <code>{visible(item.command)}</code>
        <Badges item={item} />
      </div>
      {item.question && <QuestionCard question={item.question} onAnswer={onAnswer} />}
      <Output item={item} />
      <Ending item={item} />
    </section>
  );
}

function Output({ item }: { item: CommandItem }) {
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [item.output]);
  if (item.output.length === 0) return null;
  return (
    <pre ref={box} tabIndex={0} aria-label="Output">
      {item.output.map((piece, index) => (
        <span key={index} className={piece.stream}>
          {plain(piece.text)}
        </span>
      ))}
    </pre>
  );
}

function Badges({ item }: { item: CommandItem }) {
  return (
    <span className="badges" role="status">
      {item.verdict && item.verdict !== "withdrawn" && <span className={`badge ${item.verdict === "allowed" ? "good" : "bad"}`}>{item.verdict === "allowed" ? "allowed by you" : item.verdict === "denied" ? "denied by you" : "no answer in time"}</span>}
      {item.state === "held" && <span className="badge warn">waits for you</span>}
      {item.state === "running" && <span className="badge live">running</span>}
      {item.state === "refused" && <span className="badge bad">{item.judged ? "refused" : "not run"}</span>}
      {item.end?.met?.map((limit) => (
        <span key={limit} className="badge bad">
          {kMet[limit] ?? `${limit} limit met`}
        </span>
      ))}
      {item.end && <EndBadge item={item} />}
    </span>
  );
}

const kCauses: Record<string, string> = {
  timed_out: "timed out",
  out_of_memory: "out of memory",
  signalled: "killed",
  interrupted: "interrupted",
  session_ended: "sandbox ended",
};

function EndBadge({ item }: { item: CommandItem }) {
  const { cause, exit_code, duration_ms } = item.end!;
  const good = exit_code === 0;
  const text = item.tool === "write_file" ? "written" : cause === "exited" ? `exit ${exit_code}` : `${kCauses[cause] ?? cause} · ${exit_code}`;
  return (
    <>
      <span className={`badge ${good ? "good" : cause === "timed_out" || cause === "interrupted" ? "warn" : "bad"}`}>{text}</span>
      <span className="took">{duration(duration_ms)}</span>
    </>
  );
}

function Ending({ item }: { item: CommandItem }) {
  const { problem, rule, end, cut } = item;
  if (!problem && !end?.advice && cut === 0) return null;
  return (
    <div className={problem ? "ending bad" : "ending"}>
      {rule && (
        <p>
          Rule <code>{rule}</code>
        </p>
      )}
      {problem && <p>{problem.message}</p>}
      {problem?.advice && <p className="advice">{problem.advice}</p>}
      {end?.advice && <p>{end.advice}</p>}
      {cut > 0 && <p>{bytes(cut)} more were written; the page shows the beginning.</p>}
    </div>
  );
}
