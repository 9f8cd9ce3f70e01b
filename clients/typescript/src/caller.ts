/** Requests and answers, with time limits, retries and errors. */

import { failure, RoomloreError, type Language } from "./errors.ts";
import type { Problem } from "./made/schema.ts";
import { eventsOf, linesOf } from "./streams.ts";

export type CallOptions = {
  /** Ends the request; what it throws is the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** How long to wait for the answer, retries included; in a stream, for its next piece. */
  timeoutMs?: number | undefined;
  /** How often to repeat a request that failed and may be repeated. */
  retries?: number | undefined;
};

export type ClientOptions = Pick<CallOptions, "timeoutMs" | "retries"> & {
  /** `http://127.0.0.1:8765` if left out. */
  url?: string | undefined;
  apiKey?: string | undefined;
  /** The language of errors; English if left out. */
  language?: Language | undefined;
  /** In place of the global `fetch`. */
  fetch?: typeof fetch | undefined;
};

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
type Wanted = { method: Method; path: string; url: URL; body: string | undefined; retries: number; deadline: Deadline };

const TIMEOUT_MS = 60_000;
const LONGEST_MS = 2 ** 31 - 1;
const RETRIES = 2;
const FIRST_PAUSE_MS = 200;
/** Those of POST that change nothing the second time: messages and facts are known by their ids. */
const REPEATABLE = new Set(["/messages", "/facts", "/context", "/recall"]);

export abstract class Caller {
  readonly #url: string;
  readonly #options: ClientOptions;
  readonly #language: Language;

  constructor(options: ClientOptions = {}) {
    this.#url = new URL(options.url ?? "http://127.0.0.1:8765").href.replace(/\/+$/, "");
    // The error of fetch would tell the key.
    if (/[^\x20-\x7e]/.test(options.apiKey ?? "")) throw new TypeError("apiKey has a character that no key has");
    this.#options = options;
    this.#language = options.language ?? "en";
  }

  /** Return an answer. `query`: the names of what goes into the query; the rest is the body. Without it all goes into
   * the query. `whole`: the argument that is the body. */
  protected async call<Answer>(
    given: object,
    options: CallOptions | undefined,
    method: Method,
    path: string,
    query?: readonly string[],
    whole?: string,
  ): Promise<Answer> {
    const wanted = this.#wanted(given, options, method, path, query, whole);
    try {
      return await this.#answer(wanted, async (response) => this.#read<Answer>(response, await response.text()));
    } finally {
      wanted.deadline.end();
    }
  }

  /** Yield the events of a reply; the event `error` is thrown. */
  protected async *events<Item>(...request: Parameters<Caller["call"]>): AsyncGenerator<Item, void> {
    const wanted = this.#wanted(...request);
    for await (const { event, data } of eventsOf(this.#lines(wanted))) {
      if (event === "error") throw new RoomloreError(JSON.parse(data) as Problem);
      yield { event, data: JSON.parse(data) } as Item;
      if (event === "done") return;
    }
    throw failure("broken-off", this.#url, "no last event", this.#language);
  }

  /** Yield the objects of JSON lines. */
  protected async *items<Item>(...request: Parameters<Caller["call"]>): AsyncGenerator<Item, void> {
    for await (const line of this.#lines(this.#wanted(...request))) if (line) yield JSON.parse(line) as Item;
  }

  async *#lines(wanted: Wanted): AsyncGenerator<string, void> {
    const { deadline } = wanted;
    try {
      const { headers, body, status } = await this.#answer(wanted, (response) => Promise.resolve(response));
      const kind = headers.get("Content-Type") ?? "";
      if (body === null || !/^(text\/event-stream|application\/x-ndjson)\b/.test(kind)) {
        throw failure("unreadable-answer", this.#url, kind, this.#language, status);
      }
      yield* linesOf(body, deadline);
    } catch (error) {
      throw error instanceof RoomloreError ? error : this.#failure(error, deadline, "broken-off");
    } finally {
      deadline.end();
    }
  }

  #wanted(...[given, options = {}, method, path, query, whole]: Parameters<Caller["call"]>): Wanted {
    const { timeoutMs = this.#options.timeoutMs ?? TIMEOUT_MS, retries = this.#options.retries ?? RETRIES } = options;
    const left: Record<string, unknown> = { ...given };
    const asked: [string, unknown][] = [];
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const { [name]: value } = left;
      delete left[name];
      if (value === undefined || value === null) throw new TypeError(`${name} is needed`);
      // What clients and proxies would change in a path goes into the query.
      if (!/^\.{0,2}$|[/\\]/.test(String(value))) return encodeURIComponent(String(value));
      asked.push([name, value]);
      return "-";
    });
    for (const name of query ?? Object.keys(left)) {
      asked.push([name, left[name]]);
      delete left[name];
    }
    const url = new URL(this.#url + filled);
    for (const [name, value] of asked.flatMap(([name, values]) => [values].flat().map((value) => [name, value] as const))) {
      if (value !== undefined && value !== null) url.searchParams.append(name, String(value));
    }
    const body = query === undefined ? undefined : JSON.stringify(whole === undefined ? left : left[whole]);
    return { method, path, url, body, retries, deadline: new Deadline(timeoutMs, options.signal) };
  }

  /** Return what `take` makes of the answer. Repeat what may be repeated. */
  async #answer<Taken>(wanted: Wanted, take: (response: Response) => Promise<Taken>): Promise<Taken> {
    for (let tries = 0; ; tries++) {
      try {
        return await take(await this.#fetch(wanted));
      } catch (error) {
        const failed = error instanceof RoomloreError ? error : this.#failure(error, wanted.deadline, "unreachable");
        const pause = failed.retryAfter === undefined ? FIRST_PAUSE_MS * 2 ** tries : failed.retryAfter * 1000;
        if (tries >= wanted.retries || !repeatable(wanted, failed) || pause >= wanted.deadline.left) throw failed;
        await wanted.deadline.pause(pause * (1 + Math.random() / 4));
      }
    }
  }

  async #fetch({ method, url, body, deadline }: Wanted): Promise<Response> {
    const { apiKey, language, fetch: own = fetch } = this.#options;
    const headers: Record<string, string> = {};
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (apiKey) headers["Authorization"] = `Bearer ${apiKey}`;
    if (language) headers["Accept-Language"] = language;
    const response = await own(url, { method, headers, body: body ?? null, signal: deadline.signal });
    if (response.ok) return response;
    const { status } = response;
    const problem = problemOf(await response.text());
    if (problem === null) throw failure("unreadable-answer", this.#url, `HTTP ${status}`, this.#language, status);
    throw new RoomloreError(problem, seconds(response.headers.get("Retry-After")));
  }

  #read<Answer>(response: Response, text: string): Answer {
    if (text === "") return undefined as Answer;
    const kind = response.headers.get("Content-Type") ?? "";
    try {
      if (/^application\/json\b/.test(kind)) return JSON.parse(text) as Answer;
      if (/^text\/plain\b/.test(kind)) return text as Answer;
    } catch {}
    throw failure("unreadable-answer", this.#url, kind, this.#language, response.status);
  }

  /** Return the error of a request that was ended or got no answer. Throw the reason of the caller's signal. */
  #failure(error: unknown, deadline: Deadline, code: "unreachable" | "broken-off"): RoomloreError {
    deadline.outer?.throwIfAborted();
    return deadline.isOver
      ? failure("timeout", this.#url, String(deadline.ms), this.#language)
      : failure(code, this.#url, error, this.#language);
  }
}

/** The time in which something has to happen, and the signal of the caller. */
class Deadline {
  readonly ms: number;
  readonly outer: AbortSignal | undefined;
  readonly signal: AbortSignal;
  readonly #own = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #until = 0;

  constructor(ms: number, outer: AbortSignal | undefined) {
    this.ms = Math.min(ms, LONGEST_MS);
    this.outer = outer;
    this.signal = outer === undefined ? this.#own.signal : AbortSignal.any([outer, this.#own.signal]);
    this.begin();
  }

  get left(): number {
    return this.#until - Date.now();
  }

  get isOver(): boolean {
    return this.#own.signal.aborted;
  }

  begin(): void {
    clearTimeout(this.#timer);
    this.#until = Date.now() + this.ms;
    this.#timer = setTimeout(() => this.#own.abort(), this.ms);
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  async pause(ms: number): Promise<void> {
    await new Promise<void>((done) => {
      const timer = setTimeout(done, ms);
      const end = (): void => (clearTimeout(timer), done());
      this.signal.addEventListener("abort", end, { once: true });
    });
  }
}

/** Return true if the request may be sent again: it changes nothing the second time, and the error may pass. */
function repeatable({ method, path }: Wanted, { status, retryAfter }: RoomloreError): boolean {
  const passes = status === 429 ? retryAfter !== undefined : [0, 502, 503, 504].includes(status);
  return passes && (["GET", "PUT", "DELETE"].includes(method) || (method === "POST" && REPEATABLE.has(path)));
}

function problemOf(text: string): Problem | null {
  try {
    const read = JSON.parse(text) as Partial<Problem> | null;
    return typeof read?.type === "string" && typeof read.detail === "string" ? (read as Problem) : null;
  } catch {
    return null;
  }
}

function seconds(header: string | null): number | undefined {
  return header !== null && /^\d+$/.test(header) ? Number(header) : undefined;
}
