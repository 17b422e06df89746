import { listDashboardVersions } from "#db/operators/operator-config.ts";
import type { Database } from "#db/connection/pool.ts";
import { diffDocuments } from "#domain/config-diff.ts";
import { quoteList } from "#domain/config-problem.ts";
import type { Json } from "#domain/json.ts";
import { planConfig, type CheckOptions } from "./apply-config.ts";
import type { ConfigSource } from "./check-sources.ts";

/** A document that was published in the dashboard after the command line last applied it. */
export interface Drift {
  readonly kind: "strategy" | "blueprint";
  readonly account: string;
  readonly id: string;
  /** The current version, and who published it. */
  readonly version: number;
  readonly by: string;
  /** The places that the dashboard has changed and the files would change again. */
  readonly undone: readonly string[];
}

/** What an `apply` of the files would undo of the dashboard's changes. Empty if the files are invalid: `apply` says why. */
export async function findDrift(
  db: Database,
  sources: readonly ConfigSource[],
  options: CheckOptions = {},
): Promise<readonly Drift[]> {
  const published = await listDashboardVersions(db);
  if (published.length === 0) return [];
  const plan = await planConfig(db, sources, options);
  if (!plan.ok) return [];
  return published.flatMap(({ kind, account, name, version, by, document, base }): readonly Drift[] => {
    const planned = plan.changes.find(
      (each) => each.kind === kind && each.account === account && each.id === name,
    );
    const theirs =
      base === null
        ? null
        : diffDocuments(JSON.parse(base) as Json, JSON.parse(document) as Json).map(({ path }) => path);
    const undone = (planned?.differences ?? [])
      .map(({ path }) => path)
      .filter(
        (path) => theirs === null || theirs.some((each) => isInside(each, path) || isInside(path, each)),
      );
    return undone.length === 0 ? [] : [{ kind, account, id: name, version, by, undone }];
  });
}

/** Whether the path is the other one, or of a part of it. */
const isInside = (path: string, other: string): boolean =>
  path === other || path.startsWith(`${other}.`) || path.startsWith(`${other}[`);

export const describeDrift = ({ kind, account, id, version, by, undone }: Drift): string =>
  `${by} published version ${version} of the ${kind} ${account}/${id} in the dashboard; these files undo its ${quoteList(undone)}`;
