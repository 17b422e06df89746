/**
 * The roles that its arguments name (`api` without one) in a process that can be looked into: `latchkey serve` itself refuses to start under a debugger. Everything
 * behind the command line is the real thing; no measurement is taken from this process but memory and the profile.
 */
import { Session } from "node:inspector/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { openLog } from "#lib/log.ts";
import { startService, type Role } from "../src/service/assemble.ts";
import { readConfig } from "../src/service/settings/settings.ts";

export type Look =
  | { readonly want: "url" | "memory" }
  | { readonly want: "profile"; readonly seconds: number };

export interface MemoryUse {
  readonly rssBytes: number;
  /** After a full collection. */
  readonly heapBytes: number;
}

export interface ProfileLine {
  readonly what: string;
  readonly share: number;
}

const given = process.argv.slice(2).filter((name): name is Role => name === "api" || name === "worker");
const roles: readonly Role[] = given.length > 0 ? given : ["api"];
const service = await startService(
  readConfig(process.env),
  openLog({ level: "warn", format: "json" }),
  roles,
  process.env,
);

process.on("message", (look: Look) => {
  void answer(look).then((found) => process.send?.(found));
});

async function answer(look: Look): Promise<unknown> {
  if (look.want === "profile") return await profile(look.seconds);
  return look.want === "url" ? { url: service.url } : readMemory();
}

function readMemory(): MemoryUse {
  globalThis.gc?.();
  const usage = process.memoryUsage();
  return { rssBytes: usage.rss, heapBytes: usage.heapUsed };
}

/** What the CPU did for so long: functions by their own time. */
async function profile(seconds: number): Promise<readonly ProfileLine[]> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.start");
  await sleep(seconds * 1_000);
  const { profile: taken } = await session.post("Profiler.stop");
  session.disconnect();
  const names = new Map(
    taken.nodes.map(({ id, callFrame }) => {
      const file = callFrame.url.replace(/^.*\/node_modules\//, "").replace(/^.*\/src\//, "src/");
      return [id, `${callFrame.functionName || "(anonymous)"} ${file}:${callFrame.lineNumber + 1}`];
    }),
  );
  const selfUs = new Map<string, number>();
  let totalUs = 0;
  taken.samples?.forEach((id, index) => {
    const deltaUs = taken.timeDeltas?.[index] ?? 0;
    const what = names.get(id) ?? "?";
    totalUs += deltaUs;
    selfUs.set(what, (selfUs.get(what) ?? 0) + deltaUs);
  });
  return [...selfUs].map(([what, us]) => ({ what, share: us / totalUs })).sort((a, b) => b.share - a.share);
}
