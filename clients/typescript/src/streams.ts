/** Streams of HTTP, read as they arrive. */

export type ServerEvent = { event: string; data: string };

/** Yield the lines of a body. `clock` runs while its next piece is waited for, and not while the reader is busy. Who stops
 * reading closes the connection. */
export async function* linesOf(
  body: ReadableStream<Uint8Array>,
  clock: { begin(): void; end(): void },
): AsyncGenerator<string, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (let done = false; !done; ) {
      clock.begin();
      const read = await reader.read();
      clock.end();
      done = read.done;
      const piece = decoder.decode(read.value, { stream: !done });
      rest += piece;
      if (!/[\r\n]/.test(piece)) continue;
      // A "\r" at the end may be half of "\r\n".
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      yield* lines;
    }
    if (rest) yield rest.replace(/\r$/, "");
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Yield the events of a stream of server-sent events. One that is not followed by an empty line is not complete. */
export async function* eventsOf(lines: AsyncIterable<string>): AsyncGenerator<ServerEvent, void> {
  let event = "message";
  let data: string[] = [];
  for await (const line of lines) {
    if (line === "") {
      if (data.length > 0) yield { event, data: data.join("\n") };
      [event, data] = ["message", []];
      continue;
    }
    const colon = line.indexOf(":");
    const [name, value] = colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
    if (name === "event") event = value;
    if (name === "data") data.push(value);
  }
}
