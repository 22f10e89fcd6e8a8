// What a person is told when something does not work: where, what, and what to do about it.
import type { Problem } from "../shared/events.ts";

export class Failure extends Error {
  readonly where: Problem["where"];
  readonly advice?: string;
  readonly code?: string;
  readonly rule?: string;
  /** The page shows it already. */
  told = false;

  constructor(where: Problem["where"], message: string, advice?: string, code?: string, rule?: string) {
    super(message);
    this.where = where;
    this.advice = advice;
    this.code = code;
    this.rule = rule;
  }

  get problem(): Problem {
    return { where: this.where, message: this.message, ...(this.advice ? { advice: this.advice } : {}), ...(this.code ? { code: this.code } : {}) };
  }
}

/** Any thrown thing as a Failure; one that nobody foresaw is a fault of this server. */
export function asFailure(error: unknown): Failure {
  return error instanceof Failure ? error : new Failure("chat", `The chat server failed: ${(error as Error)?.message ?? error}`, "Its log has more.");
}
