/**
 * Preloaded into a service (`--import`): writes down how long its main thread kept those waiting who came meanwhile, without the time in
 * which it was ready to run and had no core. One JSON line a quarter of a second: `{ ms, held: [ms, ...] }`.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

const EVERY_MS = 5;
const WRITE_MS = 250;
const file = process.env["LATCHKEY_TEST_LOOP_FILE"];

/** Linux says so. */
function starvedMs() {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
}

if (isMainThread && file) {
  let [last, starved, written] = [performance.now(), starvedMs(), performance.now()];
  let held = [];
  setInterval(() => {
    const [now, starvedNow] = [performance.now(), starvedMs()];
    const heldMs = now - last - (starvedNow - starved);
    if (heldMs > 2 * EVERY_MS) held.push(heldMs);
    [last, starved] = [now, starvedNow];
    if (now - written < WRITE_MS) return;
    appendFileSync(file, `${JSON.stringify({ ms: now - written, held })}\n`);
    [written, held] = [now, []];
  }, EVERY_MS).unref();
}
