// The chats of this server, at most so many at once. A chat whose page is gone, or where nothing is asked, ends, and its sandbox with it.
import { Chat } from "./chat.ts";
import type { Config } from "./config.ts";
import { Failure } from "./failure.ts";
import type { Model } from "./llm.ts";
import type { Sandboxes } from "./sandbox.ts";

export class Chats {
  private readonly open = new Map<string, Chat>();
  private readonly seen = new Map<string, number>();
  private readonly ending = new Set<Promise<void>>();
  private readonly sweeping: NodeJS.Timeout;
  private readonly config: Config;
  private readonly model: Model;
  private readonly sandboxes: Sandboxes;
  private shut = false;

  constructor(config: Config, model: Model, sandboxes: Sandboxes) {
    this.config = config;
    this.model = model;
    this.sandboxes = sandboxes;
    this.sweeping = setInterval(() => this.sweep(Date.now()), 1000);
  }

  /** A new chat; its sandbox is on its way. */
  begin(): Chat {
    if (this.shut) throw new Failure("chat", "The server is stopping");
    if (this.open.size >= this.config.bounds.chats)
      throw new Failure("chat", `${this.open.size} chats are open, more are not allowed`, "Close another page, or raise CHAT_MAX_CHATS.", "CHAT::TOO_MANY");
    const chat = new Chat(this.config, this.model, this.sandboxes);
    this.open.set(chat.id, chat);
    this.seen.set(chat.id, Date.now());
    void chat.renew();
    return chat;
  }

  find(id: string): Chat {
    const chat = this.open.get(id);
    if (!chat) throw new Failure("chat", "This chat has ended", "Reload the page to begin another.", "CHAT::GONE");
    return chat;
  }

  async end(id: string, reason: string): Promise<void> {
    const chat = this.open.get(id);
    if (!chat) return;
    this.open.delete(id);
    this.seen.delete(id);
    const done = chat.close(reason).finally(() => this.ending.delete(done));
    this.ending.add(done);
    await done;
  }

  private sweep(now: number): void {
    const { awaySeconds, idleSeconds } = this.config.bounds;
    for (const [id, chat] of this.open) {
      if (chat.log.readerCount > 0) this.seen.set(id, now);
      if (now - (this.seen.get(id) ?? now) > awaySeconds * 1000) void this.end(id, "The page was closed.");
      else if (!chat.busy && now - chat.lastAsked > idleSeconds * 1000) void this.end(id, `Nothing was asked for ${idleSeconds} s.`);
    }
  }

  /** Ends all chats. Returns when their sandboxes are gone. */
  async close(): Promise<void> {
    this.shut = true;
    clearInterval(this.sweeping);
    await Promise.all([...this.open.keys()].map((id) => this.end(id, "The server was stopped.")));
    await Promise.all(this.ending);
  }
}
