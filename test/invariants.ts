import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkInvariants, type Inspected } from "#actions/upkeep/check-invariants.ts";
import { openLocalStore } from "#blobs/local-store.ts";
import type { InvariantFinding } from "#domain/invariants.ts";
import { listForgottenScratch } from "#engine/outputs/sweep-scratch.ts";
import { openSigning, readSigningKey, type Signing } from "#lib/signing.ts";
import type { Installation } from "./service.ts";

type Inspectable = Pick<Installation, "dataFolder"> & {
  readonly database: Pick<Installation["database"], "db">;
};

/** What an installation derives from its signing key. */
export function signingOf({ dataFolder }: Pick<Installation, "dataFolder">): Signing {
  return openSigning(readSigningKey(readFileSync(join(dataFolder, "signing.key"), "utf8")));
}

/** What `latchkey doctor --deep` looks at, in the test's own process. */
export function inspected({ dataFolder, database: { db } }: Inspectable): Inspected {
  return {
    db,
    blobs: openLocalStore(join(dataFolder, "objects")),
    audit: signingOf({ dataFolder }).audit,
    checkpointFiles: [join(dataFolder, "audit-checkpoints.ndjson")],
    tombstoneFiles: [join(dataFolder, "tombstones.ndjson")],
    listForgottenScratch: async (before) =>
      await listForgottenScratch(db, join(dataFolder, "scratch"), before),
    secondLookMs: 2_000,
    onProgress: () => {},
  };
}

export async function findViolations(installation: Inspectable): Promise<readonly InvariantFinding[]> {
  return await checkInvariants(inspected(installation));
}

/**
 * docs/decisions/0025: what every crash test ends with. The service may be up. `planted`: checks that find what the test itself
 * has put there, and why.
 */
export async function assertInvariants(
  installation: Inspectable,
  planted: Readonly<Record<string, string>> = {},
): Promise<void> {
  const findings = (await findViolations(installation)).filter(({ check }) => planted[check] === undefined);
  assert.deepEqual(
    findings.map(({ invariant, check, place, problem }) => `${invariant} ${check}: ${place}: ${problem}`),
    [],
  );
}
