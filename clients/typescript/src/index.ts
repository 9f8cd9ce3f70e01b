/** The client of roomlore. */

import { Operations } from "./made/operations.ts";

export type { CallOptions, ClientOptions } from "./caller.ts";
export { orNull, RoomloreError, type Language } from "./errors.ts";
export type * from "./made/schema.ts";
export type { Answer, Given, Item, OperationName } from "./types.ts";

/** roomlore behind HTTP. Each operation of its OpenAPI document is a method, which takes path, query and body as one
 * object. */
export class Roomlore extends Operations {}

/** Yield page after page: `pages((after) => lore.listMessages({ room_id, after }))`. `read` gets the `next` of the page
 * before. */
export async function* pages<Page extends { next: unknown }>(
  read: (next: any) => Promise<Page>,
): AsyncGenerator<Page, void> {
  let next: unknown;
  do {
    const page = await read(next ?? undefined);
    yield page;
    next = page.next;
  } while (next !== null && next !== undefined);
}
