// docs/decisions/0023: a superuser changes, deletes, inserts, swaps and cuts; `audit verify` names the first bad place.
import assert from "node:assert/strict";
import { randomBytes, randomInt } from "node:crypto";
import { after, before, test } from "node:test";
import { closeAudit } from "#actions/audit/close-audit.ts";
import { verifyChain } from "#actions/audit/verify-audit.ts";
import { listChained, listChainEnds } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import { hashEntry, placeBytes, type AuditCheckpoint } from "#domain/audit.ts";
import type { AuditFault, AuditFinding } from "#domain/audit-finding.ts";
import { must } from "#lib/assert.ts";
import { generateSigningKey, openSigning, readSigningKey } from "#lib/signing.ts";
import { asSuperuser, openAuditLog, writeEntries, type AuditLog } from "./audit-log.ts";

const CHAIN = "acct_acme";
const ENTRIES = 30;
const MUTATIONS = 1_000;

let log: AuditLog;
/** Written when the chain had all but its last five entries. */
let checkpoint: AuditCheckpoint;

before(async () => {
  log = await openAuditLog(CHAIN, "acct_other");
  await writeEntries(log, "acct_other", 3);
  await writeEntries(log, CHAIN, ENTRIES - 5);
  await closeAudit(log.services());
  const [end] = (await listChainEnds(log.db)).filter(({ chain }) => chain === CHAIN);
  const { count, head } = must(end, "the chain's end");
  checkpoint = { chain: CHAIN, count, head: head.toString("hex"), at: "2026-11-21T00:00:00.000Z" };
  await writeEntries(log, CHAIN, 5);
  await closeAudit(log.services());
});
after(() => log?.drop());

async function findings(db: Database, checkpoints: readonly AuditCheckpoint[] = []) {
  return (await verifyChain(db, log.keys, CHAIN, checkpoints)).findings;
}

/** What verify says first after a superuser has done this. */
async function findingAfter(
  tamper: (tx: Database) => Promise<unknown>,
  checkpoints: readonly AuditCheckpoint[] = [],
): Promise<AuditFinding> {
  return await asSuperuser(log, async (tx) => {
    await tamper(tx);
    const [first] = await findings(tx, checkpoints);
    return must(first, "a finding");
  });
}

const at = (finding: AuditFinding): readonly [AuditFault, number | null] => [finding.fault, finding.sequence];

test("an untouched chain is in order", async () => {
  assert.deepEqual(await verifyChain(log.db, log.keys, CHAIN, [checkpoint]), {
    chain: CHAIN,
    entries: ENTRIES,
    exported: [],
    open: 0,
    findings: [],
  });
});

const COLUMNS: Record<string, string> = {
  id: "'aud_forged'",
  account_id: "null",
  occurred_at: "occurred_at + interval '1 microsecond'",
  actor_kind: "'operator'",
  actor_id: "'run_another'",
  action: "'credential.send'",
  subject_id: "'cred_another'",
  run_id: "null",
  detail: "detail || ' '",
  seal: "sha256(seal)",
  hash: "sha256(hash)",
  signature: "sha512(signature)",
  sequence: "sequence + 100",
};

for (const [column, value] of Object.entries(COLUMNS)) {
  test(`a changed ${column} is found, in its place`, async () => {
    const finding = await findingAfter((tx) =>
      tx.query(`update audit_entry set ${column} = ${value} where chain = $1 and sequence = 12`, [CHAIN]),
    );
    const isGone = column === "account_id" || column === "sequence";
    assert.deepEqual(at(finding), [isGone ? "missing" : "changed", 12]);
  });
}

test("a deleted entry is missing, also when the ones after it are given its number and theirs", async () => {
  const remove = (tx: Database): Promise<unknown> =>
    tx.query(`delete from audit_entry where chain = $1 and sequence = 9`, [CHAIN]);
  assert.deepEqual(at(await findingAfter(remove)), ["missing", 9]);
  const renumber = async (tx: Database): Promise<void> => {
    await remove(tx);
    await tx.query("alter table audit_entry drop constraint audit_entry_chain_sequence_key");
    await tx.query(`update audit_entry set sequence = sequence - 1 where chain = $1 and sequence > 9`, [
      CHAIN,
    ]);
    await tx.query(`update audit_chain set count = count - 1 where chain = $1`, [CHAIN]);
  };
  assert.deepEqual(at(await findingAfter(renumber)), ["moved", 9]);
});

test("two swapped entries are found at the first of them", async () => {
  const swap = (tx: Database): Promise<unknown> =>
    tx.query(
      `alter table audit_entry drop constraint audit_entry_chain_sequence_key;
       update audit_entry set sequence = 27 - sequence where chain = '${CHAIN}' and sequence in (7, 20)`,
    );
  assert.deepEqual(at(await findingAfter(swap)), ["moved", 7]);
});

test("somebody who has the database and not the signing key can't make an entry, at the end, in the middle, or unchained", async () => {
  // All that the database holds and the format's description say, with a key of their own.
  const foreign = openSigning(readSigningKey(generateSigningKey())).audit;
  const forge = async (tx: Database, sequence: number | null): Promise<void> => {
    const last = must(
      (await listChained(tx, CHAIN, { sequence: ENTRIES - 1, id: "" }, 1))[0],
      "the last entry",
    );
    const entry = { ...last, id: "aud_forged", subjectId: "cred_forged" };
    const hash = hashEntry(last.hash, sequence ?? 0, entry);
    await tx.query(
      `insert into audit_entry (id, account_id, occurred_at, actor_kind, actor_id, action, subject_id, run_id, detail, seal, sequence, hash, signature)
       values ('aud_forged', $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
      [
        CHAIN,
        entry.occurredAt,
        entry.actorKind,
        entry.actorId,
        entry.action,
        entry.subjectId,
        entry.runId,
        entry.detail,
        last.seal,
        sequence,
        sequence === null ? null : hash,
        sequence === null ? null : foreign.sign(placeBytes(CHAIN, sequence, hash)),
      ],
    );
    if (sequence !== null)
      await tx.query(`update audit_chain set count = $2, head = $3 where chain = $1`, [
        CHAIN,
        sequence,
        hash,
      ]);
  };
  assert.deepEqual(at(await findingAfter((tx) => forge(tx, ENTRIES + 1))), ["inserted", ENTRIES + 1]);
  assert.deepEqual(at(await findingAfter((tx) => forge(tx, null))), ["inserted", null]);
  // The closer does not make it genuine either.
  const closed = await findingAfter(async (tx) => {
    await forge(tx, null);
    assert.equal(await closeAudit(log.services(tx)), 0);
  });
  assert.deepEqual(at(closed), ["inserted", null]);
  const second = async (tx: Database): Promise<void> => {
    await tx.query("alter table audit_entry drop constraint audit_entry_chain_sequence_key");
    await forge(tx, 15);
    await tx.query(`update audit_chain set count = $2 where chain = $1`, [CHAIN, ENTRIES]);
  };
  assert.equal((await findingAfter(second)).sequence, 15);
});

test("a cut tail is found: by the chain's end; by a checkpoint when that was cut too, and when the chain grew anew", async () => {
  const cut = (tx: Database): Promise<unknown> =>
    tx.query(`delete from audit_entry where chain = $1 and sequence > 20`, [CHAIN]);
  assert.deepEqual(at(await findingAfter(cut)), ["truncated", 21]);
  const cutWhole = async (tx: Database): Promise<void> => {
    await cut(tx);
    await tx.query(
      `update audit_chain set count = 20, head = (select hash from audit_entry where chain = $1 and sequence = 20) where chain = $1`,
      [CHAIN],
    );
  };
  // This is why checkpoints are kept outside: the database alone is whole.
  assert.deepEqual(await asSuperuser(log, async (tx) => [await cutWhole(tx), await findings(tx)][1]), []);
  assert.deepEqual(at(await findingAfter(cutWhole, [checkpoint])), ["truncated", 21]);
  const regrown = async (tx: Database): Promise<void> => {
    await cutWhole(tx);
    const own = { ...log, db: tx };
    await writeEntries(own, CHAIN, 20);
    await closeAudit(log.services(tx));
  };
  assert.deepEqual(at(await findingAfter(regrown, [checkpoint])), ["truncated", checkpoint.count]);
  const gone = (tx: Database): Promise<unknown> =>
    tx.query(
      `delete from audit_entry where chain = '${CHAIN}'; delete from audit_chain where chain = '${CHAIN}'`,
    );
  assert.deepEqual(at(await findingAfter(gone, [checkpoint])), ["truncated", 1]);
});

test("an entry that was unchained is missing; an entry of another account's chain does not fit", async () => {
  const unchain = (tx: Database): Promise<unknown> =>
    tx.query(
      `update audit_entry set sequence = null, hash = null, signature = null where chain = $1 and sequence = 4`,
      [CHAIN],
    );
  assert.deepEqual(at(await findingAfter(unchain)), ["missing", 4]);
  const transplant = (tx: Database): Promise<unknown> =>
    tx.query(
      `delete from audit_entry where chain = '${CHAIN}' and sequence = 2;
       update audit_entry set account_id = '${CHAIN}' where chain = 'acct_other' and sequence = 2`,
    );
  assert.equal((await findingAfter(transplant)).sequence, 2);
});

test("1,000 random mutations, all found in their place", async () => {
  let located = 0;
  for (let index = 0; index < MUTATIONS; index++) {
    const mutation = randomMutation();
    const finding = await findingAfter(async (tx) => await mutation.tamper(tx), [checkpoint]);
    assert.equal(finding.sequence, mutation.sequence, `${mutation.what}: ${finding.message}`);
    located++;
  }
  assert.equal(located, MUTATIONS);
});

interface Mutation {
  readonly what: string;
  /** The first place that is wrong after it. */
  readonly sequence: number;
  tamper(tx: Database): Promise<unknown>;
}

function randomMutation(): Mutation {
  const sequence = randomInt(1, ENTRIES + 1);
  const text = randomBytes(4).toString("hex");
  const only = `where chain = '${CHAIN}' and sequence = ${sequence}`;
  const one = (what: string, sql: string, first = sequence): Mutation => ({
    what: `${what} at ${sequence}`,
    sequence: first,
    tamper: (tx) => tx.query(sql),
  });
  const column = must(["actor_id", "subject_id", "run_id", "detail"][randomInt(4)], "a column");
  const proof = must(["seal", "hash", "signature"][randomInt(3)], "a column");
  const other = 1 + ((sequence - 1 + randomInt(1, ENTRIES)) % ENTRIES);
  const byte = randomInt(32);
  return must(
    [
      one(column, `update audit_entry set ${column} = '${text}' ${only}`),
      one(
        "time",
        `update audit_entry set occurred_at = occurred_at - ${randomInt(1, 99)} * interval '1 ms' ${only}`,
      ),
      one(
        `a bit of ${proof}`,
        `update audit_entry set ${proof} = set_byte(${proof}, ${byte}, get_byte(${proof}, ${byte}) # ${randomInt(1, 256)}) ${only}`,
      ),
      one("delete", `delete from audit_entry ${only}`),
      one("cut", `delete from audit_entry where chain = '${CHAIN}' and sequence >= ${sequence}`),
      one(
        "swap",
        `alter table audit_entry drop constraint audit_entry_chain_sequence_key;
         update audit_entry set sequence = ${sequence + other} - sequence where chain = '${CHAIN}' and sequence in (${sequence}, ${other})`,
        Math.min(sequence, other),
      ),
      one(
        "content of another",
        `update audit_entry set (actor_id, subject_id, run_id, detail, seal, occurred_at)
           = (select actor_id, subject_id, run_id, detail, seal, occurred_at from audit_entry where chain = '${CHAIN}' and sequence = ${other}) ${only}`,
      ),
      one(
        "copy",
        `alter table audit_entry drop constraint audit_entry_chain_sequence_key;
         insert into audit_entry (id, account_id, occurred_at, actor_kind, actor_id, action, subject_id, run_id, detail, seal, sequence, hash, signature)
         select 'aud_${text}', account_id, occurred_at, actor_kind, actor_id, action, subject_id, run_id, detail, seal, sequence, hash, signature
         from audit_entry ${only}`,
      ),
    ][randomInt(8)],
    "a mutation",
  );
}
