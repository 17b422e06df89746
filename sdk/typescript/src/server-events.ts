/** One event of a stream. */
export interface ServerEvent<Data> {
  /** Sent back as `Last-Event-ID` after an interruption. */
  readonly id: string;
  readonly data: Data;
}

/** The events of a `text/event-stream` (HTML Standard, "Server-sent events"). Throws if the connection is cut. */
export async function* readEvents<Data>(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent<Data>> {
  let [id, data] = ["", ""];
  for await (const line of readLines(body)) {
    if (line === "") {
      if (data !== "") yield { id, data: JSON.parse(data) as Data };
      data = "";
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") id = value;
    if (field === "data") data += data === "" ? value : `\n${value}`;
  }
}

async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of chunksOf(body)) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split(/\r\n|\n/);
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

/** Not every runtime can iterate over a ReadableStream. Cancels the stream when the reader stops early. */
export async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  let isDone = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      isDone = done;
      if (done) return;
      yield value;
    }
  } finally {
    if (!isDone) await reader.cancel().catch(() => undefined);
  }
}
