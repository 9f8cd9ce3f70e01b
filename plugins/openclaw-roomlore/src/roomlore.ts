/** The client of roomlore, which the build puts into the plugin. */

export { orNull, Roomlore, RoomloreError } from "../../../clients/typescript/src/index.ts";
export type { StoredMessage } from "../../../clients/typescript/src/index.ts";

/** Return the room, shown to itself. */
export function inRoom(roomId: string): { room_id: string; viewer: string } {
  return { room_id: roomId, viewer: `room:${roomId}` };
}

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
