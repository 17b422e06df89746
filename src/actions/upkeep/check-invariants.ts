import { setTimeout as sleep } from "node:timers/promises";
import type { BlobStore } from "#blobs/store.ts";
import { findCachedVersion } from "#db/config-documents.ts";
import {
  findIncompleteResults,
  findPlaces,
  inLongSnapshot,
  listPresentCredentials,
  listVersionsWithResults,
  ROW_CHECKS,
  type Places,
} from "#db/invariants/invariants.ts";
import { readOrphanLimit } from "#db/orphans.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RowCheck } from "#db/invariants/row-check.ts";
import type { Invariant, InvariantFinding } from "#domain/invariants.ts";
import { must } from "#lib/assert.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { resultKeysOf } from "#nodes/types/output.ts";
import { checkObjects, findOrphans } from "./check-objects.ts";
import { readTombstones } from "#actions/credentials/tombstones.ts";
import { verifyAudit } from "#actions/audit/verify-audit.ts";

/** What to check, and how. Nothing is changed. */
export interface Inspected {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly audit: AuditKeys;
  readonly checkpointFiles: readonly string[];
  readonly tombstoneFiles: readonly string[];
  /** Scratch folders of this machine that no run has used since a point in time. */
  readonly listForgottenScratch: (before: Date) => Promise<readonly string[]>;
  /** The wait before a second check of what may be in progress. */
  readonly secondLookMs: number;
  readonly onProgress: (what: string, done: number, total: number) => void;
}

/** The time of three sweeps of a worker. */
const SCRATCH_AGE_MS = 30 * 60_000;
/** The number of findings listed per check; the rest are counted. */
const SHOWN_MAX = 20;

/**
 * docs/decisions/0025: finds violations of invariants. The database is read in one snapshot, so a
 * service may run meanwhile; everything outside the database is checked twice before it is reported.
 */
export async function checkInvariants(inspected: Inspected): Promise<readonly InvariantFinding[]> {
  const findings = [
    ...(await checkRows(inspected)),
    ...(await inLongSnapshot(inspected.db, checkManifests)),
    ...(await checkTombstones(inspected)),
    ...(await checkAudit(inspected)),
    ...(await checkObjects(inspected)),
    ...(await findOrphans(inspected)),
    ...(await checkScratch(inspected)),
  ];
  return findings.toSorted((a, b) => numberOf(a.invariant) - numberOf(b.invariant));
}

const numberOf = (invariant: Invariant): number => Number(invariant.slice(1));

async function checkRows({ db, secondLookMs, onProgress }: Inspected): Promise<readonly InvariantFinding[]> {
  const found = await inLongSnapshot(db, async (tx) => await lookAt(tx, ROW_CHECKS, onProgress));
  const passing = found.filter(({ check }) => check.isPassing === true);
  if (passing.length === 0) return found.flatMap(findingsOf);
  await sleep(secondLookMs);
  const checks = passing.map(({ check }) => check);
  const again = await inLongSnapshot(db, async (tx) => await lookAt(tx, checks, () => {}));
  const stillThere = passing.flatMap(({ check, places }) => {
    const second = new Set(again.find((each) => each.check === check)?.places);
    const kept = places.filter((place) => second.has(place));
    return kept.length === 0 ? [] : [{ check, places: kept, total: kept.length }];
  });
  return [...found.filter(({ check }) => check.isPassing !== true), ...stillThere].flatMap(findingsOf);
}

type FoundPlaces = Places & { readonly check: RowCheck };

/** Rows of one snapshot. */
async function lookAt(
  tx: Database,
  checks: readonly RowCheck[],
  onProgress: Inspected["onProgress"],
): Promise<readonly FoundPlaces[]> {
  const found: FoundPlaces[] = [];
  for (const [index, check] of checks.entries()) {
    onProgress("rows", index, checks.length);
    const places = await findPlaces(tx, check, SHOWN_MAX);
    if (places.total > 0) found.push({ check, ...places });
  }
  onProgress("rows", checks.length, checks.length);
  return found;
}

/** Rows of the transaction's snapshot, without a second check. */
export async function checkRowsOf(tx: Database): Promise<readonly InvariantFinding[]> {
  return [...(await lookAt(tx, ROW_CHECKS, () => {})).flatMap(findingsOf), ...(await checkManifests(tx))];
}

function findingsOf({ check, places, total }: FoundPlaces): readonly InvariantFinding[] {
  const { invariant, name, problem, remedy } = check;
  const shown = places.map((place) => ({ invariant, check: name, place, problem, remedy }));
  const more = total - places.length;
  return more === 0
    ? shown
    : [...shown, { invariant, check: name, place: `and ${more} more`, problem, remedy }];
}

/** V5: a completed run has the results that its Blueprint's version has outputs for. */
export async function checkManifests(tx: Database): Promise<readonly InvariantFinding[]> {
  const expected = [];
  for (const version of await listVersionsWithResults(tx)) {
    const blueprint = must(await findCachedVersion(tx, "blueprint", version), "a run's Blueprint");
    const keys = blueprint.nodes
      .filter((node) => node.type === "output")
      .flatMap((node) => resultKeysOf(node).map(({ key }) => key));
    expected.push({ blueprintId: version.id, version: version.version, keys });
  }
  const places = await findIncompleteResults(tx, expected, SHOWN_MAX);
  return findingsOf({ check: INCOMPLETE, ...places });
}

const INCOMPLETE: RowCheck = {
  invariant: "V5",
  name: "results_incomplete",
  problem: "it is completed, but lacks results for some of its Blueprint's outputs",
  remedy: "restore a backup that has them, or trigger the run again",
  find: "",
};

/** V7: what an owner has deleted is gone. A deletion may be in progress: its audit event is written before its COMMIT. */
async function checkTombstones(inspected: Inspected): Promise<readonly InvariantFinding[]> {
  const look = async (): Promise<readonly string[]> => {
    const { credentialIds } = await readTombstones(inspected.tombstoneFiles);
    return await listPresentCredentials(inspected.db, credentialIds);
  };
  let present = await look();
  if (present.length > 0) {
    await sleep(inspected.secondLookMs);
    const first = new Set(present);
    present = (await look()).filter((id) => first.has(id));
  }
  return present.map((id) => ({
    invariant: "V7",
    check: "tombstone",
    place: `credential ${id}`,
    problem:
      "a tombstone says that it was deleted, but it exists: a delete was interrupted, or a backup restored",
    remedy: "latchkey restore-reconcile",
  }));
}

/** V9: nothing was changed, inserted or removed. */
async function checkAudit(inspected: Inspected): Promise<readonly InvariantFinding[]> {
  inspected.onProgress("audit log", 0, 1);
  const { chains, foreignCheckpoints } = await verifyAudit(inspected.db, inspected.audit, {
    account: null,
    checkpointFiles: inspected.checkpointFiles,
  });
  inspected.onProgress("audit log", 1, 1);
  const remedy = "`latchkey audit verify` names the same place; docs/audit.md explains it";
  const of = (check: string, place: string, problem: string): InvariantFinding => ({
    invariant: "V9",
    check,
    place,
    problem,
    remedy,
  });
  return [
    ...chains.flatMap(({ chain, account, findings }) =>
      findings.map(({ fault, message }) => of(`audit_${fault}`, `audit chain ${account ?? chain}`, message)),
    ),
    ...foreignCheckpoints.map((place) =>
      of("audit_checkpoint", place, "this checkpoint was not written by this installation"),
    ),
  ];
}

/** V11: a worker removes them every ten minutes. */
async function checkScratch(inspected: Inspected): Promise<readonly InvariantFinding[]> {
  const names = await inspected.listForgottenScratch(await readOrphanLimit(inspected.db, SCRATCH_AGE_MS));
  return names.map((name) => ({
    invariant: "V11",
    check: "scratch",
    place: `scratch folder ${name}`,
    problem: "no run uses it, and no worker has removed it in time",
    remedy: "start a worker on this machine: it removes the folder",
  }));
}
