import { FRESH } from "./fresh.ts";
import type { SqlScenario } from "./sql-rows.ts";
import { TRIGGER_BODY, type Stage } from "./stage.ts";

/** One kind of request. */
export interface RequestKind {
  /** For `--only`. */
  readonly id: string;
  readonly title: string;
  readonly status: number;
  /** `url`: the service's, for what has to be made first. */
  readonly requests: (stage: Stage, url: string) => readonly WireRequest[] | Promise<readonly WireRequest[]>;
}

/** The same, measured against its limits. */
export interface Scenario extends RequestKind {
  readonly sql: SqlScenario;
  /** Of the lower of bare server and SQL alone; null: none was set. */
  readonly goal: number | null;
}

export interface WireRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const REPLAYED = 1_000;

function post(stage: Stage, path: string, body: string, headers: Record<string, string> = {}): WireRequest {
  return {
    method: "POST",
    path: `/api/v1${path}`,
    headers: { Authorization: `Bearer ${stage.apiKey}`, "Content-Type": "application/json", ...headers },
    body,
  };
}

function get(stage: Stage, path: string): WireRequest {
  return {
    method: "GET",
    path: `/api/v1${path}`,
    headers: { Authorization: `Bearer ${stage.apiKey}` },
    body: "",
  };
}

const INVOICES = "/blueprints/invoices/trigger";

export const SCENARIOS: readonly Scenario[] = [
  {
    id: "trigger",
    title: "trigger without key",
    status: 202,
    sql: "insertRuns",
    goal: 0.45,
    requests: (stage) => [post(stage, INVOICES, TRIGGER_BODY)],
  },
  {
    id: "fresh",
    title: "trigger, fresh key",
    status: 202,
    sql: "insertKeyedRuns",
    goal: 0.42,
    requests: (stage) => [post(stage, INVOICES, TRIGGER_BODY, { "Idempotency-Key": FRESH })],
  },
  {
    id: "credential",
    title: "the same with a credential",
    status: 202,
    sql: "insertKeyedRuns",
    goal: null,
    requests: (stage) => [
      post(
        stage,
        "/blueprints/connected/trigger",
        JSON.stringify({ ...JSON.parse(TRIGGER_BODY), credential_id: stage.credentialId }),
        { "Idempotency-Key": FRESH },
      ),
    ],
  },
  {
    id: "replay",
    title: "replay",
    status: 202,
    sql: "readAnswers",
    goal: 0.45,
    requests: (stage) =>
      stage.storedKeys
        .slice(0, REPLAYED)
        .map((key) => post(stage, INVOICES, TRIGGER_BODY, { "Idempotency-Key": key })),
  },
  {
    id: "session",
    title: "session creation",
    status: 201,
    sql: "insertSessions",
    goal: 0.25,
    requests: (stage) => [
      post(
        stage,
        "/credential-sessions",
        JSON.stringify({ strategy_id: "strat_portal", return_url: "https://app.acme.example/done" }),
      ),
    ],
  },
  {
    id: "status",
    title: "status read",
    status: 200,
    sql: "readRuns",
    goal: 0.45,
    requests: (stage) => stage.rows.runIds.map((id) => get(stage, `/blueprint-runs/${id}/status`)),
  },
  {
    id: "results",
    title: "small direct results",
    status: 200,
    sql: "readResults",
    goal: null,
    requests: (stage) =>
      stage.rows.resultRunIds.map((id) => get(stage, `/blueprint-runs/${id}/results?deliveryMethod=direct`)),
  },
];

/** A request as it goes over the line. */
export function renderRequest(request: WireRequest): string {
  const headers = { Host: "127.0.0.1", ...request.headers };
  const length =
    request.method === "POST" ? { "Content-Length": String(Buffer.byteLength(request.body)) } : {};
  const lines = Object.entries({ ...headers, ...length }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${request.method} ${request.path} HTTP/1.1\r\n${lines.join("")}\r\n${request.body}`;
}
