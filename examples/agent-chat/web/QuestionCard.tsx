import { useEffect, useState } from "react";
import type { Question } from "../shared/events.ts";
import { clock } from "./text.ts";
import { useNow } from "./useNow.ts";

/** A command that waits for a person, and for how long. */
export function QuestionCard({ question, onAnswer }: { question: Question & { at: number }; onAnswer: (question: string, allow: boolean) => Promise<boolean> }) {
  const now = useNow(500);
  const [total] = useState(question.left_ms);
  const [answered, setAnswered] = useState(false);
  useEffect(() => setAnswered(false), [question.id]);
  const left = Math.max(0, question.left_ms - (now - question.at));
  const answer = async (allow: boolean) => {
    setAnswered(true);
    setAnswered(await onAnswer(question.id, allow)); // one that was not taken can be given again
  };
  return (
    <div className="question" role="group" aria-labelledby={`q-${question.id}`}>
      <div className="words">
        <p id={`q-${question.id}`}>
          <strong>May the agent run this?</strong>
        </p>
        <p>
          Rule <code>{question.rule}</code>
          {question.reason && <>: {question.reason}</>}
        </p>
      </div>
      <div className="choice">
        <span className="left" role="timer" aria-label="Time left to answer">
          {clock(left)}
        </span>
        <button type="button" className="button deny" disabled={answered || left === 0} onClick={() => void answer(false)}>
          Deny
        </button>
        <button type="button" className="button primary" disabled={answered || left === 0} onClick={() => void answer(true)}>
          Allow
        </button>
      </div>
      <div className="fuse" aria-hidden="true" style={{ transform: `scaleX(${total > 0 ? left / total : 0})` }} />
    </div>
  );
}
