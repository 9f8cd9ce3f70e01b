/** Errors, pages, ids, streams, time limits and retries: against a real `roomlore serve` at ROOMLORE_URL, and against a
 * server of its own for what a real one seldom does. */

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { test, type TestContext } from "node:test";
import { orNull, pages, Roomlore, RoomloreError, type ClientOptions, type Item } from "../src/index.ts";

const lore = new Roomlore({ url: process.env["ROOMLORE_URL"] });

async function errorOf(call: Promise<unknown>): Promise<RoomloreError> {
  const error = await call.then(
    () => assert.fail("no error"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof RoomloreError, String(error));
  return error;
}

async function events(stream: AsyncIterable<Item<"stream_reply">>): Promise<string[]> {
  const names: string[] = [];
  for await (const { event } of stream) names.push(event);
  return names;
}

/** Serve answers, the last one again and again. Returns a client, and the requests that came. */
async function served(context: TestContext, answers: ((response: ServerResponse) => void)[], options: ClientOptions = {}) {
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    request.resume();
    asked.push(request);
    const answer = answers[Math.min(asked.length, answers.length) - 1];
    answer?.(response);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  context.after(() => (server.closeAllConnections(), server.close()));
  const { port } = server.address() as AddressInfo;
  return { client: new Roomlore({ url: `http://127.0.0.1:${port}/under/`, ...options }), asked };
}

async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

const json = (status: number, body: unknown, headers: Record<string, string> = {}) => (response: ServerResponse) =>
  void response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(body));
const problem = (status: number, headers: Record<string, string> = {}) =>
  json(status, { type: "urn:roomlore:unavailable", title: "", status, detail: "Try later.", instance: "", request_id: "r1" }, headers);
const streaming = (...pieces: string[]) => async (response: ServerResponse) => {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  for (const piece of pieces) {
    response.write(piece);
    await sleep(20);
  }
  response.end();
};
const QUESTION = { message: { id: "q", room_id: "r", sender_id: "ann", text: "Tea?" } };
const DONE = 'event: done\ndata: {"text": "Yes."}\n\n';

test("an error has the code, the words and the request of the server's problem", async () => {
  const missing = await errorOf(lore.getRoom({ room_id: "nowhere" }));
  assert.deepEqual([missing.code, missing.status, missing.title, missing.temporary], ["not-found", 404, "Not found", false]);
  assert.match(missing.message, /nowhere/);
  assert.match(missing.requestId, /^[\w.-]+$/);
  assert.equal(await orNull(lore.getRoom({ room_id: "nowhere" })), null);
  const chinese = await errorOf(new Roomlore({ url: process.env["ROOMLORE_URL"], language: "zh" }).getRoom({ room_id: "nowhere" }));
  assert.match(chinese.message, /\p{Script=Han}/u);
  const wrong = await errorOf(events(lore.streamReply({ ...QUESTION, model_id: "no such model" })));
  assert.deepEqual([wrong.code, wrong.status], ["not-found", 404]);
});

test("pages follow one another to the end", async () => {
  const room_id = "paged";
  const ids = Array.from({ length: 25 }, (_, number) => `p${number}`);
  await lore.addMessages({ messages: ids.map((id) => ({ id, room_id, sender_id: "ann", text: `Message ${id}` })) });
  const read: string[][] = [];
  for await (const page of pages((after) => lore.listMessages({ room_id, after, limit: 10 }))) {
    read.push(page.messages.map((message) => message.id));
  }
  assert.deepEqual(read.map((page) => page.length), [10, 10, 5]);
  assert.deepEqual(read.flat(), ids);
});

test("an id may have any letters", async () => {
  for (const id of ["a/b", "..", ".", "-", "50% off?", "群 1", "a\\b", "%2F"]) {
    await lore.addMessages({ id, room_id: id, sender_id: "ann", text: "Hello" });
    const { message } = await lore.getMessage({ room_id: id, message_id: id });
    assert.deepEqual([message.room_id, message.id], [id, id]);
  }
});

test("a reply comes piece by piece, and ends when nobody reads on", async () => {
  const room_id = "stories";
  let text = "";
  for await (const event of lore.streamReply({ room_id, message: { id: "s1", sender_id: "ann", text: "Tell me a story" } })) {
    if (event.event === "text") text += event.data.text;
    if (text.length > 20) break;
  }
  assert.match(text, /^A long story\. /);
  const ending = new AbortController();
  const message = { id: "s2", sender_id: "ann", text: "Another story" };
  const aborted = async (): Promise<void> => {
    for await (const { event } of lore.streamReply({ room_id, message }, { signal: ending.signal })) {
      if (event === "text") ending.abort(new Error("enough"));
    }
  };
  await assert.rejects(aborted, { message: "enough" });
  for (let tries = 0; tries < 100; tries++) {
    const { messages } = await lore.listMessages({ room_id });
    if (messages.filter((message) => message.role === "assistant").length === 2) return;
    await sleep(100);
  }
  assert.fail("the server did not notice that nobody reads on");
});

test("the key and the language are sent, and the path of the url is kept", async (context) => {
  const { client, asked } = await served(context, [json(200, { status: "ok" })], { apiKey: "key-1", language: "zh" });
  await client.live();
  assert.deepEqual(
    [asked[0]?.url, asked[0]?.headers.authorization, asked[0]?.headers["accept-language"]],
    ["/under/health/live", "Bearer key-1", "zh"],
  );
  assert.throws(() => new Roomlore({ apiKey: "secret\n" }), (error: Error) => !error.message.includes("secret"));
});

const LATER = { "Retry-After": "0" };
const REPEATED: [string, (client: Roomlore) => Promise<unknown>, (response: ServerResponse) => void, number][] = [
  ["a GET", (client) => client.live(), problem(503, LATER), 3],
  ["a GET over the quota", (client) => client.live(), problem(429, LATER), 3],
  ["a GET that waiting does not help", (client) => client.live(), problem(429), 1],
  ["a GET that would wait too long", (client) => client.live(), problem(503, { "Retry-After": "99" }), 1],
  ["a GET that failed in the server", (client) => client.live(), problem(500), 1],
  ["a GET whose connection ends", (client) => client.live(), (response) => void response.destroy(), 3],
  ["a DELETE", (client) => client.deleteMessage({ room_id: "r", message_id: "m" }), problem(503, LATER), 3],
  ["messages", (client) => client.addMessages({ id: "m", room_id: "r", sender_id: "a" }), problem(503, LATER), 3],
  ["an edit", (client) => client.editMessage({ room_id: "r", message_id: "m", text: "" }), problem(503, LATER), 1],
  ["a turn", (client) => client.writeTurn({ conversation_id: "c", user_query: "Tea?" }), problem(503, LATER), 1],
  ["a reply", (client) => events(client.streamReply(QUESTION)), problem(503, LATER), 1],
];
for (const [what, call, answer, times] of REPEATED) {
  test(`${what}: sent ${times} times`, async (context) => {
    const { client, asked } = await served(context, [answer], { timeoutMs: 5000 });
    const error = await errorOf(call(client));
    assert.equal(asked.length, times);
    assert.equal(error.temporary, true);
  });
}

test("a request that is repeated may succeed, and retries can be turned off", async (context) => {
  const { client, asked } = await served(context, [problem(503, LATER), json(200, { status: "ok" })]);
  assert.equal((await client.live()).status, "ok");
  assert.equal(asked.length, 2);
  const other = await served(context, [problem(503, LATER)]);
  await errorOf(other.client.live({}, { retries: 0 }));
  assert.equal(other.asked.length, 1);
});

test("time limits and signals end a request", async (context) => {
  const { client } = await served(context, [() => undefined]);
  const late = await errorOf(client.live({}, { timeoutMs: 50 }));
  assert.deepEqual([late.code, late.status, late.temporary], ["timeout", 0, true]);
  await assert.rejects(client.live({}, { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
  await assert.rejects(client.live({}, { signal: AbortSignal.abort() }), { name: "AbortError" });
  const { client: slow, asked } = await served(context, [problem(503, { "Retry-After": "9" })]);
  await assert.rejects(slow.live({}, { signal: AbortSignal.timeout(2000) }), { name: "TimeoutError" });
  assert.equal(asked.length, 1);
});

test("no roomlore at the url: says so in both languages", async (context) => {
  const { client } = await served(context, [(response) => void response.writeHead(200, { "Content-Type": "text/html" }).end("<html>")]);
  assert.equal((await errorOf(client.live())).code, "unreadable-answer");
  assert.equal((await errorOf(events(client.streamReply(QUESTION)))).code, "unreadable-answer");
  const { client: proxy } = await served(context, [(response) => void response.writeHead(404).end("<html>")]);
  const notThere = await errorOf(proxy.live());
  assert.deepEqual([notThere.code, notThere.status], ["unreadable-answer", 404]);
  const nowhere = { url: `http://localhost:${await closedPort()}`, retries: 0 };
  const error = await errorOf(new Roomlore(nowhere).live());
  assert.equal(error.code, "unreachable");
  assert.match(error.message, /^Nothing answers at http:\/\/localhost:\d+ \(.*ECONNREFUSED.*\)\. Is roomlore serve running there\?$/);
  assert.match((await errorOf(new Roomlore({ ...nowhere, language: "zh" }).live())).message, /没有应答/);
});

const STREAMS: [string, string[], string[] | string][] = [
  ["comments, and lines of all three ends", [": wait\n\n", "event: start\r", "\ndata: {}\r\n", "\r\n", "event: text\rdata: {}\r\r", DONE], ["start", "text", "done"]],
  ["letters cut in two", ['event: text\ndata: {"text": "茶', '"}\n', "\n", DONE], ["text", "done"]],
  ["data on several lines", ['event: text\ndata: {"text":\ndata: "a"}\n\n', DONE], ["text", "done"]],
  ["nothing after the last event", [DONE, DONE], ["done"]],
  ["an error", ['event: error\ndata: {"type": "urn:roomlore:bad-model-output", "detail": "No sense.", "status": 502}\n\n'], "bad-model-output"],
  ["an end in the middle", ["event: start\ndata: {}\n\n", 'event: text\ndata: {"te'], "broken-off"],
];
for (const [what, pieces, expected] of STREAMS) {
  test(`a stream: ${what}`, async (context) => {
    const { client } = await served(context, [(response) => void streaming(...pieces)(response)]);
    const read = events(client.streamReply(QUESTION));
    if (typeof expected === "string") assert.equal((await errorOf(read)).code, expected);
    else assert.deepEqual(await read, expected);
  });
}

test("the time limit of a stream begins anew with each piece", async (context) => {
  const pieces = ["event: text\ndata: {}\n\n", ...Array<string>(75).fill(": still there\n\n"), DONE];
  const { client } = await served(context, [(response) => void streaming(...pieces)(response)]);
  assert.deepEqual(await events(client.streamReply(QUESTION, { timeoutMs: 1000 })), ["text", "done"]);
  for await (const { event } of client.streamReply(QUESTION, { timeoutMs: 1000 })) {
    await sleep(event === "done" ? 0 : 1500);
  }
  const { client: silent } = await served(context, [(response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" }).write(": hello\n\n");
  }]);
  assert.equal((await errorOf(events(silent.streamReply(QUESTION, { timeoutMs: 100 })))).code, "timeout");
});

test("lines are read as they come, also a very long one", async (context) => {
  const record = { context_id: "c", llm_response: "x".repeat(3_000_000) };
  const { client } = await served(context, [(response) => {
    response.writeHead(200, { "Content-Type": "application/x-ndjson" }).end(`${JSON.stringify(record)}\n{"context_id":"d"}`);
  }]);
  const read: string[] = [];
  for await (const { context_id } of client.exportUsage()) read.push(context_id);
  assert.deepEqual(read, ["c", "d"]);
});
