import type { Static, TObject } from "typebox";
import type { OperatorAnswer, OperatorOperation } from "#contract/operator/operation.ts";
import { ApiFailure, type FailureDetail } from "./failure.ts";
import { isTestMode } from "./mode.ts";
import { noteServiceTime } from "../parts/now.ts";
import { askForCode } from "./step-up.ts";

/** The names in braces in an operation's path. */
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

/** The input of an operation. */
export type InputOf<O extends OperatorOperation> = WhenAny<ParamsOf<O["path"]>> & Bodied<O> & Queried<O>;

/** An operation as known to the browser; `operations.ts`, which is generated, has one for each. */
export interface Endpoint<O extends OperatorOperation> {
  readonly method: O["method"];
  readonly path: O["path"];
  /** Never set; it only exists for its type. */
  readonly operation?: O;
}

/** The answer of an endpoint: `AnswerOf<typeof listRuns>`. */
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

/** Stores the token from `GET /me` and other answers. It changes after each sign-in and step-up. */
export function keepCsrfToken(token: string | null): void {
  csrfToken = token ?? ANY;
}

let renewCsrfToken: () => Promise<void> = async () => {};

/** `renew` fetches and stores the session's current token, or throws. */
export function renewCsrfTokenBy(renew: () => Promise<void>): void {
  renewCsrfToken = renew;
}

/** The dashboard is at `…/dashboard/`, and the API at `…/operator/v1/`. */
const API = new URL("../operator/v1", document.baseURI).href;

/** A URL of the API, for download links. */
export function addressOf<O extends OperatorOperation>({ path }: Endpoint<O>, input: InputOf<O>): string {
  const { params = {}, query = {} } = input as Given;
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") search.set(name, `${value}`);
  return `${API}${filled}${search.size > 0 ? `?${search}` : ""}`;
}

/** Calls an operation. Throws ApiFailure. If the API requires a recent second factor, asks for it and repeats the call. */
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

/** A step-up or a sign-in in another tab changes the session's token: it is fetched once, and the request is repeated. */
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
    // Another request may have renewed it in the meantime.
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
      ...(isTestMode ? { "latchkey-mode": "test" } : {}),
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
  // The answer was serialised with the contract's schema.
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
