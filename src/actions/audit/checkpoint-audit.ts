import { diskFailure } from "#blobs/store.ts";
import { listChainEnds } from "#db/audit-entries.ts";
import { readClockText } from "#db/connection/clock.ts";
import type { Database } from "#db/connection/pool.ts";
import { checkpointBytes, type AuditCheckpoint } from "#domain/audit.ts";
import { readLog, type AppendLog } from "#lib/append-log.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { failpoint } from "#lib/failpoint.ts";
import type { Log } from "#lib/log.ts";

interface CheckpointServices {
  readonly db: Database;
  readonly audit: AuditKeys;
  readonly log: Log;
}

/** One line of `audit-checkpoints.ndjson`. */
export interface ReadCheckpoint {
  readonly line: number;
  /** null: this installation did not sign the line. */
  readonly checkpoint: AuditCheckpoint | null;
}

/** The signed length and head of every chain, stored outside the database to detect truncation. docs/decisions/0023. */
export class AuditCheckpoints {
  readonly #services: CheckpointServices;
  readonly #sink: AppendLog;
  /** The sink's last checkpoints, read from it once. */
  #written: Map<string, number> | null = null;

  constructor(services: CheckpointServices, sink: AppendLog) {
    this.#services = services;
    this.#sink = sink;
  }

  /** Writes a line for each chain that has grown, and returns how many. A chain that has shrunk raises an alarm instead. */
  async write(): Promise<number> {
    const { db, audit, log } = this.#services;
    const written = (this.#written ??= await this.#readWritten());
    const ends = await listChainEnds(db);
    const at = await readClockText(db);
    for (const { chain, count } of ends) {
      if (count >= (written.get(chain) ?? 0)) continue;
      log.error(
        { alarm: "audit_truncated", chain, count, checkpointed: written.get(chain) },
        "entries of the audit log are missing; run `latchkey audit verify`",
      );
    }
    const grown = ends.filter(({ chain, count }) => count > (written.get(chain) ?? 0));
    if (grown.length === 0) return 0;
    const lines = grown.map(({ chain, count, head }) => {
      const checkpoint = { chain, count, head: head.toString("hex"), at };
      const signature = audit.sign(checkpointBytes(checkpoint)).toString("base64url");
      return JSON.stringify({ v: 1, ...checkpoint, signature });
    });
    await failpoint("audit.before_checkpoint");
    await this.#sink.append(lines).catch((error: unknown) => {
      throw diskFailure("data", this.#sink.file, error);
    });
    await failpoint("audit.after_checkpoint");
    for (const { chain, count } of grown) written.set(chain, count);
    return grown.length;
  }

  async #readWritten(): Promise<Map<string, number>> {
    const written = new Map<string, number>();
    for (const { checkpoint } of await readCheckpoints(this.#services.audit, this.#sink.file)) {
      if (checkpoint)
        written.set(checkpoint.chain, Math.max(checkpoint.count, written.get(checkpoint.chain) ?? 0));
    }
    return written;
  }
}

/** Reads the checkpoints of a file. A last line cut off by a crash is not a finding: the next checkpoint includes it. */
export async function readCheckpoints(audit: AuditKeys, file: string): Promise<readonly ReadCheckpoint[]> {
  const { lines } = await readLog(file);
  return lines.map(({ number, value }) => {
    const { chain, count, head, at, signature } = value;
    if (typeof chain !== "string" || !Number.isSafeInteger(count) || typeof head !== "string")
      return { line: number, checkpoint: null };
    if (typeof at !== "string" || typeof signature !== "string") return { line: number, checkpoint: null };
    const checkpoint = { chain, count: count as number, head, at };
    const isOurs = audit.isSigned(checkpointBytes(checkpoint), Buffer.from(signature, "base64url"));
    return { line: number, checkpoint: isOurs ? checkpoint : null };
  });
}
