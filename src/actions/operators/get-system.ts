import type { Needs } from "#actions/services.ts";
import { readClockText } from "#db/connection/clock.ts";
import { readMailState } from "#db/operators/operator-mail.ts";
import {
  countWaitingRuns,
  listSeenWorkers,
  readDatabaseSize,
  readDatabaseState,
} from "#db/operators/operator-system.ts";
import { readPurgeLag } from "#db/runs/purges.ts";
import { listRowAlarms } from "#db/signing/row-alarms.ts";
import { listVaultKeys } from "#db/credentials/vault-keys.ts";
import { limits } from "#domain/limits.ts";
import { LATCHKEY_VERSION } from "#lib/version.ts";

const REFUSED_MAX = 100;

/** The state of the installation, as this process sees it, without key values or store addresses. */
export async function getSystem({
  db,
  blobs,
  vault,
  publicUrl,
}: Needs<"blobs" | "db" | "publicUrl" | "vault">) {
  const [now, workers, waiting, database, sizeBytes, keys, purgeLagMs, alarms, mail] = await Promise.all([
    readClockText(db),
    listSeenWorkers(db, limits.heartbeatStaleMs),
    countWaitingRuns(db),
    readDatabaseState(db),
    readDatabaseSize(db),
    listVaultKeys(db),
    readPurgeLag(db),
    listRowAlarms(db, REFUSED_MAX),
    readMailState(db),
  ]);
  return {
    now,
    version: LATCHKEY_VERSION,
    public_url: publicUrl(),
    workers: workers.map((worker) => ({
      id: worker.id,
      hostname: worker.hostname,
      pid: worker.pid,
      started_at: worker.startedAt.toISOString(),
      heartbeat_at: worker.heartbeatAt.toISOString(),
      is_alive: worker.isAlive,
      runs: worker.runs,
      browsers: worker.browsers,
      browser_network: worker.browserNetwork,
    })),
    queue: waiting.map(({ reason, runs, oldestAt }) => ({
      waits_for: reason,
      runs,
      oldest_at: oldestAt.toISOString(),
    })),
    database: {
      version: database.version,
      size_bytes: sizeBytes,
      connections: database.connections,
      connections_max: database.connectionsMax,
      migration: database.migration,
      unchained_audit_entries: database.unchained,
    },
    purge_lag_seconds: Math.floor(purgeLagMs / 1_000),
    store: blobs.kind,
    keys: keys.map(({ kid, isPrimary, createdAt }) => ({
      id: kid,
      is_primary: isPrimary,
      created_at: createdAt.toISOString(),
    })),
    refused_rows: alarms.map(({ kind, id, fault, firstSeenAt, lastSeenAt }) => ({
      kind,
      id,
      fault,
      first_seen_at: firstSeenAt.toISOString(),
      last_seen_at: lastSeenAt.toISOString(),
    })),
    mail: mail
      ? {
          sent_at: mail.sentAt?.toISOString() ?? null,
          failing_since: mail.failingSince?.toISOString() ?? null,
          failure: mail.failure,
        }
      : null,
    can_open_credentials: vault.canOpen,
  };
}
