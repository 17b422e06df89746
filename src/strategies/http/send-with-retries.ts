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

export interface RetryOptions {
  /**
   * Whether the request may be sent again although the target may have received it. Not if it or an earlier one contained a part
   * of the credential, because the target may have counted the attempt.
   */
  readonly isRepeatable: boolean;
  /** Statuses that the document expects. */
  readonly expected: readonly number[];
}

/** Retries like reads of a run. A request that was never sent (no connection was established) is always retried. */
export async function sendWithRetries(
  context: LoginContext,
  request: OutboundRequest,
  patience: RetryOptions,
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

const mayPass = ({ failure }: OutboundError, { isRepeatable }: RetryOptions): boolean =>
  failure === "unreachable" || (isRepeatable && PASSING_FAILURES.has(failure));

const isPassing = ({ status }: OutboundResponse, { isRepeatable, expected }: RetryOptions): boolean =>
  isRepeatable && PASSING_STATUSES.has(status) && !expected.includes(status);
