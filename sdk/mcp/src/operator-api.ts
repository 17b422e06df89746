/** Where the service is, and with what to sign in there. */
export interface ServiceOptions {
  /** Without a trailing slash. */
  readonly url: string;
  readonly token: string;
  readonly fetch?: typeof fetch;
}

export interface OperatorRequest {
  readonly method: string;
  /** Below `/operator/v1`, with its query. */
  readonly path: string;
  readonly body: object | null;
  readonly signal: AbortSignal;
}

/** A refusal, or a service that can't be reached. The message is for the assistant, and never has the token. */
export class OperatorFailure extends Error {
  override readonly name = "OperatorFailure";
}

const ANSWER_MS = 60_000;
/** More than this fits no assistant's context. */
const ANSWER_CHARACTERS_MAX = 400_000;

/** Sends one request with the operator token. Redirects are not followed: they could lead the token elsewhere. Throws OperatorFailure. */
export async function callOperatorApi(
  { url, token, fetch: send = fetch }: ServiceOptions,
  { method, path, body, signal }: OperatorRequest,
): Promise<unknown> {
  let response: Response;
  let text: string;
  try {
    response = await send(`${url}/operator/v1${path}`, {
      method,
      redirect: "error",
      headers: {
        authorization: `Bearer ${token}`,
        accept: "application/json",
        ...(body && { "content-type": "application/json" }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
    });
    text = await response.text();
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { readonly code?: string };
    throw new OperatorFailure(
      `${url} can't be reached (${code ?? "no answer"}). Check LATCHKEY_URL, and whether the service is running.`,
    );
  }
  if (!response.ok) throw new OperatorFailure(explain(url, response.status, text));
  if (text.length > ANSWER_CHARACTERS_MAX)
    throw new OperatorFailure(
      `The answer is too large (${text.length} characters). Narrow it, for example with \`limit\`.`,
    );
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    throw new OperatorFailure(`${url} did not answer as a Latchkey service does. Check LATCHKEY_URL.`);
  }
}

/** The service's own message, with its details. */
function explain(url: string, status: number, text: string): string {
  try {
    const { error } = JSON.parse(text) as {
      readonly error: {
        readonly message: string;
        readonly details?: readonly { readonly message?: string }[];
      };
    };
    const details = (error.details ?? [])
      .map(({ message }) => message)
      .filter((each) => each !== error.message);
    return [`${status}: ${error.message}`, ...details].join("\n");
  } catch {
    return `${url} answered ${status}, and not as a Latchkey service does. Check LATCHKEY_URL.`;
  }
}
