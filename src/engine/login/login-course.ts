import { OutboundError } from "#domain/http-exchange.ts";
import type { NewEvidence } from "#domain/page-evidence.ts";
import type { ShownAnswer } from "#domain/shown-answer.ts";
import type { Strategy } from "#domain/strategy.ts";
import { Secret } from "#lib/secret.ts";
import { LoginFailure, type LoginSession } from "#strategies/define-login.ts";
import type { CredentialFields, LoginCourse } from "./login-values.ts";
import { secretValues } from "./login-secrets.ts";
import { openDoor } from "#engine/redaction/door.ts";
import { redactorOf } from "#engine/redaction/redact.ts";
import { openRunSecrets, type RunSecrets } from "#engine/redaction/run-secrets.ts";
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

/** The parts of a failed login that operators see: the step, its answer, and what the page of a browser showed. */
export async function shownOf(error: LoginFailure | OutboundError): Promise<{
  readonly loginStep: string | null;
  readonly answer: ShownAnswer | null;
  readonly evidence: NewEvidence | null;
}> {
  const evidence = error instanceof LoginFailure ? error.evidence : null;
  return { ...(await courseShown(error)), evidence };
}

async function courseShown(
  error: LoginFailure | OutboundError,
): Promise<{ readonly loginStep: string | null; readonly answer: ShownAnswer | null }> {
  const course = courses.get(error);
  const loginStep = course?.step ?? null;
  if (course === undefined || course.answer === null) return { loginStep, answer: null };
  const secrets = secretsOfCourse(course.strategy, course.fields, course.session);
  if (secrets === null) return { loginStep, answer: null };
  // Like a node's answer, it passes the door first: the redactor is the second net.
  const answer = await openDoor(secrets, null).enter(course.answer);
  return { loginStep, answer: await showAnswer(answer, redactorOf(secrets), "login") };
}

/** What a login has sent and received so far; null: there are more values than a redactor looks for. */
export function secretsOfCourse(
  strategy: Strategy,
  fields: Secret<CredentialFields>,
  session: LoginSession,
): RunSecrets | null {
  try {
    return openRunSecrets(secretValues(strategy, fields, new Secret(session)));
  } catch (tooMany) {
    if (tooMany instanceof LoginFailure) return null;
    throw tooMany;
  }
}
