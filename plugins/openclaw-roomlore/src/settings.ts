/** The settings of the plugin, as `plugins.entries.openclaw-roomlore.config` gives them. */

export type RoomKind = "direct" | "private" | "public";

export type Audience = { kind?: RoomKind; members?: string[] };

export type Settings = {
  url: string;
  apiKey: string;
  contextTokens: number;
  memoryTokens: number;
  timeoutMs: number;
  recordDirect: boolean;
  roomsLeftOut: ReadonlySet<string>;
  rooms: Readonly<Record<string, Audience>>;
};

/** Return the settings with their defaults. OpenClaw checked them against the manifest before. */
export function settingsOf(given: Record<string, unknown> = {}): Settings {
  const url = new URL(text(given["url"]) || "http://127.0.0.1:8765");
  return {
    url: url.href.replace(/\/+$/, ""),
    apiKey: text(given["apiKey"]),
    contextTokens: number(given["contextTokens"], 1500),
    memoryTokens: number(given["memoryTokens"], 600),
    timeoutMs: number(given["timeoutMs"], 5000),
    recordDirect: given["recordDirect"] !== false,
    roomsLeftOut: new Set(Array.isArray(given["roomsLeftOut"]) ? given["roomsLeftOut"].map(String) : []),
    rooms: (given["rooms"] ?? {}) as Record<string, Audience>,
  };
}

function text(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}

function number(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}
