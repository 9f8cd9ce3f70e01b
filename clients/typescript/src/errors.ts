/** What goes wrong, in the form of the API: problems (RFC 9457). */

import type { Problem } from "./made/schema.ts";

/** An answer of roomlore that is an error, or no answer.
 *
 * `message` says what happened and what to do. `code`: the kind of problem, such as "not-found" or "quota-exceeded"; if
 * no problem of roomlore's came, "unreachable", "timeout", "broken-off" or "unreadable-answer". */
export class RoomloreError extends Error {
  override readonly name = "RoomloreError";
  readonly code: string;
  /** The status of HTTP; 0 if there was no answer. */
  readonly status: number;
  readonly title: string;
  /** The log of the server has the request under this id. */
  readonly requestId: string;
  /** After how many seconds to try again, if roomlore says so. */
  readonly retryAfter: number | undefined;

  constructor(problem: Partial<Problem> & { type: string; detail: string }, retryAfter?: number, cause?: unknown) {
    super(problem.detail, cause === undefined ? undefined : { cause });
    this.code = problem.type.replace(/^urn:roomlore:/, "");
    this.status = problem.status ?? 0;
    this.title = problem.title ?? "";
    this.requestId = problem.request_id ?? "";
    this.retryAfter = retryAfter;
  }

  /** True if the same request may succeed later. */
  get temporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Return what a call gives, null if roomlore has no such thing. */
export async function orNull<Answer>(call: Promise<Answer>): Promise<Answer | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof RoomloreError && error.status === 404) return null;
    throw error;
  }
}

export type Language = "en" | "zh";

const TEXTS = {
  en: {
    unreachable: (url: string, why: string) => `Nothing answers at ${url} (${why}). Is roomlore serve running there?`,
    timeout: (url: string, ms: string) => `No answer of ${url} within ${ms} ms. Try again, or set timeoutMs.`,
    "broken-off": (url: string, why: string) => `The stream of ${url} broke off (${why}). Send the same request again.`,
    "unreadable-answer": (url: string, why: string) => `What answers at ${url} is not roomlore (${why}). Check the url.`,
  },
  zh: {
    unreachable: (url: string, why: string) => `${url} 没有应答（${why}）。请确认 roomlore serve 已在那里启动。`,
    timeout: (url: string, ms: string) => `${url} 在 ${ms} 毫秒内没有应答。请重试，或设置 timeoutMs。`,
    "broken-off": (url: string, why: string) => `${url} 的数据流中断（${why}）。请重新发送同一请求。`,
    "unreadable-answer": (url: string, why: string) => `${url} 应答的不是 roomlore（${why}）。请检查 url。`,
  },
};

/** Return the error of a request that roomlore answered with no problem of its own. */
export function failure(
  code: keyof typeof TEXTS.en,
  url: string,
  why: unknown,
  language: Language,
  status = 0,
): RoomloreError {
  const cause = (why instanceof Error && why.cause) || why;
  // A connection that was refused at several addresses has no message.
  const { message, code: known, name } = cause as { message?: string; code?: string; name?: string };
  const reason = typeof cause === "string" ? cause : message || known || name || String(cause);
  return new RoomloreError({ type: code, detail: TEXTS[language][code](url, reason), status }, undefined, why);
}
