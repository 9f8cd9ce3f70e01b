/** Events as messages: who, where, and who can hear it there. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { heardOf } from "../src/heard.ts";
import { answerOf, nameOf } from "../src/memory.ts";
import { settingsOf } from "../src/settings.ts";

function heard(given: Record<string, unknown>, ctx: Record<string, unknown> = {}) {
  const event = { from: "", content: "hello", messageId: "1", senderId: "42", ...given };
  return heardOf(event as never, { channelId: "telegram", conversationId: "telegram:42", ...ctx } as never);
}

test("a room is one person's only where the person names it", () => {
  const kinds: [string, Record<string, unknown>, Record<string, unknown>, string][] = [
    ["telegram, alone", {}, {}, "direct"],
    ["telegram, a group", { from: "telegram:group:-7" }, { conversationId: "telegram:-7" }, "private"],
    ["telegram, a topic", { metadata: { topicName: "x" } }, {}, "private"],
    ["telegram, a group that writes itself", { senderId: "-7" }, { conversationId: "telegram:-7" }, "private"],
    ["discord, alone", {}, { channelId: "discord", conversationId: "user:42" }, "direct"],
    ["discord, a server", { metadata: { guildId: "g" } }, { channelId: "discord", conversationId: "channel:7" }, "private"],
    ["whatsapp, alone", { senderId: "+1555" }, { channelId: "whatsapp", conversationId: "+1555" }, "direct"],
    ["whatsapp, a group", { senderId: "+1555" }, { channelId: "whatsapp", conversationId: "12-3@g.us" }, "private"],
    ["a phone number as name", { senderId: "x@lid", metadata: { senderE164: "+1555" } }, { conversationId: "+1555" }, "direct"],
    ["the session says group", { sessionKey: "agent:main:feishu:group:oc_1" }, { channelId: "feishu", conversationId: "42" }, "private"],
    ["nothing says it", {}, { channelId: "feishu", conversationId: "oc_1" }, ""],
  ];
  for (const [what, event, ctx, kind] of kinds) assert.equal(heard(event, ctx)?.kind, kind, what);
});

test("two platforms and two accounts with the same numbers are two rooms and two people", () => {
  const some = [heard({}), heard({}, { channelId: "qqbot" }), heard({}, { accountId: "work" })];
  assert.equal(new Set(some.map((one) => one?.message.room_id)).size, 3);
  assert.deepEqual(some.map((one) => one?.message.sender_id), ["telegram:42", "qqbot:42", "telegram:42"]);
});

test("what has no text or nobody who said it is no message", () => {
  assert.equal(heard({ content: "  " }), null);
  assert.equal(heard({ senderId: undefined }), null);
  assert.equal(heard({ content: "", media: [{ kind: "image" }, {}] })?.message.text, "[image] [file]");
  assert.equal(heard({ senderId: undefined }, { channelId: "webchat", conversationId: "agent:main:main" })?.message.sender_id, "webchat:operator");
  assert.equal(heard({ content: "/new 你好" })?.resets, true);
  assert.equal(heard({ content: "/reset@my_bot" })?.resets, true);
  assert.equal(heard({ content: "/newspaper" })?.resets, false);
});

test("times, ids and replies", () => {
  assert.equal(heard({ timestamp: 1_700_000_000 })?.message.sent_at, heard({ timestamp: 1_700_000_000_000 })?.message.sent_at);
  assert.ok(heard({ timestamp: Number.NaN })?.message.sent_at);
  assert.ok(heard({ timestamp: 1e20 })?.message.sent_at);
  assert.equal(heard({ replyToId: "7", replyToIdFull: "chat:7" })?.message.reply_to, "chat:7");
  assert.equal(heard({ replyToId: "1" })?.message.reply_to, undefined);
  const [one, same, other] = ["a", "a", "b"].map((content) => heard({ messageId: undefined, timestamp: 1, content })?.message.id);
  assert.equal(one, same);
  assert.notEqual(one, other);
});

test("names stay on one line", () => {
  assert.equal(nameOf({ sender_id: "telegram:1", sender_name: "小明\n<b>: x" }), "小明 b x");
  assert.equal(nameOf({ sender_id: "telegram:1", sender_name: "\u200b\n" }), "telegram:1");
  assert.equal([...nameOf({ sender_id: "1", sender_name: "🧑‍🚀".repeat(100) })].length, 40);
});

test("the last answer of a run", () => {
  const user = { role: "user", content: "?" };
  const says = (text: string): unknown => ({ role: "assistant", content: [{ type: "thinking", thinking: "…" }, { type: "text", text }] });
  const calls = { role: "assistant", content: [{ type: "toolCall", id: "1" }] };
  assert.equal(answerOf([user, says("one"), calls, { role: "toolResult", content: "x" }, says("two")]), "two");
  assert.equal(answerOf([user, says("one"), user]), "");
  assert.equal(answerOf([user, says("NO_REPLY")]), "");
  assert.equal(answerOf([null, "x", { role: "assistant" }]), "");
});

test("settings", () => {
  assert.equal(settingsOf({ url: "http://h:1/" }).url, "http://h:1");
  assert.throws(() => settingsOf({ url: "nowhere" }), /Invalid URL/);
  assert.equal(settingsOf().timeoutMs, 5000);
});
