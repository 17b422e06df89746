import { OutboundError } from "#domain/http-exchange.ts";
import type { ShownAnswer } from "#domain/shown-answer.ts";
import type { Strategy } from "#domain/strategy.ts";
import { Secret } from "#lib/secret.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import type { CredentialFields, LoginCourse } from "./login-context.ts";
import { secretValues } from "./login-secrets.ts";
import { makeRedactor } from "#engine/redaction/redact.ts";
import { showAnswer } from "#engine/redaction/show-answer.ts";

interface FailedCourse extends LoginCourse {
  readonly strategy: Strategy;
  readonly fields: Secret<CredentialFields>;
}

/** Courses by the error of their login. They contain secrets and are collected with the error. */
const courses = new WeakMap<Error, FailedCourse>();

/** Attaches to the error how far its login had got. */
export function withCourse(
  error: unknown,
  strategy: Strategy,
  fields: Secret<CredentialFields>,
  course: LoginCourse,
): unknown {
  if (error instanceof LoginFailure || error instanceof OutboundError)
    courses.set(error, { ...course, strategy, fields });
  return error;
}

/** The parts of a failed login that operators see: the step and its answer. */
export async function shownOf(
  error: LoginFailure | OutboundError,
): Promise<{ readonly loginStep: string | null; readonly answer: ShownAnswer | null }> {
  const course = courses.get(error);
  const loginStep = course?.step ?? null;
  if (course === undefined || course.answer === null) return { loginStep, answer: null };
  const { answer, strategy, fields, session } = course;
  try {
    const secrets = secretValues(strategy, fields, new Secret(session));
    return { loginStep, answer: await showAnswer(answer, makeRedactor(secrets), "login") };
  } catch (tooMany) {
    // More values than the redactor looks for: nothing is shown.
    if (tooMany instanceof LoginFailure) return { loginStep, answer: null };
    throw tooMany;
  }
}
