import { Latchkey } from "../../sdk/typescript/src/latchkey.ts";

/** The customer's backend. It knows the API through the SDK, and nothing internal to the service. */
export interface Backend {
  readonly latchkey: Latchkey;
  /** For each call: once it is aborted, no request is sent any more, nor sent again. */
  readonly signal: AbortSignal;
  /** Of the last response, for the reader: the SDK's callers need neither. */
  readonly lastResponse: () => { readonly status: number; readonly replayed: boolean };
}

/** Enough for a service that restarts. */
const RETRIES_MAX = 10;

export function openBackend(serviceUrl: string, apiKey: string, signal: AbortSignal): Backend {
  let last = { status: 0, replayed: false };
  const latchkey = new Latchkey({
    baseUrl: serviceUrl,
    apiKey,
    maxRetries: RETRIES_MAX,
    fetch: async (...request) => {
      const response = await fetch(...request);
      last = {
        status: response.status,
        replayed: response.headers.get("idempotent-replay") === "true",
      };
      return response;
    },
  });
  return { latchkey, signal, lastResponse: () => last };
}
