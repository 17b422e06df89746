/** The six operations of Latchkey's interface and the embedded flow's two, as a customer's backend calls them. The API key stays here, in the backend. */
export interface Latchkey {
  createSession(request: {
    strategyId: string;
    name: string;
    returnUrl: string;
    key: string;
  }): Promise<Session>;
  readSession(id: string): Promise<Session>;
  createEmbeddedSession(request: {
    origin: string;
    blueprintKeys: readonly string[];
    name: string;
    key: string;
  }): Promise<EmbeddedSession & { readonly client_token: string; readonly embed_url: string }>;
  readEmbeddedSession(id: string): Promise<EmbeddedSession>;
  deleteCredential(id: string, key: string): Promise<void>;
  trigger(blueprint: string, body: Readonly<Record<string, unknown>>, key: string): Promise<Run>;
  readStatus(runId: string): Promise<Run>;
  readResults(runId: string): Promise<Results>;
}

export interface Session {
  readonly id: string;
  readonly status: string;
  readonly hosted_url: string | null;
  readonly credential_id: string | null;
}

export interface EmbeddedSession {
  readonly id: string;
  readonly status: string;
  readonly credential_id: string | null;
}

export interface Run {
  readonly id: string;
  readonly status: string;
  readonly progress_step?: string;
  readonly ended_at?: string | null;
}

export type Results = Readonly<Record<string, ResultSet | string>>;

interface ResultSet {
  readonly totalRecords: number;
  readonly records: readonly {
    readonly data: Readonly<Record<string, unknown>>;
    readonly errors: readonly { readonly field: string | null; readonly message: string }[];
    readonly isValid: boolean;
  }[];
}

/** What Latchkey has said no to. */
export class LatchkeyRefused extends Error {
  override readonly name = "LatchkeyRefused";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export function openLatchkey(baseUrl: string, apiKey: string): Latchkey {
  const call = async <T>(method: string, path: string, body?: unknown, key?: string): Promise<T> => {
    const response = await fetch(`${baseUrl}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(body !== undefined && { "content-type": "application/json" }),
        // The same key for the same wish: sent twice, it happens once.
        ...(key !== undefined && { "idempotency-key": key }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const answer = (text === "" ? {} : JSON.parse(text)) as { error?: { message: string } };
    if (!response.ok) throw new LatchkeyRefused(response.status, answer.error?.message ?? "no reason given");
    return answer as T;
  };
  const at = encodeURIComponent;
  return {
    createSession: async ({ strategyId, name, returnUrl, key }) =>
      await call(
        "POST",
        "/credential-sessions",
        { strategy_id: strategyId, name, return_url: returnUrl },
        key,
      ),
    readSession: async (id) => await call("GET", `/credential-sessions/${at(id)}`),
    createEmbeddedSession: async ({ origin, blueprintKeys, name, key }) =>
      await call(
        "POST",
        "/embedded-credential-sessions",
        { origin, blueprint_keys: blueprintKeys, name },
        key,
      ),
    readEmbeddedSession: async (id) => await call("GET", `/embedded-credential-sessions/${at(id)}`),
    deleteCredential: async (id, key) => await call("DELETE", `/credentials/${at(id)}`, undefined, key),
    trigger: async (blueprint, body, key) =>
      await call("POST", `/blueprints/${at(blueprint)}/trigger`, body, key),
    readStatus: async (runId) => await call("GET", `/blueprint-runs/${at(runId)}/status`),
    readResults: async (runId) => {
      const path = `/blueprint-runs/${at(runId)}/results?deliveryMethod=direct`;
      return (await call<{ results: Results }>("GET", path)).results;
    },
  };
}
