/** Events of OpenClaw as messages of roomlore: who said what, in which room, and who can hear it there. */

import { createHash } from "node:crypto";
import type { OpenClawPluginApi, PluginHookMessageReceivedEvent } from "openclaw/plugin-sdk/plugin-entry";

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

export type MessageContext = {
  channelId: string;
  accountId?: string;
  conversationId?: string;
  sessionKey?: string;
  runId?: string;
};

export type Logger = Pick<OpenClawPluginApi["logger"], "info" | "warn" | "error">;

/** A message as it was heard. `kind` is "" where nothing says if the room is one person's or a group's. */
export type Heard = {
  message: Message;
  kind: "direct" | "private" | "";
  channel: string;
  account: string;
  conversation: string;
  senderId: string;
  sessionKey: string;
  runId: string;
  edited: boolean;
  /** Asks for a new session: no part of the talk. */
  resets: boolean;
};

const GROUP_PARTS = new Set(["group", "channel", "room", "thread", "topic", "guild", "supergroup"]);
const RESET = /^\/(?:new|reset)(?:@\S+)?(?:\s|$)/i;

/** Return the message of an event, null if it has no text or is nobody's. */
export function heardOf(event: PluginHookMessageReceivedEvent, ctx: MessageContext): Heard | null {
  const channel = (ctx.channelId || "unknown").toLowerCase();
  const senderId = senderOf(event, channel);
  const conversation = bare(ctx.conversationId || event.from || "", channel);
  const text = textOf(event);
  if (!senderId || !conversation || !text) return null;
  const account = ctx.accountId || "default";
  const sentAt = timeOf(event.timestamp);
  const message: Message = {
    id: event.messageId || made(senderId, event.timestamp, text),
    room_id: roomId(channel, account, conversation),
    sender_id: personId(channel, senderId),
    sender_name: nameOf(event),
    role: "user",
    text,
    sent_at: sentAt.toISOString(),
  };
  const answered = event.replyToIdFull || event.replyToId;
  if (answered && answered !== message.id) message.reply_to = answered;
  return {
    message,
    kind: kindOf(event, ctx, channel, conversation, senderId),
    channel,
    account,
    conversation,
    senderId,
    sessionKey: event.sessionKey || ctx.sessionKey || "",
    runId: event.runId || ctx.runId || "",
    edited: event.providerUpdate?.editedTimestamp !== undefined,
    resets: RESET.test(text),
  };
}

export function roomId(channel: string, account: string, conversation: string): string {
  return `openclaw:${channel}:${account}:${conversation}`;
}

/** Return the id of a person. Two platforms may give the same number to two people. */
export function personId(channel: string, senderId: string): string {
  return `${channel}:${senderId}`;
}

/** Return the id of a conversation without the name of the channel before it. */
export function bare(conversation: string, channel: string): string {
  const prefix = `${channel}:`;
  return conversation.toLowerCase().startsWith(prefix) ? conversation.slice(prefix.length) : conversation;
}

/** Return the last part of an id: `user:42` and `42` name the same. */
export function lastPart(id: string): string {
  return id.slice(id.lastIndexOf(":") + 1);
}

/** Return "direct" only where the conversation is named by the very person who writes and nothing speaks of a group:
 * a group taken for a direct chat would be shown what that person said elsewhere. */
function kindOf(
  event: PluginHookMessageReceivedEvent,
  ctx: MessageContext,
  channel: string,
  conversation: string,
  senderId: string,
): Heard["kind"] {
  const ofGroup = ["guildId", "channelName", "topicName"].some((name) => Boolean(event.metadata?.[name]));
  const ids = [event.from ?? "", conversation, event.sessionKey || ctx.sessionKey || ""];
  const parts = ids.flatMap((id) => id.toLowerCase().split(":").slice(0, -1));
  if (ofGroup || parts.some((one) => GROUP_PARTS.has(one))) return "private";
  if (conversation.endsWith("@g.us") || (channel === "telegram" && conversation.startsWith("-"))) return "private";
  const theirs = [senderId, text(event.metadata?.["senderE164"])].filter(Boolean);
  return theirs.includes(lastPart(conversation)) || theirs.includes(conversation) ? "direct" : "";
}

function senderOf(event: PluginHookMessageReceivedEvent, channel: string): string {
  const known = event.senderId || text(event.metadata?.["senderE164"]) || text(event.metadata?.["senderUsername"]);
  // In OpenClaw's own web page the person is not named: it is whoever may open it.
  return bare(known, channel) || (channel === "webchat" ? "operator" : "");
}

function nameOf(event: PluginHookMessageReceivedEvent): string {
  return text(event.metadata?.["senderName"]) || text(event.metadata?.["senderUsername"]);
}

function textOf(event: PluginHookMessageReceivedEvent): string {
  const said = event.content.trim();
  if (said) return said;
  const media = event.media ?? event.originalMedia ?? [];
  return media.map((one) => `[${one.kind ?? "file"}]`).join(" ");
}

function timeOf(timestamp: number | undefined): Date {
  if (timestamp === undefined || !(timestamp > 0)) return new Date();
  const read = new Date(timestamp < 1e11 ? timestamp * 1000 : timestamp);
  return Number.isNaN(read.getTime()) ? new Date() : read;
}

function made(...parts: unknown[]): string {
  return `openclaw-${createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 24)}`;
}

function text(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}
