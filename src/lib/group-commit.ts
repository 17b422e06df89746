import type { Clock } from "./clock.ts";

/** How a group executes its calls. */
export interface GroupOptions<Call, Answer> {
  /** Executes a batch atomically; returns the answers in the order of the calls. */
  readonly together: (calls: readonly Call[]) => Promise<readonly Answer[]>;
  /** Executes one call of a failed batch by itself, so that a bad call never fails others. */
  readonly alone: (call: Call) => Promise<Answer>;
  /** Whether executing the calls one by one may help. If not, as with a lost connection, all of them fail with the batch's error. */
  readonly mayGoAlone: (error: unknown) => boolean;
  readonly clock: Clock;
  readonly callsMax: number;
  readonly batchesMax: number;
  /**
   * A call that could not be sent within this time is rejected (Infinity: never). A call that was sent waits for its answer
   * without a limit.
   */
  readonly waitMaxMs: number;
}

/** A call waited too long to be sent: nothing was done. */
export class TurnMissed extends Error {
  override readonly name = "TurnMissed";
  readonly code = "ETIMEDOUT";
}

interface Waiting<Call, Answer> {
  readonly call: Call;
  readonly sinceMs: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Combines concurrent calls into batches. A single call is sent in this turn of the event loop, together with others of the same turn;
 * calls that arrive while `batchesMax` batches are in progress form the next one. There is no collection delay: a fixed delay made a
 * single caller four times slower (docs/decisions/0007).
 */
export function groupCommit<Call, Answer>(
  options: GroupOptions<Call, Answer>,
): (call: Call) => Promise<Answer> {
  let waiting: Waiting<Call, Answer>[] = [];
  let underWay = 0;
  let isDue = false;
  let isRefusalDue = false;

  const sendSoon = (): void => {
    if (waiting.length === 0 || isDue) return;
    if (underWay >= options.batchesMax) return refuseLater();
    isDue = true;
    setImmediate(() => {
      isDue = false;
      const batch = waiting.slice(0, options.callsMax);
      waiting = waiting.slice(options.callsMax);
      if (batch.length > 0) void send(batch);
      sendSoon();
    });
  };

  const refuseLater = (): void => {
    const oldest = waiting[0];
    if (isRefusalDue || !oldest || options.waitMaxMs === Infinity) return;
    isRefusalDue = true;
    options.clock.after(Math.max(oldest.sinceMs + options.waitMaxMs - options.clock.now(), 1), () => {
      isRefusalDue = false;
      const fresh = waiting.findIndex(({ sinceMs }) => options.clock.now() - sinceMs < options.waitMaxMs);
      const missed = waiting.splice(0, fresh < 0 ? waiting.length : fresh);
      for (const { reject } of missed) reject(new TurnMissed("The call waited too long for its turn"));
      refuseLater();
    });
  };

  const send = async (batch: readonly Waiting<Call, Answer>[]): Promise<void> => {
    underWay++;
    try {
      const answers = await options.together(batch.map(({ call }) => call));
      batch.forEach(({ resolve }, index) => resolve(answers[index] as Answer));
    } catch (error) {
      // Their batch has ended: a bad call that is executed by itself must not delay the next batch.
      for (const { call, resolve, reject } of batch) {
        if (options.mayGoAlone(error)) options.alone(call).then(resolve, reject);
        else reject(error);
      }
    } finally {
      underWay--;
      sendSoon();
    }
  };

  return async (call) =>
    await new Promise<Answer>((resolve, reject) => {
      waiting.push({ call, sinceMs: options.clock.now(), resolve, reject });
      sendSoon();
    });
}
