/** Writes to roomlore, in the order in which they were heard. Nobody waits for them; an outage is waited out. */

import { reason, RoomloreError, type Client } from "./client.ts";
import type { Heard, Logger } from "./heard.ts";
import type { Audience } from "./settings.ts";

const KEPT = 10_000;
const BATCH = 100;
const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 15_000;

type Work = { heard: Heard } | { run: () => Promise<unknown> };

export class Queue {
  readonly #client: Client;
  readonly #log: Logger;
  readonly #rooms: Readonly<Record<string, Audience>>;
  readonly #told = new Set<string>();
  readonly #closing = new AbortController();
  #waiting: Work[] = [];
  #working: Promise<void> | null = null;

  constructor(client: Client, rooms: Readonly<Record<string, Audience>>, log: Logger) {
    this.#client = client;
    this.#rooms = rooms;
    this.#log = log;
  }

  store(heard: Heard): void {
    this.#put({ heard });
  }

  /** Do something after everything that was heard before. */
  then(run: () => Promise<unknown>): void {
    this.#put({ run });
  }

  /** Wait until everything heard so far is stored. Throw if the signal ends first. */
  async settled(signal?: AbortSignal): Promise<void> {
    if (this.#working === null) return;
    signal?.throwIfAborted();
    await new Promise<void>((done, fail) => {
      signal?.addEventListener("abort", () => fail(signal.reason as Error), { once: true });
      void this.#working?.then(done);
    });
  }

  /** Store what waits, for at most that long, and end. */
  async close(ms: number): Promise<void> {
    await this.settled(AbortSignal.timeout(ms)).catch(() => {
      this.#log.error(`roomlore: ${this.#waiting.length} messages are lost, as roomlore cannot be reached`);
    });
    this.#closing.abort();
  }

  #put(work: Work): void {
    if (this.#waiting.length >= KEPT) {
      this.#waiting.shift();
      this.#log.error(`roomlore: more than ${KEPT} messages wait for roomlore; the oldest one is lost`);
    }
    this.#waiting.push(work);
    this.#working ??= this.#work().finally(() => {
      this.#working = null;
    });
  }

  async #work(): Promise<void> {
    for (let wait = FIRST_WAIT_MS; this.#waiting.length > 0 && !this.#closing.signal.aborted; ) {
      const taken = this.#take();
      try {
        await this.#do(taken);
        wait = FIRST_WAIT_MS;
      } catch (error) {
        if (!(error instanceof RoomloreError && error.passes)) {
          this.#log.warn(`roomlore: something is not stored: ${reason(error)}`);
          continue;
        }
        this.#waiting.unshift(...taken);
        this.#log.warn(`roomlore: ${reason(error)}; tried again in ${wait / 1000} s`);
        await new Promise((done) => setTimeout(done, wait).unref());
        wait = Math.min(wait * 3, LONGEST_WAIT_MS);
      }
    }
  }

  /** Take what can be done with one request: messages in a row, or one other thing. */
  #take(): Work[] {
    const other = this.#waiting.findIndex((work) => !("heard" in work) || work.heard.edited);
    const messages = other < 0 ? this.#waiting.length : other;
    return this.#waiting.splice(0, Math.max(1, Math.min(messages, BATCH)));
  }

  async #do(taken: Work[]): Promise<void> {
    const [first] = taken;
    if (first !== undefined && "run" in first) return void (await first.run());
    const heard = taken.flatMap((work) => ("heard" in work ? [work.heard] : []));
    for (const one of heard) await this.#tell(one);
    if (heard.length === 1 && heard[0]?.edited) return await this.#edit(heard[0]);
    try {
      await this.#client.add(heard.map((one) => one.message));
    } catch (error) {
      if (heard.length === 1 || !(error instanceof RoomloreError) || error.passes) throw error;
      // One that cannot be stored must not take others with it.
      for (const one of heard) {
        await this.#client.add([one.message]).catch((refused: unknown) => {
          if (refused instanceof RoomloreError && refused.passes) throw refused;
          this.#log.warn(`roomlore: a message is not stored: ${reason(refused)}`);
        });
      }
    }
  }

  async #edit(heard: Heard): Promise<void> {
    const { conflicts } = await this.#client.add([heard.message]);
    if (conflicts.length > 0) await this.#client.edit(heard.message.room_id, heard.message.id, heard.message.text);
  }

  /** Tell roomlore who can see a room, once: what the settings say, else what its messages show, which may be a later
   * one than the first. */
  async #tell(heard: Heard): Promise<void> {
    const room = heard.message.room_id;
    const set = this.#rooms[room];
    if (this.#told.has(room) || (set === undefined && !heard.kind)) return;
    try {
      if (set !== undefined) await this.#client.tellAudience(room, set);
      else if (!(await this.#client.kind(room))) await this.#client.tellAudience(room, { kind: heard.kind });
    } catch (error) {
      if (error instanceof RoomloreError && error.passes) throw error;
      // Without the scope `admin`. The room then counts as private, with people in it whom nobody knows.
      this.#log.warn(`roomlore: who can see ${room} is not told, so that it is shown less: ${reason(error)}`);
    }
    this.#told.add(room);
  }
}
