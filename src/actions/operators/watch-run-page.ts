import type { Needs } from "#actions/services.ts";
import { readLivePicture, watchRun } from "#db/runs/live-pictures.ts";
import { findRunOfAnyAccount } from "#db/runs/runs.ts";
import type { Database } from "#db/connection/pool.ts";
import { readRunReference } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { notFound } from "#domain/problem.ts";

/**
 * Says that the caller has the page of a run in view, for a short while, in which the run's worker takes pictures of it. Changes nothing
 * else, so like looking at other pictures it is not audited. Throws Problem 404.
 */
export async function watchRunPage({ db }: Needs<"db">, run: string) {
  const picture = await watchRun(db, await requireRun(db, run), limits.livePictureWatchedMs);
  return {
    picture: picture && {
      step: picture.step,
      taken_at: picture.takenAt.toISOString(),
      age_seconds: picture.ageSeconds,
    },
  };
}

/** The last picture of the run's page, as a PNG. Throws Problem 404. */
export async function openLivePicture({ db }: Needs<"db">, run: string): Promise<AsyncIterable<Uint8Array>> {
  const png = await readLivePicture(db, await requireRun(db, run));
  if (png === null) throw notFound("Picture");
  return streamed(png);
}

async function* streamed(png: Buffer): AsyncIterable<Uint8Array> {
  yield png;
}

async function requireRun(db: Database, named: string): Promise<string> {
  const reference = readRunReference(named);
  const run = reference && (await findRunOfAnyAccount(db, reference));
  if (!run) throw notFound("Run");
  return run.id;
}
