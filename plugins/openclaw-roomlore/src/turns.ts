/** Which message an agent's run answers. OpenClaw says it by run, or by session and sender; several people and rooms may
 * share one session, and where that leaves a doubt, no message is found and nothing is shown. */

import { bare, lastPart, type Heard } from "./heard.ts";

export type Run = {
  runId?: string;
  sessionKey?: string;
  senderId?: string;
  channel?: string;
  messageProvider?: string;
  accountId?: string;
  chatId?: string;
  channelId?: string;
  trigger?: string;
  inputProvenance?: { kind?: string };
};

const HEARD_KEPT = 50;
const KEPT = 1000;

export class Turns {
  readonly #sessions = new Map<string, Heard[]>();
  readonly #runs = new Map<string, Heard>();
  readonly #current = new Map<string, Heard>();
  readonly #rooms = new Map<string, Map<string, string>>();

  hear(heard: Heard): void {
    if (!heard.sessionKey) return;
    const rooms = this.#rooms.get(heard.sessionKey) ?? new Map<string, string>();
    keep(rooms, heard.message.room_id, heard.message.sender_id);
    keep(this.#rooms, heard.sessionKey, rooms);
    if (heard.resets) return;
    const said = this.#sessions.get(heard.sessionKey) ?? [];
    said.push(heard);
    keep(this.#sessions, heard.sessionKey, said.slice(-HEARD_KEPT));
  }

  /** Return the message that a run answers. `asked`: the text of the request, `prompt`: it with all around it. */
  begin(run: Run, asked: string | undefined, prompt: string): Heard | undefined {
    if (run.sessionKey) this.#current.delete(run.sessionKey);
    const found = ofPerson(run) ? this.#find(run, asked, prompt) : undefined;
    if (found === undefined) return undefined;
    if (run.runId) keep(this.#runs, run.runId, found);
    keep(this.#current, found.sessionKey, found);
    return found;
  }

  /** Return the message of a run that has begun. */
  of(run: Run): Heard | undefined {
    if (run.runId) return this.#runs.get(run.runId);
    return this.during(run.sessionKey, run.senderId);
  }

  /** Return the message that the session's run answers, for a tool: it is told the session and who asks. */
  during(sessionKey: string | undefined, senderId: string | undefined): Heard | undefined {
    const heard = sessionKey ? this.#current.get(sessionKey) : undefined;
    return heard && (!senderId || bare(senderId, heard.channel) === heard.senderId) ? heard : undefined;
  }

  /** Return the rooms that were heard in a session, each with somebody who spoke there. */
  rooms(sessionKey: string): ReadonlyMap<string, string> {
    return this.#rooms.get(sessionKey) ?? new Map();
  }

  #find(run: Run, asked: string | undefined, prompt: string): Heard | undefined {
    const said = (run.sessionKey && this.#sessions.get(run.sessionKey)) || [];
    if (run.runId) {
      const before = this.#runs.get(run.runId);
      const exact = before ?? said.findLast((one) => one.runId === run.runId);
      if (exact) return exact;
    }
    const possible = said.filter((one) => fits(one, run));
    if (new Set(possible.map((one) => one.message.room_id)).size !== 1) return undefined;
    const named = possible.findLast((one) => (asked ?? prompt).includes(one.message.text));
    if (run.senderId) return named ?? possible.at(-1);
    return asked === undefined ? undefined : named;
  }
}

function ofPerson(run: Run): boolean {
  const origin = run.inputProvenance?.kind;
  return (!run.trigger || run.trigger === "user") && (origin === undefined || origin === "external_user");
}

function fits(heard: Heard, run: Run): boolean {
  const channel = (run.channel || run.messageProvider || "").toLowerCase();
  if (channel && channel !== heard.channel) return false;
  if (run.accountId && run.accountId !== heard.account) return false;
  if (run.senderId && bare(run.senderId, heard.channel) !== heard.senderId) return false;
  const chat = bare(run.chatId || run.channelId || "", heard.channel);
  // Without a conversation OpenClaw gives the name of the channel.
  return !chat || chat === heard.channel || sameChat(chat, heard.conversation);
}

/** `chat` may be followed by a topic and `conversation` led by a word for its kind: `-100:topic:7` and `group:-100`. */
function sameChat(chat: string, conversation: string): boolean {
  const [one, other] = [chat.toLowerCase(), conversation.toLowerCase()];
  return one === other || one.split(":").includes(lastPart(other));
}

function keep<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > KEPT) map.delete(map.keys().next().value as string);
}
