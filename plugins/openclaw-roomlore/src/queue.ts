/** Writes to roomlore, in the order in which they were heard. Nobody waits for them; an outage is waited out. */

import type { Heard, Logger, Message } from "./heard.ts";
import { inRoom, orNull, reason, RoomloreError, type Roomlore } from "./roomlore.ts";
import type { Audience } from "./settings.ts";

const KEPT = 10_000;
const BATCH = 100;
const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 15_000;

type Work = { heard: Heard } | { run: () => Promise<unknown> };

export class Queue {
  readonly #client: Roomlore;
  readonly #log: Logger;
  readonly #rooms: Readonly<Record<string, Audience>>;
  readonly #told = new Set<string>();
  readonly #closing = new AbortController();
  #waiting: Work[] = [];
  #working: Promise<void> | null = null;

  constructor(client: Roomlore, rooms: Readonly<Record<string, Audience>>, log: Logger) {
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
        if (!(error instanceof RoomloreError && error.temporary)) {
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
      await this.#add(heard.map((one) => one.message));
    } catch (error) {
      if (heard.length === 1 || !(error instanceof RoomloreError) || error.temporary) throw error;
      // One that cannot be stored must not take others with it.
      for (const one of heard) {
        await this.#add([one.message]).catch((refused: unknown) => {
          if (refused instanceof RoomloreError && refused.temporary) throw refused;
          this.#log.warn(`roomlore: a message is not stored: ${reason(refused)}`);
        });
      }
    }
  }

  async #edit(heard: Heard): Promise<void> {
    const { conflicts } = await this.#add([heard.message]);
    const { id, room_id, text } = heard.message;
    if (conflicts.length > 0) await this.#client.editMessage({ ...inRoom(room_id), message_id: id, text });
  }

  #add(messages: Message[]): Promise<{ conflicts: string[] }> {
    return this.#client.addMessages({ messages, on_conflict: "report" });
  }

  /** Tell roomlore who can see a room, once: what the settings say, else what its messages show, which may be a later
   * one than the first. */
  async #tell(heard: Heard): Promise<void> {
    const { room_id } = heard.message;
    const set = this.#rooms[room_id];
    const { kind } = heard;
    if (this.#told.has(room_id) || (set === undefined && !kind)) return;
    try {
      if (set !== undefined) await this.#client.changeAudience({ room_id, ...set });
      else if (kind && !(await orNull(this.#client.getAudience({ room_id })))?.kind) {
        await this.#client.changeAudience({ room_id, kind });
      }
    } catch (error) {
      if (error instanceof RoomloreError && error.temporary) throw error;
      // Without the scope `admin`. The room then counts as private, with people in it whom nobody knows.
      this.#log.warn(`roomlore: who can see ${room_id} is not told, so that it is shown less: ${reason(error)}`);
    }
    this.#told.add(room_id);
  }
}
