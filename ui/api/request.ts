import type { Static, TObject } from "typebox";
import type { OperatorAnswer, OperatorOperation } from "#contract/operator/operation.ts";
import { ApiFailure, type FailureDetail } from "./failure.ts";
import { noteServiceTime } from "../parts/now.ts";
import { askForCode } from "./step-up.ts";

/** The names in braces of an operation's path. */
type ParamsOf<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | ParamsOf<Rest> : never;
type WhenAny<Names extends string> = [Names] extends [never]
  ? unknown
  : { readonly params: Record<Names, string> };
type Bodied<O extends OperatorOperation> = O["body"] extends TObject
  ? { readonly body: Static<O["body"]> }
  : unknown;
type Queried<O extends OperatorOperation> = O["query"] extends TObject
  ? {
      readonly query?: { readonly [Name in keyof Static<O["query"]>]?: Static<O["query"]>[Name] | undefined };
    }
  : unknown;

/** What a call of an operation must be given. */
export type InputOf<O extends OperatorOperation> = WhenAny<ParamsOf<O["path"]>> & Bodied<O> & Queried<O>;

/** An operation as the browser knows it; `operations.ts` has one for each, generated. */
export interface Endpoint<O extends OperatorOperation> {
  readonly method: O["method"];
  readonly path: O["path"];
  /** Never there; it carries the types. */
  readonly operation?: O;
}

/** What a call of an endpoint answers: `AnswerOf<typeof listRuns>`. */
export type AnswerOf<E extends { readonly operation?: OperatorOperation }> = OperatorAnswer<
  NonNullable<E["operation"]>
>;

export const endpoint = <O extends OperatorOperation>(method: O["method"], path: O["path"]): Endpoint<O> => ({
  method,
  path,
});

interface Given {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
}

const ANY = "any";
let csrfToken = ANY;

/** Of `GET /me` and whatever else answers with it; another one after each sign-in and step-up. */
export function keepCsrfToken(token: string | null): void {
  csrfToken = token ?? ANY;
}

let renewCsrfToken: () => Promise<void> = async () => {};

/** `renew` reads the session's present token and keeps it, or throws. */
export function renewCsrfTokenBy(renew: () => Promise<void>): void {
  renewCsrfToken = renew;
}

/** The dashboard is at `…/dashboard/`, the API beside it. */
const API = new URL("../operator/v1", document.baseURI).href;

/** An address of the API, for links that download. */
export function addressOf<O extends OperatorOperation>({ path }: Endpoint<O>, input: InputOf<O>): string {
  const { params = {}, query = {} } = input as Given;
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") search.set(name, `${value}`);
  return `${API}${filled}${search.size > 0 ? `?${search}` : ""}`;
}

/**
 * Calls an operation. Throws ApiFailure. Where the API wants the second factor given just now, the person is asked for it, and the call
 * is made again.
 */
export async function call<O extends OperatorOperation>(
  to: Endpoint<O>,
  input: InputOf<O>,
  signal?: AbortSignal,
): Promise<OperatorAnswer<O>> {
  try {
    return await sendRenewed(to, input, signal);
  } catch (error) {
    if (!(error instanceof ApiFailure) || !error.has("step_up_required")) throw error;
    await askForCode();
    return await sendRenewed(to, input, signal);
  }
}

/** A step-up or a sign-in in another tab gives the session another token: it is read once, and the request repeated. */
async function sendRenewed<O extends OperatorOperation>(
  to: Endpoint<O>,
  input: InputOf<O>,
  signal: AbortSignal | undefined,
): Promise<OperatorAnswer<O>> {
  const sent = csrfToken;
  try {
    return await send(to, input, signal);
  } catch (error) {
    if (!(error instanceof ApiFailure) || !error.has("csrf")) throw error;
    // Another request may have renewed it meanwhile.
    if (csrfToken === sent) await renewCsrfToken();
    return await send(to, input, signal);
  }
}

async function send<O extends OperatorOperation>(
  to: Endpoint<O>,
  input: InputOf<O>,
  signal: AbortSignal | undefined,
): Promise<OperatorAnswer<O>> {
  const { body } = input as Given;
  const isUnsafe = to.method !== "get";
  const response = await fetch(addressOf(to, input), {
    method: to.method.toUpperCase(),
    credentials: "same-origin",
    redirect: "error",
    headers: {
      accept: "application/json",
      ...(isUnsafe ? { "x-csrf-token": csrfToken } : {}),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiFailure(0, "Check your network, then try again.");
  });
  noteServiceTime(response.headers.get("date"));
  if (!response.ok) throw await readFailure(response);
  // The contract's schemas wrote it.
  return (response.status === 204 ? undefined : await response.json()) as OperatorAnswer<O>;
}

interface Envelope {
  readonly error?: { readonly message?: string; readonly details?: readonly FailureDetail[] };
}

async function readFailure(response: Response): Promise<ApiFailure> {
  const envelope = (await response.json().catch(() => ({}))) as Envelope;
  return new ApiFailure(
    response.status,
    envelope.error?.message ?? `The service answered ${response.status}.`,
    {
      details: envelope.error?.details ?? [],
      requestId: response.headers.get("x-request-id"),
      retryAfterSeconds: Number(response.headers.get("retry-after")) || null,
    },
  );
}
