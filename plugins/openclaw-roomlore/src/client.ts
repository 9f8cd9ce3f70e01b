/** The HTTP API of `roomlore serve`, as far as the plugin needs it. */

import type { Settings } from "./settings.ts";

export type Message = {
  id: string;
  room_id: string;
  sender_id: string;
  sender_name: string;
  role: "user" | "assistant";
  text: string;
  sent_at: string;
  reply_to?: string;
  turn_id?: string;
};

export type Stored = Message & { arrival: number };

export type Memory = { memory_id: string; scope: string; statement: string };

/** An answer of roomlore that is an error. `status` 0: roomlore could not be reached. */
export class RoomloreError extends Error {
  readonly status: number;

  constructor(status: number, detail: string) {
    super(detail);
    this.status = status;
  }

  /** Return true if the same request may succeed later. */
  get passes(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

type Request = { query?: Record<string, string | number>; body?: unknown; signal?: AbortSignal };

export class Client {
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  add(messages: readonly Message[], signal?: AbortSignal): Promise<{ added: string[]; conflicts: string[] }> {
    return this.#call("POST", "/messages", { query: { on_conflict: "report" }, body: { messages }, signal });
  }

  edit(roomId: string, messageId: string, text: string): Promise<unknown> {
    return this.#call("PATCH", `/messages/${part(roomId)}/${part(messageId)}`, { query: viewing(roomId), body: { text } });
  }

  message(roomId: string, messageId: string): Promise<{ message: Stored }> {
    return this.#call("GET", `/messages/${part(roomId)}/${part(messageId)}`, { query: viewing(roomId) });
  }

  deleteMessage(roomId: string, messageId: string): Promise<unknown> {
    return this.#call("DELETE", `/messages/${part(roomId)}/${part(messageId)}`, { query: viewing(roomId) });
  }

  context(
    roomId: string,
    messageId: string,
    maxTokens: number,
    signal?: AbortSignal,
  ): Promise<{ messages: { message: Stored }[] }> {
    const body = { room_id: roomId, message_id: messageId, max_tokens: maxTokens };
    return this.#call("POST", "/context", { query: viewing(roomId), body, signal });
  }

  recall(
    roomId: string,
    scopes: readonly string[],
    messages: readonly { role: string; text: string }[],
    maxTokens: number,
    signal?: AbortSignal,
  ): Promise<{ text: string; facts: { memory: Memory }[] }> {
    const body = { scopes, messages, max_tokens: maxTokens };
    return this.#call("POST", "/recall", { query: viewing(roomId), body, signal });
  }

  search(roomId: string, query: string, limit: number): Promise<{ hits: { message: Stored }[] }> {
    return this.#call("GET", "/messages/search", { query: { q: query, limit, ...viewing(roomId) } });
  }

  fact(roomId: string, memoryId: string): Promise<Memory> {
    return this.#call("GET", `/facts/${part(memoryId)}`, { query: viewing(roomId) });
  }

  deleteFact(roomId: string, memoryId: string, reason: string): Promise<unknown> {
    return this.#call("DELETE", `/facts/${part(memoryId)}`, { query: { reason, ...viewing(roomId) } });
  }

  /** Return the arrival of the last message before the last reset of the room, 0 without one. */
  async resetAt(roomId: string, signal?: AbortSignal): Promise<number> {
    type Made = { checkpoints: { kind: string; covers_arrival: number }[] };
    const path = `/sessions/${part(roomId)}/checkpoints`;
    const made = await absent(this.#call<Made>("GET", path, { query: viewing(roomId), signal }));
    return Math.max(0, ...(made?.checkpoints ?? []).filter((one) => one.kind === "reset").map((one) => one.covers_arrival));
  }

  /** Begin anew in a room. One in which nothing was said is left alone. */
  async reset(roomId: string, userId: string): Promise<void> {
    const body = { conversation_id: roomId, user_id: userId };
    const made = await absent(this.#call("POST", "/sessions", { query: viewing(roomId), body }));
    if (made) await this.#call("POST", `/sessions/${part(roomId)}/reset`, { query: viewing(roomId) });
  }

  /** Return the kind of a room as roomlore was told it, "" if it was not. */
  async kind(roomId: string): Promise<string> {
    const path = `/rooms/${part(roomId)}/audience`;
    return (await absent(this.#call<{ kind: string | null }>("GET", path, {})))?.kind ?? "";
  }

  tellAudience(roomId: string, body: { kind?: string; members?: readonly string[] }): Promise<unknown> {
    return this.#call("PATCH", `/rooms/${part(roomId)}/audience`, { body });
  }

  async #call<Answer>(method: string, path: string, request: Request): Promise<Answer> {
    const url = new URL(this.#settings.url + path);
    for (const [name, value] of Object.entries(request.query ?? {})) url.searchParams.set(name, String(value));
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (this.#settings.apiKey) headers["Authorization"] = `Bearer ${this.#settings.apiKey}`;
    const body = request.body === undefined ? undefined : JSON.stringify(request.body);
    const signal = request.signal ?? AbortSignal.timeout(30_000);
    let answer: Response;
    let read: string;
    try {
      answer = await fetch(url, { method, headers, body, signal });
      read = await answer.text();
    } catch (error) {
      throw new RoomloreError(0, `roomlore does not answer at ${this.#settings.url}: ${reason(error)}`);
    }
    if (!answer.ok) throw new RoomloreError(answer.status, detail(read) || `HTTP ${answer.status}`);
    return (read ? JSON.parse(read) : null) as Answer;
  }
}

/** Return what a call gives, null if roomlore has no such thing. */
export async function absent<Answer>(call: Promise<Answer>): Promise<Answer | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof RoomloreError && error.status === 404) return null;
    throw error;
  }
}

export function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

function viewing(roomId: string): { viewer: string } {
  return { viewer: `room:${roomId}` };
}

function part(value: string): string {
  return encodeURIComponent(value);
}

function detail(body: string): string {
  try {
    return String((JSON.parse(body) as { detail?: unknown }).detail ?? "");
  } catch {
    return "";
  }
}
