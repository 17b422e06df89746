/**
 * The role `api` in a process that counts its requests only in some slices of time, so that requests with and without metrics are compared in
 * one process: two processes of one program differ by some percent for as long as they live.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { openLog } from "#lib/log.ts";
import { metrics } from "#lib/metrics.ts";
import { startService } from "../src/service/assemble.ts";
import { readConfig } from "../src/service/settings/settings.ts";

export type SliceOrder =
  | { readonly want: "url" }
  | {
      readonly want: "slices";
      readonly seconds: number;
      readonly sliceMs: number;
      /** How often a request is counted in the slices with metrics. */
      readonly times: number;
    };

export interface Slice {
  readonly isObserving: boolean;
  /** CPU microseconds of the process for each request; null where there were too few: before the load, or on a busy machine. */
  readonly cpuUs: number | null;
}

const REQUESTS_MIN = 20;

const service = await startService(
  readConfig(process.env),
  openLog({ level: "warn", format: "json" }),
  ["api"],
  process.env,
);

const { httpRequests } = metrics;
const real = { ...httpRequests };
let times = 1;
let requests = 0;
// All slices go through the same function.
httpRequests.observe = (labels, seconds) => {
  requests += 1;
  for (let count = 0; count < times; count++) real.observe(labels, seconds);
};

/** Each kind comes first in half of all pairs, and two of the same are next to each other. */
const CYCLE = [true, false, false, true];

async function measureSlices(order: SliceOrder & { want: "slices" }): Promise<readonly Slice[]> {
  const slices: Slice[] = [];
  const untilMs = performance.now() + order.seconds * 1_000;
  while (performance.now() < untilMs)
    for (const isObserving of CYCLE) {
      times = isObserving ? order.times : 0;
      requests = 0;
      const before = process.cpuUsage();
      await sleep(order.sliceMs);
      const { user, system } = process.cpuUsage(before);
      const isWhole = requests >= REQUESTS_MIN && user + system > 0;
      slices.push({ isObserving, cpuUs: isWhole ? (user + system) / requests : null });
    }
  times = 1;
  return slices;
}

process.on("message", (order: SliceOrder) => {
  if (order.want === "url") process.send?.({ url: service.url });
  else void measureSlices(order).then((measured) => process.send?.(measured));
});
