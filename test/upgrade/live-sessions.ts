import assert from "node:assert/strict";
import { connect, type Caller } from "../caller.ts";
import { askFrame, csrfOf, type EmbeddedBody } from "../hosted/embedded-setup.ts";
import { Visitor } from "../oauth/oauth-setup.ts";
import type { Expected, Use } from "./expected.ts";
import { use } from "./live-runs.ts";
import { PASSWORDS, SECRETS, TOTP_KEY } from "./northwind.ts";

export async function newSession(caller: Caller, strategy: string): Promise<Expected["openSession"]> {
  const { status, text, body } = await caller.post("/credential-sessions", { strategy_id: strategy });
  assert.equal(status, 201, text);
  return { id: body.id, path: new URL(body.hosted_url).pathname };
}

/** A credential of every kind, each used once: what its run gives is what it must give ever after. */
export async function connectPeople(
  acme: Caller,
  globex: Caller,
  ada: string,
): Promise<{ readonly uses: readonly Use[]; readonly deletedCredential: string }> {
  const bea = await connect(acme, "strat_portal", { username: "bea", password: PASSWORDS.bea });
  const cyd = await connect(acme, "strat_code", {
    username: "cyd",
    password: PASSWORDS.cyd,
    totp: TOTP_KEY,
  });
  const slots = [
    await connect(acme, "strat_basic", { user: "ada", secret: SECRETS.basic }),
    await connect(acme, "strat_header", { key: SECRETS.header }),
    await connect(acme, "strat_query", { key: SECRETS.query }),
  ];
  const ofGlobex = await connect(globex, "strat_globex", { token: SECRETS.bearer });
  const wanted: readonly Omit<Use, "results">[] = [
    { key: "acme", blueprint: "invoices", body: { credential_id: ada } },
    { key: "acme", blueprint: "invoices", body: { credential_id: bea } },
    { key: "acme", blueprint: "codes", body: { credential_id: cyd } },
    { key: "acme", blueprint: "slots", body: { credential_ids: slots } },
    { key: "acme", blueprint: "consented", body: { credential_id: await consent(acme) } },
    { key: "acme", blueprint: "tokens", body: { credential_id: await embed(acme) } },
    { key: "globex", blueprint: "tokens", body: { credential_id: ofGlobex } },
  ];
  const uses: Use[] = [];
  for (const each of wanted)
    uses.push({ ...each, results: await use(each.key === "acme" ? acme : globex, each) });
  const deletedCredential = await connect(acme, "strat_bearer", { token: SECRETS.bearer });
  await use(acme, { blueprint: "tokens", body: { credential_id: deletedCredential } });
  assert.equal((await acme.delete(`/credentials/${deletedCredential}`)).status, 204);
  return { uses, deletedCredential };
}

/** Through the target's own pages. */
async function consent(acme: Caller): Promise<string> {
  const { body: session } = await acme.post("/credential-sessions", { strategy_id: "strat_oauth" });
  const visitor = new Visitor();
  const away = await visitor.open(await visitor.leave(session.hosted_url));
  const back = await visitor.open(away.location ?? assert.fail(away.text));
  const { body } = await acme.get(`/credential-sessions/${session.id}`);
  return body.credential_id ?? assert.fail(back.text);
}

/** In a frame. */
async function embed(acme: Caller): Promise<string> {
  const session = await newFrame(acme);
  await submitFrame(session);
  const { body } = await acme.get(`/embedded-credential-sessions/${session.id}`);
  return body.credential_id ?? assert.fail(JSON.stringify(body));
}

async function newFrame(acme: Caller): Promise<EmbeddedBody> {
  const { status, text, body } = await acme.post("/embedded-credential-sessions", {
    origin: "https://app.acme.example",
    blueprint_keys: ["tokens"],
    expires_in_seconds: 86_400,
  });
  assert.equal(status, 201, text);
  return body;
}

/** Fills in what the frame shows. */
export async function submitFrame(session: Pick<EmbeddedBody, "embed_url" | "client_token">): Promise<void> {
  const _csrf = csrfOf(await askFrame(session, "view"));
  const { status, body } = await askFrame(session, "submit?slot=it", { _csrf, token: SECRETS.bearer });
  assert.deepEqual([status, body.view], [200, "success"]);
}

/** Frames that nobody has filled in yet. */
export async function leaveSessions(acme: Caller): Promise<Pick<Expected, "embedded">> {
  const { id, embed_url: url, client_token: clientToken } = await newFrame(acme);
  return { embedded: { id, path: new URL(url).pathname, clientToken } };
}
