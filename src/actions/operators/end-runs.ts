import { cancelRunAsOperator } from "#actions/runs/cancel-run.ts";
import { purgeRunAsOperator } from "#actions/runs/purge-runs.ts";
import type { Needs } from "#actions/services.ts";
import { notFound, Problem } from "#domain/problem.ts";
import { actorOf, type Principal } from "./operator-caller.ts";

/** Throws Problem 404 or 409. */
export async function cancelRunOf(
  services: Needs<"db" | "signing">,
  caller: Principal,
  reference: string,
): Promise<void> {
  const outcome = await cancelRunAsOperator(services.db, services.signing, reference, actorOf(caller));
  if (outcome === "unknown") throw notFound("Run");
  if (outcome !== "cancelled")
    throw new Problem("conflict", `The run is already ${outcome.was}; it can't be cancelled any more.`);
}

/** Throws OperatorError. */
export async function purgeRunOf(
  services: Needs<"blobs" | "db" | "signing">,
  caller: Principal,
  reference: string,
): Promise<void> {
  await purgeRunAsOperator(services, reference, actorOf(caller));
}
