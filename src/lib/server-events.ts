/** One event of a stream. */
export interface ServerEvent {
  readonly type: string;
  readonly id: string;
  readonly data: string;
}

/** The events of a `text/event-stream` (HTML Standard, "Server-sent events"). */
export async function* readServerEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent, void> {
  let [type, id, data] = ["message", "", ""];
  for await (const line of linesOf(bytes)) {
    if (line === "") {
      if (data !== "") yield { type, id, data };
      [type, data] = ["message", ""];
      continue;
    }
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "event") type = value;
    if (field === "id") id = value;
    if (field === "data") data += data === "" ? value : `\n${value}`;
  }
}

async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of bytes) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r\n|\n/);
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
