import { setTimeout as sleep } from "node:timers/promises";

/** A process that runs with `--inspect`, over its DevTools protocol. */
export interface Inspected {
  /** Memory after a full collection. */
  memory(): Promise<{ readonly rssBytes: number; readonly heapBytes: number }>;
  /** What the CPU did for so long: functions by their own time. */
  profile(seconds: number): Promise<readonly ProfileLine[]>;
  close(): void;
}

export interface ProfileLine {
  readonly what: string;
  readonly share: number;
}

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

export async function inspect(url: string): Promise<Inspected> {
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve, { once: true });
    socket.addEventListener("error", () => reject(new Error("the inspector can't be reached")), {
      once: true,
    });
  });
  const waiting = new Map<number, (result: unknown) => void>();
  let calls = 0;
  socket.addEventListener("message", ({ data }) => {
    const { id, result } = JSON.parse(String(data)) as { id?: number; result?: unknown };
    if (id !== undefined) waiting.get(id)?.(result);
  });
  const call = async <Result>(method: string, params: object = {}): Promise<Result> =>
    await new Promise<Result>((resolve) => {
      const id = ++calls;
      waiting.set(id, (result) => {
        waiting.delete(id);
        resolve(result as Result);
      });
      socket.send(JSON.stringify({ id, method, params }));
    });
  return {
    memory: async () => {
      await call("HeapProfiler.collectGarbage");
      const expression = "JSON.stringify(process.memoryUsage())";
      const answer = await call<{ result: { value: string } }>("Runtime.evaluate", { expression });
      const usage = JSON.parse(answer.result.value) as NodeJS.MemoryUsage;
      return { rssBytes: usage.rss, heapBytes: usage.heapUsed };
    },
    profile: async (seconds) => {
      await call("Profiler.enable");
      await call("Profiler.start");
      await sleep(seconds * 1_000);
      return linesOf((await call<{ profile: Profile }>("Profiler.stop")).profile);
    },
    close: () => socket.close(),
  };
}

function linesOf(profile: Profile): readonly ProfileLine[] {
  const names = new Map(
    profile.nodes.map(({ id, callFrame }) => {
      const file = callFrame.url.replace(/^.*\/node_modules\//, "").replace(/^.*\/src\//, "src/");
      return [id, `${callFrame.functionName || "(anonymous)"} ${file}:${callFrame.lineNumber + 1}`];
    }),
  );
  const selfUs = new Map<string, number>();
  let totalUs = 0;
  profile.samples.forEach((id, index) => {
    const deltaUs = profile.timeDeltas[index] ?? 0;
    const what = names.get(id) ?? "?";
    totalUs += deltaUs;
    selfUs.set(what, (selfUs.get(what) ?? 0) + deltaUs);
  });
  return [...selfUs].map(([what, us]) => ({ what, share: us / totalUs })).sort((a, b) => b.share - a.share);
}
