import { load } from "cheerio";
import { REAL_TIME, setClock } from "../clock.ts";
import { openCaller, type Caller } from "../caller.ts";
import { install, type Installation, type RunningService } from "../service.ts";

export const PAGE_ORIGIN = "https://app.acme.example";

export const portalStrategy = JSON.stringify({
  strategy: "strat_portal",
  account: "acme",
  name: { en: "Northwind Portal", de: "Nordwind-Portal" },
  hosts: ["https://portal.northwind.example"],
  fields: [
    { key: "email", label: "Email address", type: "email", required: true },
    { key: "password", label: "Password", type: "password", required: true, min_length: 12 },
  ],
  login: { type: "none" },
});

export const ledgerStrategy = JSON.stringify({
  strategy: "strat_ledger",
  account: "acme",
  name: "Southgate Ledger",
  hosts: ["https://ledger.southgate.example"],
  fields: [{ key: "token", label: "Access token", type: "password", required: true }],
  login: { type: "none" },
});

/** A Blueprint of `acme` with these slots. */
export const blueprint = (key: string, slots: Readonly<Record<string, string>>, more: object = {}): string =>
  JSON.stringify({
    blueprint: key,
    account: "acme",
    name: `Blueprint ${key}`,
    credentials: Object.fromEntries(Object.entries(slots).map(([slot, strategy]) => [slot, { strategy }])),
    nodes: [
      { id: "text", type: "input", refKey: "text", accepts: "json" },
      { id: "rows", type: "parse", from: "text", format: "json" },
      { id: "out", type: "output", refKey: "out", from: "rows" },
    ],
    ...more,
  });

export const GOOD = { email: "ada@acme.example", password: "correct horse battery" };

/** What the creation answers. */
export interface EmbeddedBody {
  readonly id: string;
  readonly status: string;
  readonly embed_url: string;
  readonly client_token: string;
  readonly origin: string;
  readonly blueprint_keys: readonly string[];
  readonly selected_blueprint_key: string | null;
  readonly credential_id: string | null;
  readonly credential_ids: Readonly<Record<string, string>>;
  readonly expires_at: string;
}

export interface Embedded extends AsyncDisposable {
  readonly installation: Installation;
  readonly service: RunningService;
  readonly acme: Caller;
  create(body?: Readonly<Record<string, unknown>>): Promise<EmbeddedBody>;
  read(id: string): Promise<EmbeddedBody>;
  count(query: string): Promise<number>;
  setClock(expression?: string): Promise<void>;
}

export const accountDocument = (origins: readonly string[], more: object = {}): string =>
  JSON.stringify({ account: "acme", name: "Acme Inc.", allowed_origins: origins, ...more });

/** An installation with two strategies, and Blueprints of one slot (`one`), two (`two`) and none (`free`). */
export async function setUpEmbedded(
  options: {
    readonly origins?: readonly string[];
    readonly documents?: readonly string[];
    readonly environment?: Readonly<Record<string, string>>;
  } = {},
): Promise<Embedded> {
  const { origins = [PAGE_ORIGIN], documents = [], environment = {} } = options;
  const installation = await install(environment);
  await installation.apply(
    accountDocument(origins),
    portalStrategy,
    ledgerStrategy,
    blueprint("one", { portal: "strat_portal" }, { name: "Supplier invoices" }),
    blueprint("two", { portal: "strat_portal", ledger: "strat_ledger" }, { name: "Monthly closing" }),
    blueprint("free", {}),
    ...documents,
  );
  const [key, service] = await Promise.all([installation.createKey("acme"), installation.serve()]);
  const acme = openCaller(service.url, key);
  const { db } = installation.database;
  return {
    installation,
    service,
    acme,
    create: async (body = {}) => {
      const answer = await acme.post("/embedded-credential-sessions", {
        origin: origins[0],
        blueprint_keys: ["one"],
        ...body,
      });
      if (answer.status !== 201) throw new Error(`no session: ${answer.text}`);
      return answer.body;
    },
    read: async (id) => (await acme.get(`/embedded-credential-sessions/${id}`)).body,
    count: async (query) =>
      (await db.query<{ n: number }>(`select count(*)::int as n ${query}`))[0]?.n ?? Number.NaN,
    setClock: async (expression = REAL_TIME) => await setClock(db, expression),
    [Symbol.asyncDispose]: async () => await installation[Symbol.asyncDispose](),
  };
}

/** What the frame's script would be answered. */
export interface FrameAnswer {
  readonly status: number;
  readonly body: any;
  readonly headers: Headers;
}

/** A request of a frame's script. */
export async function askFrame(
  session: { readonly embed_url: string; readonly client_token: string },
  step: string,
  form: Readonly<Record<string, string>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<FrameAnswer> {
  const response = await fetch(`${session.embed_url}/${step}`, {
    method: "POST",
    headers: { authorization: `Bearer ${session.client_token}`, ...headers },
    body: new URLSearchParams(form),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? null : JSON.parse(text), headers: response.headers };
}

/** The value against forgery of the form that an answer shows. */
export const csrfOf = ({ body }: FrameAnswer): string =>
  load(body.html)("input[name=_csrf]").attr("value") ?? "";

/** Opens the flow's form and sends it. */
export async function submitFrame(
  session: EmbeddedBody,
  slot = "portal",
  values: Readonly<Record<string, string>> = GOOD,
): Promise<FrameAnswer> {
  const _csrf = csrfOf(await askFrame(session, "view"));
  return await askFrame(session, `submit?slot=${slot}`, { _csrf, ...values });
}
