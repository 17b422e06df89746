import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { REAL_TIME, setClock } from "../clock.ts";
import { openCaller, type Caller } from "../caller.ts";
import { install, type Installation, type RunningService } from "../service.ts";

/** Where `return_url`s of the account `acme` may lead. */
export const RETURN_ORIGIN = "https://app.acme.example";

export const acmeDocument = (origins: readonly string[] = [RETURN_ORIGIN]): string =>
  JSON.stringify({ account: "acme", name: "Acme Inc.", allowed_origins: origins });

export const portalDocument = JSON.stringify({
  strategy: "strat_portal",
  account: "acme",
  name: "Northwind Portal",
  description: {
    en: "Acme Bookkeeping reads your invoices there each night, and changes nothing.",
    fr: "Acme Bookkeeping y lit vos factures chaque nuit et ne change rien.",
  },
  hosts: ["https://portal.northwind.example"],
  fields: [
    { key: "email", label: "Email address", type: "email", required: true },
    { key: "password", label: "Password", type: "password", required: true, min_length: 12 },
    { key: "totp", label: "Authenticator key", type: "totp_secret", required: false },
  ],
  login: { type: "none" },
});

export const GOOD = { email: "ada@acme.example", password: "correct horse" };

export interface Hosted extends AsyncDisposable {
  readonly installation: Installation;
  readonly service: RunningService;
  readonly acme: Caller;
  /** A new session of `acme`. */
  session(body?: Readonly<Record<string, string>>): Promise<SessionBody>;
  /** The session as the API shows it. */
  read(id: string): Promise<SessionBody>;
  credentialsOf(sessionId: string): Promise<number>;
  /** `app_now()` becomes this SQL expression; without one it is the real time again. */
  setClock(expression?: string): Promise<void>;
}

export interface SessionBody {
  readonly id: string;
  readonly status: string;
  readonly hosted_url: string;
  readonly credential_id: string | null;
  readonly expires_at: string;
}

/** One installation with the account `acme`, its strategy `strat_portal` and whatever else is given. */
export async function setUpHosted(...documents: string[]): Promise<Hosted> {
  const installation = await install();
  await installation.apply(acmeDocument(), portalDocument, ...documents);
  const key = await installation.createKey("acme");
  const service = await installation.serve();
  const acme = openCaller(service.url, key);
  const { db } = installation.database;
  return {
    installation,
    service,
    acme,
    session: async (body = {}) => {
      const answer = await acme.post("/credential-sessions", { strategy_id: "strat_portal", ...body });
      if (answer.status !== 201) throw new Error(`no session: ${answer.text}`);
      return answer.body;
    },
    read: async (id) => (await acme.get(`/credential-sessions/${id}`)).body,
    credentialsOf: async (sessionId) => {
      const rows = await db.query<{ count: number }>(
        "select count(*)::int as count from credential where session_id = $1",
        [sessionId],
      );
      return rows[0]?.count ?? Number.NaN;
    },
    setClock: async (expression = REAL_TIME) => await setClock(db, expression),
    [Symbol.asyncDispose]: async () => await installation[Symbol.asyncDispose](),
  };
}

/** A plain server on loopback, for targets and for the pages that users return to. */
export async function listen(
  handler: RequestListener,
  options: { readonly maxHeaderSize?: number } = {},
): Promise<{ readonly origin: string; close(): void }> {
  const server = createServer(options, handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
