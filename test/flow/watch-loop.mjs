/**
 * Preloaded into a service (`--import`): writes down how long its main thread kept those waiting who came meanwhile, without the time in
 * which it was ready to run and had no core. One JSON line a quarter of a second: `{ ms, held: [ms, ...] }`.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

const EVERY_MS = 5;
const WRITE_MS = 250;
const file = process.env["LATCHKEY_TEST_LOOP_FILE"];

/** How long the main thread has run, and how long it was ready to and had no core. Linux says so. */
function schedule() {
  const [ran, starved] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ");
  return { ranMs: Number(ran) / 1e6, starvedMs: Number(starved) / 1e6 };
}

if (isMainThread && file) {
  let [last, before, written] = [performance.now(), schedule(), performance.now()];
  let held = [];
  setInterval(() => {
    const [now, after] = [performance.now(), schedule()];
    // No longer than it ran: when it waits for another thread of its own, such as one that collects garbage, that one has no core.
    const heldMs = Math.min(now - last - (after.starvedMs - before.starvedMs), after.ranMs - before.ranMs);
    if (heldMs > 2 * EVERY_MS) held.push(heldMs);
    [last, before] = [now, after];
    if (now - written < WRITE_MS) return;
    appendFileSync(file, `${JSON.stringify({ ms: now - written, held })}\n`);
    [written, held] = [now, []];
  }, EVERY_MS).unref();
}
