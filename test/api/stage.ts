import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { request, type IncomingHttpHeaders } from "node:http";
import { moveClock } from "../clock.ts";
import { connect, openCaller, type ApiAnswer, type Caller } from "../caller.ts";
import { install, type Installation, type RunningService } from "../service.ts";

/** An answer with its bytes. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: any;
}

export interface RawRequest {
  readonly method?: string;
  /** Under `/api/v1`, unless it begins with `//`: then the rest of it, as it is. */
  readonly path: string;
  /** Sent as they are, in this order; a name may stand twice. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly body?: string | Uint8Array;
}

/** A request with exactly these headers: `fetch` joins doubled ones and adds its own. */
export async function sendRaw(serviceUrl: string, raw: RawRequest): Promise<RawAnswer> {
  const url = new URL(serviceUrl);
  const path = raw.path.startsWith("//") ? raw.path.slice(1) : `/api/v1${raw.path}`;
  const headers = [["Host", url.host], ...(raw.headers ?? [])].flat();
  if (raw.body !== undefined) headers.push("Content-Length", String(Buffer.byteLength(raw.body)));
  return await new Promise((resolve, reject) => {
    let isAnswered = false;
    const sent = request(
      { hostname: url.hostname, port: url.port, method: raw.method ?? "GET", path, headers, agent: false },
      (response) => {
        isAnswered = true;
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString("utf8");
          const body: unknown = text === "" ? undefined : JSON.parse(text);
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body });
        });
      },
    );
    // The service may answer and hang up while a body that is too large is still being sent.
    sent.on("error", (error) => (isAnswered ? undefined : reject(error)));
    // As bytes: Node writes the headers before a text as UTF-8, and before bytes as latin1.
    sent.end(raw.body === undefined ? undefined : Buffer.from(raw.body));
  });
}

export const bearer = (key: string): readonly [string, string] => ["Authorization", `Bearer ${key}`];
export const json = ["Content-Type", "application/json"] as const;

/** A refusal with these fields, by exactly one envelope. */
export function assertRefused(
  answer: ApiAnswer | RawAnswer,
  status: number,
  ...fields: readonly string[]
): void {
  assert.equal(answer.status, status, answer.text);
  assert.deepEqual(Object.keys(answer.body), ["error"]);
  assert.equal(answer.body.error.type, "validation_error");
  if (fields.length === 0) return;
  assert.deepEqual(
    answer.body.error.details.map(({ code, field }: any) => [code, field]),
    fields.map((field) => ["invalid_input_data", field]),
  );
}

/** Two accounts, `acme` and `globex`, each with a strategy, a Blueprint with a credential slot, and one without. */
export interface Stage extends AsyncDisposable {
  readonly installation: Installation;
  readonly service: RunningService;
  readonly key: string;
  readonly otherKey: string;
  readonly acme: Caller;
  readonly globex: Caller;
  /** A credential of acme's. */
  readonly credential: string;
  send(raw: RawRequest): Promise<RawAnswer>;
  /** How many rows a table has. */
  count(table: "run" | "credential_session"): Promise<number>;
  /** How many uploaded files the object store holds. */
  countFiles(): number;
  /** `0` for the present. */
  moveClock(by: string): Promise<void>;
}

const documents = (account: string): readonly string[] => [
  `account: ${account}\nallowed_origins: [https://app.${account}.example, http://localhost:3000]`,
  `strategy: strat_${account}\naccount: ${account}\nfields: [{ key: token, type: password }]\nlogin: { type: none }`,
  `blueprint: with-login
account: ${account}
credentials: { it: { strategy: strat_${account} } }
metadata: [{ name: po }, { name: __proto__ }]
nodes:
  - { id: data, type: input, refKey: data }
  - { id: file, type: input, refKey: file, accepts: file }
  - { id: list, type: parse, from: data, format: json }
  - { id: out, type: output, refKey: out, from: list }`,
  `blueprint: open
account: ${account}
metadata: [{ name: needed, required: true }, { name: needed_too, required: true }]
nodes:
  - { id: data, type: input, refKey: data, schema: { type: array } }
  - { id: list, type: parse, from: data, format: json }
  - { id: out, type: output, refKey: out, from: list }`,
];

export async function openStage(): Promise<Stage> {
  await using opened = new AsyncDisposableStack();
  const installation = opened.use(await install());
  await installation.apply(
    ...documents("acme"),
    ...documents("globex"),
    "blueprint: only-globex\naccount: globex\nnodes:\n  - { id: data, type: input, refKey: data }\n  - { id: list, type: parse, from: data, format: json }\n  - { id: out, type: output, refKey: out, from: list }",
  );
  const [key, otherKey, service] = await Promise.all([
    installation.createKey("acme"),
    installation.createKey("globex"),
    installation.serve(),
  ]);
  const acme = openCaller(service.url, key);
  const credential = await connect(acme, "strat_acme", { token: "token-of-acme" });
  const { db } = installation.database;
  const kept = opened.move();
  return {
    installation,
    service,
    key,
    otherKey,
    acme,
    globex: openCaller(service.url, otherKey),
    credential,
    send: async (raw) => await sendRaw(service.url, raw),
    count: async (table) =>
      Number((await db.query<{ count: string }>(`select count(*) as count from ${table}`))[0]?.count),
    countFiles: () =>
      readdirSync(installation.dataFolder, { recursive: true, withFileTypes: true }).filter(
        (entry) => entry.isFile() && entry.parentPath.includes("/inputs"),
      ).length,
    moveClock: async (by) => await moveClock(db, by),
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}
