import {
  OutboundError,
  PASSING_FAILURES,
  PASSING_STATUSES,
  type OutboundRequest,
  type OutboundResponse,
} from "#domain/http-exchange.ts";
import { limits } from "#domain/limits.ts";
import { retryAfterMs, retryDelayMs } from "#lib/retry-delay.ts";
import type { LoginContext } from "#strategies/define-login.ts";

export interface Patience {
  /**
   * Whether the request may be sent again after the target may have got it: not when it, or one before it, held something of the
   * credential, which the target may have counted.
   */
  readonly isRepeatable: boolean;
  /** Statuses that the document expects. */
  readonly expected: readonly number[];
}

/** As reads of a run are tried again. One that never left (no connection came about) is always sent again. */
export async function sendPatiently(
  context: LoginContext,
  request: OutboundRequest,
  patience: Patience,
): Promise<OutboundResponse> {
  for (let attempt = 1; ; attempt += 1) {
    const isLast = attempt === limits.loginAttemptsMax;
    const answer = await context.send(request).catch((error: unknown) => {
      if (error instanceof OutboundError && !isLast && mayPass(error, patience)) return error;
      throw error;
    });
    if (!(answer instanceof OutboundError) && (isLast || !isPassing(answer, patience))) return answer;
    const askedMs = answer instanceof OutboundError ? null : retryAfterMs(answer.headers);
    await context.sleep(retryDelayMs(limits.loginRetry, attempt, askedMs, Math.random()));
  }
}

const mayPass = ({ failure }: OutboundError, { isRepeatable }: Patience): boolean =>
  failure === "unreachable" || (isRepeatable && PASSING_FAILURES.has(failure));

const isPassing = ({ status }: OutboundResponse, { isRepeatable, expected }: Patience): boolean =>
  isRepeatable && PASSING_STATUSES.has(status) && !expected.includes(status);
