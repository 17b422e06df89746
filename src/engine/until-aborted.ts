import type { BoundExpressions } from "#domain/expression.ts";
import type { RecordBatches } from "#domain/record.ts";

/** Returns the outcome of `work`, or throws the signal's reason as soon as it aborts. The work itself is not stopped. */
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

/** docs/blueprints.md#nodes: a batch may take minutes in its thread, which ignores signals; the caller stops waiting. */
export function abortableExpressions(expressions: BoundExpressions, signal: AbortSignal): BoundExpressions {
  return {
    evaluate: async (source, scope) => await untilAborted(expressions.evaluate(source, scope), signal),
    render: async (template, scope) => await untilAborted(expressions.render(template, scope), signal),
    evaluateBatch: async (sources, rows) =>
      await untilAborted(expressions.evaluateBatch(sources, rows), signal),
  };
}

/** The records of another node, which has its own time limit, until the signal aborts. */
export async function* abortableBatches(batches: RecordBatches, signal: AbortSignal): RecordBatches {
  const source = batches[Symbol.asyncIterator]();
  try {
    for (;;) {
      const step = await untilAborted(source.next(), signal);
      if (step.done === true) return;
      yield step.value;
    }
  } finally {
    // After an abort the source may still be busy; it ends by itself.
    const ended = source.return?.();
    if (signal.aborted) ended?.catch(() => undefined);
    else await ended;
  }
}
