/** The tools of the model. They see what the room may see in which the question was asked, and nothing else. */

import type { OpenClawPluginApi, OpenClawPluginToolContext } from "openclaw/plugin-sdk/plugin-entry";
import type { Heard } from "./heard.ts";
import { agentId, line } from "./memory.ts";
import { inRoom, orNull, reason, type Roomlore } from "./roomlore.ts";
import type { Settings } from "./settings.ts";
import type { Turns } from "./turns.ts";

type Tool = Exclude<Parameters<OpenClawPluginApi["registerTool"]>[0], (...given: never[]) => unknown | { create: unknown }>;
type AgentTool = Extract<Tool, { execute: unknown }>;

const LISTED = 10;
const UNKNOWN = "It is not known which message this is about, so that nothing can be shown. Answer without memory.";

export function memorySearch(ctx: OpenClawPluginToolContext, turns: Turns, client: Roomlore, settings: Settings): AgentTool {
  return tool(
    "memory_search",
    "Search memory",
    "Search what was said and what is remembered, as far as this chat may know it. Returns messages and memories with their ids.",
    {
      query: { type: "string", description: "What to look for, in the words of a question." },
      limit: { type: "integer", minimum: 1, maximum: 50, description: `At most so many messages (${LISTED} if left out).` },
    },
    ["query"],
    async (given) => {
      const heard = turns.during(ctx.sessionKey, ctx.requesterSenderId);
      if (!heard) return UNKNOWN;
      const room = inRoom(heard.message.room_id);
      const query = String(given["query"] ?? "").trim();
      if (!query) return "Say what to look for in query.";
      const limit = Math.min(50, Math.max(1, Math.trunc(Number(given["limit"])) || LISTED));
      const scopes = [`group:${room.room_id}`, `agent:${agentId(ctx.agentId ?? "main")}`, `user:${heard.message.sender_id}`];
      const messages = [{ role: "user" as const, content: query }];
      const [found, recalled] = await Promise.all([
        client.searchMessages({ ...room, q: query, limit }),
        client.recallFacts({ scopes, messages, max_tokens: settings.memoryTokens, viewer: room.viewer }),
      ]);
      const others = found.hits.map((hit) => hit.message).filter((one) => one.id !== heard.message.id);
      const lines = [
        ...recalled.facts.map(({ memory }) => `memory ${memory.memory_id} (${memory.scope}): ${memory.statement}`),
        ...others.map((one) => `message ${one.id} ${line(one)}`),
      ];
      return lines.length > 0 ? lines.join("\n") : "Nothing was found.";
    },
  );
}

export function memoryForget(ctx: OpenClawPluginToolContext, turns: Turns, client: Roomlore): AgentTool {
  return tool(
    "memory_forget",
    "Forget",
    "Forget one memory of this chat or of the person who asks, or delete one message that this person wrote here. " +
      "Use an id that memory_search returned, and only if the person asks for it.",
    {
      memory_id: { type: "string", description: "The id of a memory." },
      message_id: { type: "string", description: "The id of a message." },
    },
    [],
    async (given) => {
      const heard = turns.during(ctx.sessionKey, ctx.requesterSenderId);
      if (!heard) return UNKNOWN;
      const [memory, message] = [given["memory_id"], given["message_id"]].map((one) => String(one ?? "").trim());
      if (Boolean(memory) === Boolean(message)) return "Give either memory_id or message_id.";
      return memory ? await forgetMemory(client, heard, memory) : await forgetMessage(client, heard, message ?? "");
    },
  );
}

async function forgetMemory(client: Roomlore, heard: Heard, memoryId: string): Promise<string> {
  const { room_id: room, sender_id: person } = heard.message;
  const known = { memory_id: memoryId, viewer: inRoom(room).viewer };
  const memory = await orNull(client.getFact(known));
  if (!memory) return `There is no memory ${memoryId}.`;
  if (memory.scope !== `user:${person}` && memory.scope !== `group:${room}`) {
    return "That memory is of somebody else or of another chat, and cannot be forgotten from here.";
  }
  await client.deleteFact({ ...known, reason: `asked for by ${person} in ${room}` });
  return `Forgotten: ${memory.statement}`;
}

async function forgetMessage(client: Roomlore, heard: Heard, messageId: string): Promise<string> {
  const { room_id, sender_id: person } = heard.message;
  const meant = { ...inRoom(room_id), message_id: messageId };
  const found = await orNull(client.getMessage(meant));
  if (!found) return `There is no message ${messageId} in this chat.`;
  if (found.message.sender_id !== person) return "Somebody else wrote that message. Only its author can have it forgotten.";
  await client.deleteMessage(meant);
  return "The message is deleted.";
}

function tool(
  name: string,
  label: string,
  description: string,
  properties: Record<string, unknown>,
  required: readonly string[],
  run: (given: Record<string, unknown>) => Promise<string>,
): AgentTool {
  const parameters = { type: "object", properties, required, additionalProperties: false };
  return {
    name,
    label,
    description,
    parameters: parameters as AgentTool["parameters"],
    async execute(_id: string, given: unknown) {
      const text = await run((given ?? {}) as Record<string, unknown>).catch(
        (error: unknown) => `Memory cannot be asked now: ${reason(error)}`,
      );
      return { content: [{ type: "text", text }], details: { text } };
    },
  };
}
