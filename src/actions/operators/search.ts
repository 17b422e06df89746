import { accountIdsOf } from "#actions/operator-error.ts";
import { findThings, findRunsWith } from "#db/operators/run-search.ts";
import type { Database } from "#db/connection/pool.ts";
import { mayDo, type OperatorRole } from "#domain/operator.ts";
import { readRunReference } from "#domain/ids.ts";
import { gramsOf, searchLine } from "#domain/search-text.ts";
import { listRuns } from "./list-runs.ts";

/** Results of each kind. */
const EACH = 6;

const PERMISSIONS = {
  credential: "credential.read",
  session: "credential.read",
  blueprint: "config.read",
  strategy: "config.read",
  account: "config.read",
} as const;

/** Everything that contains a text in its name, its metadata or its id, as far as the role may see it, and of the accounts in `limited`. */
export async function searchAll(
  db: Database,
  role: OperatorRole,
  text: string,
  limited: readonly string[] | null,
) {
  const limit = await accountIdsOf(db, undefined, limited);
  const line = searchLine(text);
  if (line === "") return { runs: [], others: [] };
  const reference = readRunReference(text.trim());
  const ids = reference ? null : await findRunsWith(db, line, gramsOf(line), limit, EACH);
  const runs =
    ids === null
      ? (await listRuns(db, { id: text.trim() }, limit)).items
      : ids.length === 0
        ? []
        : (await listRuns(db, { ids, limit: EACH }, limit)).items;
  const others = (await findThings(db, line, limit, EACH)).filter(({ kind }) =>
    mayDo(role, PERMISSIONS[kind]),
  );
  return { runs, others: others.map((each) => ({ ...each })) };
}
