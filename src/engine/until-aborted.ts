import type { BoundExpressions } from "#domain/expression.ts";
import type { RecordBatches } from "#domain/record.ts";

/** The outcome of `work`, or a throw of the signal's reason as soon as it aborts. The work itself is not stopped. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** docs/blueprints.md#nodes: a batch may take minutes in its thread, which hears no signal; the code that waits for it stops waiting. */
export function abortableExpressions(expressions: BoundExpressions, signal: AbortSignal): BoundExpressions {
  return {
    evaluate: async (source, scope) => await untilAborted(expressions.evaluate(source, scope), signal),
    render: async (template, scope) => await untilAborted(expressions.render(template, scope), signal),
    evaluateBatch: async (sources, rows) =>
      await untilAborted(expressions.evaluateBatch(sources, rows), signal),
  };
}

/** The records of another node, which works under its own time limit, for as long as the signal allows. */
export async function* abortableBatches(batches: RecordBatches, signal: AbortSignal): RecordBatches {
  const source = batches[Symbol.asyncIterator]();
  try {
    for (;;) {
      const step = await untilAborted(source.next(), signal);
      if (step.done === true) return;
      yield step.value;
    }
  } finally {
    // After an abort the source may still be busy, and ends by itself.
    const ended = source.return?.();
    if (signal.aborted) ended?.catch(() => undefined);
    else await ended;
  }
}
