import { setTimeout as sleep } from "node:timers/promises";
import { FairQueue } from "#lib/fair-queue.ts";
import { canonicalJsonInSteps, NumberText, runSteps, type JsonTree, type Steps } from "#lib/json-text.ts";

/** From this size, processing a body noticeably delays other requests. */
export const LARGE_BYTES = 65_536;

const waiting = new FairQueue<() => void>();
let isBusy = false;

/** Long enough for a small request to be authenticated, looked up and answered. */
const BETWEEN_MS = 20;

/** The maximum length of a slice, and of the pause after it: a small request returns to the event loop for each of its queries. */
const SLICE_MS = 3;
const BETWEEN_SLICES_MS = 2;

const pause = async (): Promise<void> => await sleep(BETWEEN_MS, undefined, { ref: false });

/**
 * Large bodies are processed in slices, one body at a time, with a pause after each slice: many at once must not delay
 * small requests. Senders take turns.
 */
export async function inTurn<T>(sender: string, steps: Steps<T>): Promise<T> {
  if (isBusy) await new Promise<void>((resolve) => waiting.push(sender, resolve));
  isBusy = true;
  try {
    return await inSlices(steps);
  } finally {
    void pause().then(beginNext);
  }
}

function beginNext(): void {
  const continueSession = waiting.take();
  isBusy = continueSession !== undefined;
  continueSession?.();
}

async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const end = performance.now() + SLICE_MS;
    do {
      const step = steps.next();
      if (step.done) return step.value;
    } while (performance.now() < end);
    await sleep(BETWEEN_SLICES_MS);
  }
}

/** The canonical text of a body: writing a large one takes as long as reading it did. */
export async function writeCanonical(sender: string, body: JsonTree): Promise<string> {
  const steps = canonicalJsonInSteps(body);
  return bytesLeft(body, LARGE_BYTES) < 0 ? await inTurn(sender, steps) : runSteps(steps);
}

const VALUE_BYTES = 8;

/** The rest of a budget after the cost of a tree; it stops counting below 0. */
function bytesLeft(tree: JsonTree, budget: number): number {
  let left = budget - VALUE_BYTES;
  if (typeof tree === "string") return left - tree.length;
  if (tree === null || typeof tree === "boolean" || tree instanceof NumberText) return left;
  for (const [name, item] of tree.entries()) {
    if (left < 0) break;
    left = bytesLeft(item, typeof name === "string" ? left - name.length : left);
  }
  return left;
}
