/** A stand-in for OpenClaw's gateway: it fires the hooks of a plugin with what 2026.9.6 gives them, in its order.
 * `message_received` is not waited for; a run knows its session and, if the channel says so, its sender and chat. */

import plugin from "../src/index.ts";

type Handler = (event: any, ctx: any) => unknown;

export type Said = {
  channel?: string;
  account?: string;
  conversation: string;
  from?: string;
  sender: string;
  name?: string;
  text: string;
  id?: string;
  replyTo?: string;
  sessionKey: string;
  runId?: string;
  metadata?: Record<string, unknown>;
  edited?: number;
};

let made = 0;

export class Host {
  readonly hooks = new Map<string, Handler[]>();
  readonly tools = new Map<string, (ctx: any) => any>();
  readonly logged: string[] = [];
  readonly transcripts = new Map<string, unknown[]>();
  readonly account: string;

  constructor(config: Record<string, unknown> = {}) {
    this.account = `a${process.pid}-${++made}`;
    const log = (text: string): void => void this.logged.push(text);
    const api = {
      pluginConfig: { url: process.env["ROOMLORE_URL"], ...config },
      logger: { info: log, warn: log, error: log },
      on: (name: string, handler: Handler) => this.hooks.set(name, [...(this.hooks.get(name) ?? []), handler]),
      registerTool: (factory: (ctx: any) => any, options: { name: string }) => this.tools.set(options.name, factory),
    };
    plugin.register?.(api as never);
  }

  room(conversation: string, channel = "telegram"): string {
    return `openclaw:${channel}:${this.account}:${conversation}`;
  }

  /** A message arrives; nobody answers it. */
  hear(said: Said): void {
    const { channel = "telegram", account = this.account, conversation, sender, sessionKey } = said;
    const common = { messageId: said.id ?? `m${++made}`, senderId: sender, sessionKey, runId: said.runId };
    const event = {
      ...common,
      from: said.from ?? `${channel}:${conversation}`,
      content: said.text,
      timestamp: Date.UTC(2026, 10, 2, 10, 0, made % 60) + made,
      ...(said.replyTo ? { replyToId: said.replyTo } : {}),
      ...(said.edited ? { providerUpdate: { id: `u${made}`, kind: "edit", editedTimestamp: said.edited } } : {}),
      metadata: { senderName: said.name, ...said.metadata },
    };
    const ctx = { ...common, channelId: channel, accountId: account, conversationId: `${channel}:${conversation}` };
    for (const handler of this.hooks.get("message_received") ?? []) void handler(event, ctx);
  }

  /** An agent runs for the session. Returns what the plugin adds to the prompt. `run`: what the run knows besides. */
  async run(sessionKey: string, asked: string, run: Record<string, unknown>): Promise<any> {
    const messages = this.transcripts.get(sessionKey) ?? [];
    const event = { prompt: `[Telegram] ${asked}`, currentUserMessage: asked, messages };
    const [handler] = this.hooks.get("before_prompt_build") ?? [];
    return await handler?.(event, { agentId: "main", sessionKey, trigger: "user", ...run });
  }

  /** The run ends with an answer. */
  async end(sessionKey: string, asked: string, answer: string, run: Record<string, unknown> = {}): Promise<void> {
    const messages = [
      ...(this.transcripts.get(sessionKey) ?? []),
      { role: "user", content: asked },
      { role: "assistant", content: [{ type: "text", text: answer }] },
    ];
    this.transcripts.set(sessionKey, messages);
    const ctx = { agentId: "main", sessionKey, ...run };
    for (const handler of this.hooks.get("agent_end") ?? []) await handler({ messages, success: true, runId: run["runId"] }, ctx);
  }

  /** A message arrives and the agent answers it. Returns the block that the model was shown. */
  async turn(said: Said, answer = "OK, noted.", run: Record<string, unknown> = {}): Promise<string> {
    this.hear(said);
    const { channel = "telegram", account = this.account, conversation, sender } = said;
    const known = { runId: said.runId ?? `run-${++made}`, senderId: sender, channel, accountId: account };
    const ctx = { ...known, chatId: conversation, channelId: conversation, ...run };
    const added = await this.run(said.sessionKey, said.text, ctx);
    await this.end(said.sessionKey, said.text, answer, ctx);
    return added?.prependContext ?? "";
  }

  async reset(said: Said): Promise<void> {
    this.hear(said);
    this.transcripts.delete(said.sessionKey);
    const ctx = { agentId: "main", sessionKey: said.sessionKey };
    for (const handler of this.hooks.get("before_reset") ?? []) await handler({ reason: "reset", messages: [] }, ctx);
  }

  /** The model calls a tool during a run of the session. */
  async call(name: string, sessionKey: string, requesterSenderId: string | undefined, given: unknown): Promise<string> {
    const tool = this.tools.get(name)?.({ agentId: "main", sessionKey, requesterSenderId });
    return (await tool.execute("call-1", given)).content[0].text;
  }

  async stop(): Promise<void> {
    for (const handler of this.hooks.get("gateway_stop") ?? []) await handler({}, {});
  }
}

/** Ask roomlore itself. */
export async function ask(method: string, path: string, body?: unknown): Promise<any> {
  const headers = { "Content-Type": "application/json" };
  const text = body === undefined ? undefined : JSON.stringify(body);
  const answer = await fetch(`${process.env["ROOMLORE_URL"]}${path}`, { method, headers, body: text });
  return await answer.json();
}

export async function stored(room: string): Promise<any[]> {
  return (await ask("GET", `/messages?room_id=${encodeURIComponent(room)}&limit=100`)).messages;
}
