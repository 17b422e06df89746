import type { Clock } from "./clock.ts";

/** What a group does with its calls. */
export interface GroupOptions<Call, Answer> {
  /** Carries out a batch, all of it or nothing; the answers in the order of the calls. */
  readonly together: (calls: readonly Call[]) => Promise<readonly Answer[]>;
  /** Carries out one call of a batch that has failed, so that a bad one never fails its neighbours. */
  readonly alone: (call: Call) => Promise<Answer>;
  /** Whether that may help. No: every call of the batch fails with its error (the connection is gone). */
  readonly mayGoAlone: (error: unknown) => boolean;
  readonly clock: Clock;
  readonly callsMax: number;
  readonly batchesMax: number;
  /** A call that could not be sent within this is refused (Infinity: none is). One that was sent waits for its answer, whatever that takes. */
  readonly waitMaxMs: number;
}

/** A call waited too long for its turn: nothing of it was done. */
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
 * Gathers concurrent calls into batches. A lone call goes out in this turn of the event loop, with those that the same turn
 * has brought; calls that come while `batchesMax` batches are under way form the next one. There is no waiting for company: a
 * fixed time to collect made one caller four times slower (docs/decisions/0007).
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
      // Their turn is over: what a bad one waits for alone must not hold up the next batch.
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
