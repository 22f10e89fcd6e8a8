// The events of one chat: numbered, kept up to a bound, so that a page that lost its connection reads on where it was.
import type { ChatEvent } from "../shared/events.ts";

export interface Numbered {
  id: number;
  event: ChatEvent;
}

const kKeptCharacters = 2_000_000;

export class EventLog {
  private kept: Numbered[] = [];
  private sizes: number[] = [];
  private size = 0;
  private next = 1;
  private readers = new Set<(numbered: Numbered) => void>();

  /** Keeps the event and tells it to every reader. */
  add(event: ChatEvent): void {
    const numbered = { id: this.next++, event };
    const size = JSON.stringify(event).length;
    this.kept.push(numbered);
    this.sizes.push(size);
    this.size += size;
    while (this.size > kKeptCharacters && this.kept.length > 1) {
      this.kept.shift();
      this.size -= this.sizes.shift() ?? 0;
    }
    for (const reader of this.readers) reader(numbered);
  }

  /** Tells an event that is worth nothing later, such as what the sandbox uses now. */
  tell(event: ChatEvent): void {
    for (const reader of this.readers) reader({ id: 0, event });
  }

  /** The events behind number `after`. */
  since(after: number): Numbered[] {
    return this.kept.filter((numbered) => numbered.id > after);
  }

  read(reader: (numbered: Numbered) => void): () => void {
    this.readers.add(reader);
    return () => this.readers.delete(reader);
  }

  get readerCount(): number {
    return this.readers.size;
  }
}
