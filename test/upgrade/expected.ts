import { createHash } from "node:crypto";
import { brotliDecompressSync } from "node:zlib";
import type { ApiAnswer, Caller } from "../caller.ts";

/** What stands in a fixture's `expected.json`: how the installation's people know it. Later fixtures may say more, and never less. */
export interface Expected {
  /** The database's clock when the installation was frozen. */
  readonly at: string;
  /** Variables that its documents name. */
  readonly environment: Readonly<Record<string, string>>;
  /** API keys. */
  readonly keys: {
    readonly acme: string;
    readonly globex: string;
    /** Of acme, for the Blueprint `report` alone. */
    readonly limited: string;
    readonly replaced: string;
    readonly successor: string;
    readonly revoked: string;
    readonly expired: string;
  };
  readonly operators: readonly Operator[];
  /** Of an admin who was signed in. */
  readonly operatorCookie: string;
  /** Each open credential, with a run that needs it and what that run gave. */
  readonly uses: readonly Use[];
  readonly completed: readonly CompletedRun[];
  /** A link that somebody has, of the first of these. */
  readonly downloadPath: string;
  readonly failed: readonly string[];
  readonly cancelled: readonly string[];
  readonly purged: readonly string[];
  /** Runs that were under way. */
  readonly parked: { readonly run: string; readonly review: string };
  readonly doubtful: {
    readonly run: string;
    readonly node: string;
    readonly record: number;
    /** What the target knows it by. */
    readonly token: string;
  };
  readonly queued: readonly PendingRun[];
  readonly halfway: PendingRun;
  /** What the target knows those writes by that it has taken. */
  readonly writeTokens: readonly string[];
  readonly replays: readonly Replay[];
  readonly openSession: { readonly id: string; readonly path: string };
  readonly expiredSession: { readonly id: string; readonly path: string };
  readonly embedded: { readonly id: string; readonly path: string; readonly clientToken: string };
  readonly deletedCredential: string;
  readonly lockedCredential: string;
  readonly refreshToken: string;
}

export interface Operator {
  readonly email: string;
  readonly password: string;
  /** Of the authenticator app; null: none. */
  readonly totpKey: string | null;
  /** Not used yet. */
  readonly recoveryCodes: readonly string[];
}

export type KeyName = "acme" | "globex";

export interface Use {
  readonly key: KeyName;
  readonly blueprint: string;
  readonly body: { readonly credential_id?: string; readonly credential_ids?: readonly string[] };
  readonly results: unknown;
}

export interface PendingRun {
  readonly id: string;
  readonly results: unknown;
}

export interface CompletedRun {
  readonly key: KeyName;
  readonly id: string;
  /** The whole answer of direct delivery, as `textOrPrint` gives it. */
  readonly direct: string;
  /** The text of each download, likewise. */
  readonly downloads: Readonly<Record<string, string>>;
}

/** A request with an idempotency key, and the answer that it gets forever. */
export interface Replay {
  readonly path: string;
  readonly idempotencyKey: string;
  readonly body: unknown;
  readonly status: number;
  readonly text: string;
}

/** A short text itself, so that people can read it; of a long one its SHA-256. */
export function textOrPrint(text: string): string {
  return text.length <= 2_000 ? text : `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

/** What a completed run gives to its readers. */
export async function readCompleted(caller: Caller, key: KeyName, id: string): Promise<CompletedRun> {
  const results = async (delivery: string): Promise<ApiAnswer> => {
    const answer = await caller.get(`/blueprint-runs/${id}/results?deliveryMethod=${delivery}`);
    if (answer.status !== 200)
      throw new Error(`the results of ${id} answered ${answer.status}: ${answer.text}`);
    return answer;
  };
  const [direct, presigned] = [await results("direct"), await results("presigned_url")];
  const downloads: Record<string, string> = {};
  for (const [name, url] of Object.entries<string>(presigned.body.results))
    downloads[name] = await download(url);
  return { key, id, direct: textOrPrint(direct.text), downloads };
}

/** The text behind a link. */
export async function download(url: string): Promise<string> {
  const response = await fetch(url);
  if (response.status !== 200)
    throw new Error(`the download answered ${response.status}: ${await response.text()}`);
  return textOrPrint(brotliDecompressSync(await response.arrayBuffer()).toString("utf8"));
}

/** Waits for a run, which must complete; gives its results without what is of its moment. */
export async function resultsOf(caller: Caller, id: string): Promise<unknown> {
  const { body } = await caller.waitForRun(id);
  if (body.status !== "completed")
    throw new Error(`run ${id} is ${body.status}: ${JSON.stringify(body.error)}`);
  return (await caller.get(`/blueprint-runs/${id}/results?deliveryMethod=direct`)).body.results;
}
