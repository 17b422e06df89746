/**
 * A program: `node good-client.ts URL KEY PID`. Asks for URL again and again, as a caller that polls would, and prints what each
 * answer took, as JSON. In a process of its own, so that what else a test does at the time is not in its measurements.
 */
import { readFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const POLLS = 120;

const [url = "", key = "", pid = ""] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

async function ask(): Promise<number | undefined> {
  return await new Promise((resolve, reject) => {
    get(url, { agent, headers: { authorization: `Bearer ${key}` } }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode));
    }).once("error", reject);
  });
}

/** How long the service's main thread has run so far, and how long it was ready to and had no core. Linux says so. */
function schedule(): { readonly ranMs: number; readonly starvedMs: number } {
  try {
    const [ran = "0", starved = "0"] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ");
    return { ranMs: Number(ran) / 1e6, starvedMs: Number(starved) / 1e6 };
  } catch {
    return { ranMs: 0, starvedMs: 0 };
  }
}

const polls = [];
while (polls.length < POLLS) {
  const [start, before] = [performance.now(), schedule()];
  const status = await ask();
  const [end, after] = [performance.now(), schedule()];
  polls.push({
    status,
    waitedMs: end - start,
    ranMs: after.ranMs - before.ranMs,
    starvedMs: after.starvedMs - before.starvedMs,
  });
  await sleep(10);
}
agent.destroy();
process.stdout.write(`${JSON.stringify(polls)}\n`);
