import type { FastifyReply, FastifyRequest } from "fastify";
import { isPassingFailure } from "#actions/passing-failure.ts";
import { Problem } from "#domain/problem.ts";
import { describeError, type Log } from "#lib/log.ts";
import { newId } from "#lib/new-id.ts";

/** Spec, Error object. Only this module knows the envelope. */
function problemBody(problem: Problem): string {
  const details = problem.details.map((detail) => ({
    message: detail.message,
    code: detail.code ?? null,
    field: detail.field ?? null,
  }));
  return JSON.stringify({
    error: { type: problem.type, message: problem.message, ...(details.length > 0 ? { details } : {}) },
  });
}

/** docs/decisions/0011: a fixed message; the cause goes to the log only. */
const UNEXPECTED = "An unexpected error occurred. Quote the X-Request-Id header when you report it.";

/** Anything thrown, as the Problem that the caller sees. */
function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  if (
    typeof code === "string" &&
    code.startsWith("FST_") &&
    typeof statusCode === "number" &&
    statusCode < 500
  ) {
    return frameworkProblem(code, statusCode);
  }
  if (isPassingFailure(error)) {
    return new Problem("internal_error", "The service is not available at the moment. Try again shortly.", {
      status: 503,
      headers: { "Retry-After": "1" },
      cause: error,
    });
  }
  return new Problem("internal_error", UNEXPECTED, { cause: error });
}

/** Refusals by the framework. Its own faults (5xx) count as unexpected errors of the service. */
function frameworkProblem(code: string, statusCode: number): Problem {
  if (code === "FST_ERR_BAD_URL" || code === "FST_ERR_MAX_PARAM_LENGTH" || statusCode === 404) {
    return new Problem("not_found", "Not found.");
  }
  return new Problem("validation_error", "The request is malformed.", {
    status: statusCode === 400 ? 422 : statusCode,
  });
}

interface ProblemAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The envelope. */
  readonly body: string;
}

/** What a caller is answered; failures that the caller did not cause are logged by request id. */
export function describeProblem(log: Log, request: FastifyRequest, error: unknown): ProblemAnswer {
  const problem = problemOf(error);
  if (problem.status >= 500) {
    log.error(
      { requestId: request.id, route: request.routeOptions.url, ...describeError(problem.cause) },
      "request failed",
    );
  }
  const { status, headers } = problem;
  return { status, headers, body: problemBody(problem) };
}

/** Answers with the envelope. */
export function renderProblem(log: Log, reply: FastifyReply, error: unknown): FastifyReply {
  const { status, headers, body } = describeProblem(log, reply.request, error);
  return reply.code(status).headers(headers).type("application/json; charset=utf-8").send(body);
}

/** A complete answer, as bytes on the socket, when the HTTP parser refuses the input before there is a request. */
export function clientErrorAnswer(error: { readonly code?: string }): string {
  const [status, reason] =
    error.code === "HPE_HEADER_OVERFLOW"
      ? [431, "Request Header Fields Too Large"]
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? [408, "Request Timeout"]
        : [400, "Bad Request"];
  const body = problemBody(
    new Problem("validation_error", `The request is malformed: ${reason.toLowerCase()}.`),
  );
  return (
    `HTTP/1.1 ${status} ${reason}\r\nContent-Type: application/json; charset=utf-8\r\n` +
    // Every response has it (docs/api.md#in-general).
    `X-Request-Id: ${newId("req_")}\r\nCache-Control: no-store\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  );
}
