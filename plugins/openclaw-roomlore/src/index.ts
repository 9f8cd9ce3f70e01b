/** roomlore for OpenClaw: hears every message, and tells the model what matters for the one it answers. */

import type { OpenClawPluginApi, OpenClawPluginDefinition } from "openclaw/plugin-sdk/plugin-entry";
import { heardOf } from "./heard.ts";
import { answerOf, RoomMemory, textsOf } from "./memory.ts";
import { Roomlore } from "./roomlore.ts";
import { settingsOf, type Settings } from "./settings.ts";
import { memoryForget, memorySearch } from "./tools.ts";
import { Turns } from "./turns.ts";

const CLOSING_MS = 4000;
const REQUEST_MS = 30_000;

const plugin: OpenClawPluginDefinition = {
  id: "openclaw-roomlore",
  name: "roomlore",
  description: "Group memory: who said what, what matters for this message, and private talks that stay private.",
  register,
};

export default plugin;

function register(api: OpenClawPluginApi): void {
  const { settings, client, memory, turns, end } = sharedOf(api);

  api.on("message_received", (event, ctx) => {
    const heard = heardOf(event, ctx);
    if (heard === null || settings.roomsLeftOut.has(heard.message.room_id)) return;
    if (heard.kind === "direct" && !settings.recordDirect) return;
    turns.hear(heard);
    if (!heard.resets) memory.hear(heard);
  });

  // A part of the user's message: everything before it stays byte for byte the same, for the provider's prompt cache.
  api.on("before_prompt_build", async (event, ctx) => {
    const heard = turns.begin(ctx, event.currentUserMessage, event.prompt);
    if (heard === undefined) return undefined;
    const block = await memory.block(heard, ctx.agentId ?? "main", textsOf(event.messages));
    return block ? { prependContext: block } : undefined;
  });

  api.on("agent_end", (event, ctx) => {
    const heard = turns.of({ ...ctx, runId: event.runId ?? ctx.runId });
    const text = event.success ? answerOf(event.messages) : "";
    if (heard !== undefined && text) memory.replied(heard, text, ctx.agentId ?? "main");
  });

  api.on("before_reset", (_event, ctx) => {
    for (const [room, person] of turns.rooms(ctx.sessionKey ?? "")) memory.reset(room, person);
  });

  api.on("gateway_stop", end);

  api.registerTool((ctx) => memorySearch(ctx, turns, client, settings), { name: "memory_search" });
  api.registerTool((ctx) => memoryForget(ctx, turns, client), { name: "memory_forget" });
}

type Shared = { settings: Settings; client: Roomlore; memory: RoomMemory; turns: Turns; end: () => Promise<void> };

const SHARED = Symbol.for("openclaw-roomlore");

/** Return what all registrations with the same settings share. OpenClaw registers a plugin anew for an agent's run, and
 * may load it anew: what one registration heard, another must know. */
function sharedOf(api: OpenClawPluginApi): Shared {
  const kept = globalThis as { [SHARED]?: Map<string, Shared> };
  const all = (kept[SHARED] ??= new Map());
  const key = JSON.stringify(api.pluginConfig ?? {});
  const found = all.get(key);
  if (found !== undefined) return found;
  const settings = settingsOf(api.pluginConfig);
  const { url, apiKey } = settings;
  // What is stored is sent again by the queue, and an answer does not wait for a second try.
  const client = new Roomlore({ url, apiKey, retries: 0, timeoutMs: REQUEST_MS });
  const memory = new RoomMemory(client, settings, api.logger);
  const end = async (): Promise<void> => {
    all.delete(key);
    await memory.close(CLOSING_MS);
  };
  const made = { settings, client, memory, turns: new Turns(), end };
  all.set(key, made);
  return made;
}
