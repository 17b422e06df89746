import { setTimeout as sleep } from "node:timers/promises";

/** One event of a stream, and when it came (performance.now). */
export interface ServerEvent {
  readonly type: string;
  readonly id: string;
  readonly data: any;
  readonly atMs: number;
}

/** An open stream of a run's events. */
export interface EventStream {
  readonly status: number;
  readonly headers: Headers;
  /** Every event so far. */
  readonly events: readonly ServerEvent[];
  /** Everything that came, comments too. */
  text(): string;
  /** Resolves when the service has ended the stream. */
  readonly ended: Promise<void>;
  /** The first event for which `matches` gives true; waits for it. */
  next(matches: (event: ServerEvent) => boolean, timeoutMs?: number): Promise<ServerEvent>;
  /** Hangs up. */
  close(): void;
}

const WAIT_MS = 15_000;

/** Opens `GET /blueprint-runs/{runId}/events` as a client with nothing but HTTP would. */
export async function openEvents(
  serviceUrl: string,
  apiKey: string,
  runId: string,
  headers: Record<string, string> = {},
): Promise<EventStream> {
  return await openStream(serviceUrl, apiKey, `/blueprint-runs/${runId}/events`, headers);
}

/** The same for another stream of the API. */
export async function openStream(
  serviceUrl: string,
  apiKey: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<EventStream> {
  const hangUp = new AbortController();
  const response = await fetch(`${serviceUrl}/api/v1${path}`, {
    headers: { authorization: `Bearer ${apiKey}`, ...headers },
    signal: hangUp.signal,
  });
  const events: ServerEvent[] = [];
  let text = "";
  let rest = "";
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      const more = decoder.decode(chunk, { stream: true });
      text += more;
      const blocks = (rest + more).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parseBlock(block);
        if (event) events.push(event);
      }
    }
  };
  const ended = read();
  ended.catch(() => undefined);
  return {
    status: response.status,
    headers: response.headers,
    events,
    text: () => text,
    ended,
    next: async (matches, timeoutMs = WAIT_MS) => {
      const deadline = performance.now() + timeoutMs;
      for (;;) {
        const found = events.find(matches);
        if (found) return found;
        if (performance.now() > deadline) throw new Error(`no such event in ${timeoutMs} ms:\n${text}`);
        await sleep(5);
      }
    },
    close: () => hangUp.abort(),
  };
}

function parseBlock(block: string): ServerEvent | undefined {
  const fields = new Map(
    block
      .split("\n")
      .filter((line) => !line.startsWith(":"))
      .map((line): [string, string] => {
        const at = line.indexOf(": ");
        return [line.slice(0, at), line.slice(at + 2)];
      }),
  );
  const data = fields.get("data");
  if (data === undefined) return undefined;
  const [type = "message", id = ""] = [fields.get("event"), fields.get("id")];
  return { type, id, data: JSON.parse(data) as unknown, atMs: performance.now() };
}
