/** Every operation, with its types and against a real `roomlore serve` at ROOMLORE_URL. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { orNull, Roomlore, RoomloreError } from "../src/index.ts";
import { Operations } from "../src/made/operations.ts";

const lore = new Roomlore({ url: process.env["ROOMLORE_URL"], retries: 0 });
const room_id = "every operation";
const scope = `group:${room_id}`;
const viewer = `room:${room_id}`;

/** The methods that were called. */
const called = new Set<string>();
const noting = new Proxy(lore, {
  get(target, name) {
    const value: unknown = Reflect.get(target, name);
    if (typeof value !== "function") return value;
    called.add(String(name));
    return value.bind(target);
  },
});

/** Wait for a call that must be refused, and return the code. */
async function refused(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => assert.fail("not refused"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof RoomloreError, String(error));
  return error.code;
}

test("each operation of the document is a method that the server understands", async () => {
  await messagesAndContexts(noting);
  await roomsAndSessions(noting);
  await facts(noting);
  await memory(noting);
  await service(noting);
  const all = Object.getOwnPropertyNames(Operations.prototype).filter((name) => name !== "constructor");
  assert.deepEqual(all.filter((name) => !called.has(name)), []);
});

async function messagesAndContexts(lore: Roomlore): Promise<void> {
  const messages = [
    { id: "m1", room_id, sender_id: "ann", sender_name: "Ann", text: "Green or black tea?", metadata: { from: "test" } },
    { id: "m2", room_id, sender_id: "bob", text: "Green tea, please!", reply_to: "m1", mentions: ["ann"] },
    { id: "m3", room_id, sender_id: "eve", text: "Anybody here?", sent_at: 1_790_000_000 },
  ];
  const added = await lore.addMessages({ messages, on_conflict: "report" });
  assert.deepEqual([added.added, added.duplicates, added.conflicts], [["m1", "m2", "m3"], [], []]);
  const single = await lore.addMessages({ id: "m4", room_id, sender_id: "eve", text: "A typo heer" });
  assert.deepEqual(single.added, ["m4"]);
  const page = await lore.listMessages({ room_id, limit: 2 });
  assert.deepEqual(page.messages.map((one) => one.id).length, 2);
  const { hits } = await lore.searchMessages({ q: "tea", room_id, sender_id: ["ann", "bob"], limit: 5 });
  assert.deepEqual(new Set(hits.map((hit) => hit.message.id)), new Set(["m1", "m2"]));
  assert.equal((await lore.getMessage({ room_id, message_id: "m2", viewer })).message.reply_to, "m1");
  assert.equal((await lore.editMessage({ room_id, message_id: "m4", text: "A typo here" })).text, "A typo here");
  await lore.correctLink({ room_id, message_id: "m4", answers: "m3" });
  await lore.undoLink({ room_id, message_id: "m4" });
  assert.equal(await lore.deleteMessage({ room_id, message_id: "m3" }), undefined);
  const built = await lore.buildContext({ room_id, message_id: "m2", max_tokens: 500, viewer });
  assert.deepEqual(built.messages.map(({ message }) => message.id), ["m1"]);
  const context_id = built.context_id ?? assert.fail("no context");
  assert.equal((await lore.getContext({ context_id })).context_id, context_id);
  assert.equal(await lore.respondToContext({ context_id, text: "Green, then." }), undefined);
  assert.equal(await lore.judgeContext({ context_id, score: 1, text: "good" }), undefined);
  assert.deepEqual((await lore.listUsage({ room_id })).records.map((one) => one.context_id), [context_id]);
  assert.ok((await lore.reportUsage()).arms.length > 0);
  const exported: string[] = [];
  for await (const record of lore.exportUsage({ room_id })) exported.push(record.context_id);
  assert.deepEqual(exported, [context_id]);
}

async function roomsAndSessions(lore: Roomlore): Promise<void> {
  assert.ok((await lore.listRooms()).rooms.some((room) => room.room_id === room_id));
  assert.equal((await lore.renameRoom({ room_id, name: "Tea" })).name, "Tea");
  assert.equal((await lore.getRoom({ room_id: "Tea", viewer })).room_id, room_id);
  assert.ok((await lore.listThreads({ room_id })).threads.length > 0);
  assert.ok((await lore.getThread({ room_id, message_id: "m1" })).entries.length > 0);
  assert.ok((await lore.getHeadings({ room_id, message_id: ["m1"] })).headings);
  assert.equal((await lore.changeAudience({ room_id, kind: "private", members: ["ann", "bob"] })).kind, "private");
  assert.ok((await lore.getAudience({ room_id })).people["ann"]);
  await lore.changeRoomSettings({ room_id, recent_messages: 3 });
  assert.ok(await lore.getRoomSettings({ room_id }));
  assert.ok((await lore.listCorrections({ room_id })).corrections.length > 0);
  await lore.markRead({ room_id, user_id: "ann", message_id: "m1" });
  assert.ok(await lore.getDigest({ room_id, for_user: "ann" }));

  const conversation_id = "talk/with . slash";
  await lore.createSession({ conversation_id, user_id: "ann" });
  assert.ok((await lore.listSessions()).sessions.some((one) => one.conversation_id === conversation_id));
  assert.ok((await lore.getSession({ conversation_id })).meta);
  const turn = await lore.writeTurn({ conversation_id, user_query: "Is tea good?", agent_response: "Yes." });
  assert.equal(turn.conversation_id, conversation_id);
  const { turns, checkpoint_token, covers_through } = await lore.querySessionContext({ conversation_id });
  assert.equal(turns, 1);
  const made = await lore.makeCheckpoint({ conversation_id, summary: "Tea is good.", checkpoint_token, covers_through });
  assert.equal(made.checkpoint?.summary, "Tea is good.");
  await lore.patchSessionState({ conversation_id, patch: { global_state: { mood: "calm", viewer: "nobody" } } });
  assert.match(JSON.stringify(await lore.getSession({ conversation_id })), /"mood":"calm","viewer":"nobody"/);
  await lore.resetSession({ conversation_id });
  const kinds = (await lore.listCheckpoints({ conversation_id })).checkpoints.map((one) => one.kind);
  assert.deepEqual(kinds, ["reset", "summary"]);
}

async function facts(lore: Roomlore): Promise<void> {
  const added = await lore.addFacts({ scope, statement: "Bob drinks green tea.", sources: [{ room_id, message_id: "m2" }] });
  assert.deepEqual(added.facts.map((one) => one.outcome), ["added"]);
  await lore.addFacts({ facts: [{ scope: "user:ann", statement: "Ann asks about tea." }] });
  const listed = await lore.listFacts({ scope });
  const memory_id = listed.facts[0]?.memory_id ?? assert.fail("no fact");
  assert.equal((await lore.getFact({ memory_id, viewer })).statement, "Bob drinks green tea.");
  const recalled = await lore.recallFacts({ scopes: [scope], messages: [{ role: "user", content: "What does Bob drink?" }] });
  assert.match(recalled.text, /green tea/);
  const changed = await lore.changeFact({ memory_id, statement: "Bob drinks only green tea.", expected: memory_id });
  assert.equal((await lore.factHistory({ memory_id: changed.memory_id })).versions.length, 2);
  assert.equal(await lore.deleteFact({ memory_id: changed.memory_id, reason: "moved" }), undefined);
}

async function memory(lore: Roomlore): Promise<void> {
  const [fact] = (await lore.addFacts({ scope, statement: "The kettle is broken." })).facts;
  const memory_id = fact?.memory_id ?? assert.fail("no fact");
  const evolved = await lore.evolve({ group_id: room_id, mode: "rules" });
  assert.ok("changes" in evolved ? evolved.changes : evolved.job_id);
  assert.equal((await orNull(lore.getEvolution({ evolution_id: "none" }))), null);
  assert.equal(await refused(lore.revertEvolution({ evolution_id: "none", reason: "a test" })), "not-found");
  assert.ok((await lore.memoryChanges({ group_id: room_id, newest_first: true })).changes.length > 0);
  assert.ok((await lore.listMemories({ group_id: room_id, status: "active" })).memories.length > 0);
  assert.ok((await lore.searchMemories({ group_id: room_id, q: "kettle" })).results.length > 0);
  assert.ok((await lore.memoryHistory({ memory_id })).success);
  assert.ok((await lore.memoriesAsOf({ group_id: room_id, at: "today" })).memories);
  assert.ok((await lore.diffMemories({ group_id: room_id, from: "yesterday", to: "today" })).added);
  assert.ok((await lore.blameMemory({ memory_id })).success);
  assert.ok((await lore.setStrength({ memory_id, strength: 0.5, reason: "half sure" })).success);
  assert.ok((await lore.shareMemory({ memory_id, with: "everyone", reason: "asked" })).success);
  assert.ok((await lore.getWhoMaySee({ memory_id })).success);
  assert.ok((await lore.endShare({ memory_id, with: "everyone" })).success);
  assert.ok((await lore.listVisible({ room_id, scope })).memories);
  assert.ok((await lore.deleteMemory({ memory_id, reason: "repaired" })).success);
  assert.ok((await lore.restoreMemory({ memory_id, reason: "broken again" })).success);
  assert.ok("places" in (await lore.forget({ user_id: "eve", dry_run: true })));
  assert.equal((await lore.deleteRoom({ room_id, dry_run: true })).status, "counted");
  assert.ok("sound" in (await lore.verify()));
}

async function service(lore: Roomlore): Promise<void> {
  const events: string[] = [];
  for await (const event of lore.streamReply({ message: { id: "q", room_id, sender_id: "ann", text: "Which tea?" } })) {
    events.push(event.event === "text" ? event.data.text : event.event);
  }
  assert.deepEqual([events[0], events.slice(1, -1).join(""), events.at(-1)], ["start", "Green tea.", "done"]);
  assert.equal((await lore.listModels()).models[0]?.model_id, "chat");
  assert.ok((await lore.listJobs({ limit: 1 })).jobs);
  assert.equal(await refused(lore.getJob({ job_id: "1000000" })), "not-found");
  assert.equal(await refused(lore.retryJob({ job_id: "1000000" })), "not-found");
  assert.equal((await lore.live()).status, "ok");
  assert.ok(await lore.ready());
  assert.ok(await lore.index());
  assert.match(await lore.metrics(), /^# HELP roomlore_/m);
}

/** What the compiler has to refuse. */
export function wrong(lore: Roomlore): unknown[] {
  return [
    // @ts-expect-error the room is needed
    lore.listMessages({}),
    // @ts-expect-error no such parameter
    lore.listMessages({ room_id, veiwer: viewer }),
    // @ts-expect-error no such mode
    lore.searchMessages({ q: "tea", mode: "psychic" }),
    // @ts-expect-error a message has a sender
    lore.addMessages({ id: "m", room_id, text: "Hello" }),
    // @ts-expect-error a stream is iterated
    lore.streamReply({ message: { id: "q", sender_id: "ann" } }).then,
    // @ts-expect-error nothing is answered
    lore.deleteMessage({ room_id, message_id: "m" }).then((answer) => answer.id),
  ];
}
