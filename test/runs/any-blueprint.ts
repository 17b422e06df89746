import type { Database } from "#db/connection/pool.ts";
import { install, type Installation } from "../service.ts";

/** For runs that a test writes into the database itself. */
export const anyBlueprint = (account: string): string => `blueprint: any
account: ${account}
nodes:
  - { id: a, type: input, refKey: a, default: "[]" }
  - { id: rows, type: parse, from: a, format: json }
  - { id: out, type: output, refKey: out, from: rows }`;

/** An installation whose account acme has a Blueprint, a key, and room for a thousand runs. */
export async function installForRuns(...documents: readonly string[]): Promise<{
  readonly installation: Installation & AsyncDisposable;
  readonly db: Database;
  readonly accountId: string;
}> {
  const installation = await install();
  const { db } = installation.database;
  await installation.apply("account: acme\nconcurrency: 1000", anyBlueprint("acme"), ...documents);
  await installation.createKey("acme");
  const [account] = await db.query<{ id: string }>("select id from account where slug = 'acme'");
  return { installation, db, accountId: account?.id ?? "" };
}
