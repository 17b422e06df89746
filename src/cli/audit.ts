import { join } from "node:path";
import { InvalidArgumentError, type Command } from "commander";
import type { VerifiedAudit } from "#actions/audit/verify-audit.ts";
import type { ExportLine } from "#actions/audit/export-audit.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, EXIT_CODES, print, table, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { openProgressBar } from "./progress-bar.ts";

export function addAudit(program: Command, composition: Composition): void {
  const audit = program
    .command("audit")
    .description("check and export the audit log, and remove exported months from the database")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey audit verify\n  latchkey audit export --account acme --json\n  latchkey audit export --month 2026-08 --out 2026-08.ndjson",
    );
  audit
    .command("verify")
    .description(
      "verify every chain, and report the first place where it was tampered with; or verify the file of an exported month, without a database",
    )
    .argument("[file]", "the file of an exported month")
    .option("--account <name>", "only this account's chain")
    .option("--checkpoints <file...>", "checkpoint files (default: the one in the data folder)")
    .option("--public-key <key>", "of a file: the key that signed it (default: this installation's)")
    .option("--json", "print the findings as JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey audit verify --checkpoints /mnt/backup/audit-checkpoints.ndjson\n  latchkey audit verify 2026-08.ndjson",
    )
    .action(async (file: string | undefined, options: VerifyOptions) =>
      file === undefined ? await verify(composition, options) : await verifyFile(composition, file, options),
    );
  audit
    .command("export")
    .description("print the entries with their proofs; docs/audit.md describes how to verify them offline")
    .option("--account <name>", "only this account's chain (default: all)")
    .option(
      "--since <time>",
      "only entries from this time on, such as 2026-11-21 or 2026-11-21T07:00:00Z",
      readSince,
    )
    .option("--json", "one JSON object per line")
    .option("--month <month>", "all entries of a month that is over, such as 2026-08, signed; needs --out")
    .option("--out <file>", "a new file for the month")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey audit export --account acme --since 2026-11-01 --json > acme.ndjson\n" +
        "  latchkey audit export --month 2026-08 --out 2026-08.ndjson",
    )
    .action(async (options: ExportOptions) =>
      options.month === undefined && options.out === undefined
        ? await exportEntries(composition, options)
        : await exportClosedMonth(composition, options),
    );
  audit
    .command("detach")
    .description(
      "remove the entries of an exported month from the database, as its owner; the chains still verify afterwards",
    )
    .requiredOption("--month <month>", "the month, such as 2026-08")
    .requiredOption("--file <file>", "the file that `audit export --month` wrote; it is verified first")
    .option("--yes", "remove them; without it, only what would be removed is shown")
    .addHelpText("after", "\nExample:\n  latchkey audit detach --month 2026-08 --file 2026-08.ndjson --yes")
    .action(async (options: DetachOptions) => await detach(composition, options));
}

interface VerifyOptions {
  account?: string;
  checkpoints?: string[];
  publicKey?: string;
  json?: boolean;
}

interface ExportOptions {
  account?: string;
  since?: string;
  json?: boolean;
  month?: string;
  out?: string;
}

interface DetachOptions {
  month: string;
  file: string;
  yes?: boolean;
}

async function verify(composition: Composition, options: VerifyOptions): Promise<void> {
  if (options.publicKey !== undefined)
    throw new CommandFailed(
      "--public-key is for a file. Name the file of an exported month.",
      EXIT_CODES.usage,
    );
  const signing = openOwnSigning(composition);
  const { verifyAudit } = await import("#actions/audit/verify-audit.ts");
  const checkpointFiles = options.checkpoints ?? [
    join(composition.config().dataDir, "audit-checkpoints.ndjson"),
  ];
  const verified = await composition.withDatabase(
    async (db) => await verifyAudit(db, signing.audit, { account: options.account ?? null, checkpointFiles }),
  );
  print(options.json ? JSON.stringify(verified) : describe(verified));
  const wrong =
    verified.chains.filter(({ findings }) => findings.length > 0).length + verified.foreignCheckpoints.length;
  if (wrong > 0) throw new CommandFailed("The audit log has been tampered with.");
}

function describe({ chains, foreignCheckpoints }: VerifiedAudit): string {
  const lines = chains.flatMap(({ chain, account, entries, exported, open, findings }) => {
    const name = account ?? chain;
    const waiting = open > 0 ? `, ${open} not chained yet` : "";
    const outside = exported.length > 0 ? `; in exported files: ${exported.join(", ")}` : "";
    return findings.length === 0
      ? [`${name}: ${entries} entries verified${waiting}${outside}`]
      : findings.map(({ fault, message }) => `${name}: ${fault}: ${message}`);
  });
  const foreign = foreignCheckpoints.map(
    (place) => `${place}: this checkpoint was not written by this installation`,
  );
  return [...lines, ...foreign].join("\n") || "There are no entries yet.";
}

async function exportEntries(composition: Composition, options: ExportOptions): Promise<void> {
  const signing = openOwnSigning(composition);
  const [{ exportAudit }, { inSnapshot }] = await Promise.all([
    import("#actions/audit/export-audit.ts"),
    import("#db/audit-entries.ts"),
  ]);
  const request = { account: options.account ?? null, since: options.since ?? null };
  await composition.withDatabase(
    async (db) =>
      await inSnapshot(db, async (tx) => {
        const lines = exportAudit(tx, signing.audit, request);
        if (options.json) for await (const line of lines) print(JSON.stringify(line));
        else print(await describeEntries(lines));
      }),
  );
}

async function verifyFile(composition: Composition, file: string, options: VerifyOptions): Promise<void> {
  if (options.account !== undefined || options.checkpoints !== undefined)
    throw new CommandFailed(
      "--account and --checkpoints are for the database. Leave them out to verify a file.",
      EXIT_CODES.usage,
    );
  const publicKey = options.publicKey ?? openOwnSigning(composition).audit.publicKey;
  const [{ verifyMonthFile }, { openAuditVerifier }] = await Promise.all([
    import("#actions/audit/verify-month-file.ts"),
    import("#lib/audit-keys.ts"),
  ]);
  const verifier = openKey(() => openAuditVerifier(publicKey));
  const { month, chains, entries, sha256 } = await verifyMonthFile(file, verifier);
  print(
    options.json
      ? JSON.stringify({ month, chains, entries, sha256 })
      : `${file}: ${month}, ${entries} entries of ${chains} chains verified`,
  );
}

function openKey<Key>(open: () => Key): Key {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new CommandFailed(
      "--public-key must be the 43 characters that `latchkey audit export --json` shows as `public_key`.",
      EXIT_CODES.usage,
    );
  }
}

async function exportClosedMonth(composition: Composition, options: ExportOptions): Promise<void> {
  const { month, out: file, account, since } = options;
  if (month === undefined || file === undefined || account !== undefined || since !== undefined)
    throw new CommandFailed(
      "A month is exported whole, into a new file: give --month and --out, without --account and --since.",
      EXIT_CODES.usage,
    );
  const signing = openOwnSigning(composition);
  const { exportMonth } = await import("#actions/audit/export-month.ts");
  const bar = openProgressBar("Exporting entries");
  const { chains, entries, sha256 } = await composition.withDatabase(
    async (db) =>
      await exportMonth(db, signing.audit, { month, file }, (done, total) => bar.show(done, total)),
  );
  bar.end();
  print(
    options.json
      ? JSON.stringify({ file, month, chains, entries, sha256 })
      : `Wrote ${file}: ${entries} entries of ${chains} chains. Keep it with the other months, apart from the database.`,
  );
}

async function detach(composition: Composition, { month, file, yes }: DetachOptions): Promise<void> {
  const signing = openOwnSigning(composition);
  const { detachMonth, planDetaching } = await import("#actions/audit/detach-month.ts");
  if (yes !== true) {
    const { verified } = await composition.withDatabase(
      async (db) => await planDetaching(db, signing.audit, { month, file }),
    );
    throw new CommandFailed(
      `${verified.entries} entries of ${verified.chains} chains would be removed from the database; nothing was changed. Afterwards they are ` +
        `only in ${file}: keep it in more than one place. Add --yes to remove them.`,
    );
  }
  const bar = openProgressBar("Removing entries");
  const { removed, kept, chains } = await composition.withDatabase(
    async (db) =>
      await detachMonth(db, signing.audit, {
        month,
        file,
        onProgress: (done, total) => bar.show(done, total),
      }),
    { asOwner: true },
  );
  bar.end();
  print(
    `Removed ${removed} entries of ${month} from ${chains} chains. They are in ${file}, which this database can't replace.` +
      (kept > 0 ? ` ${kept} entries that signed rows need are still in the database as well.` : ""),
  );
}

async function describeEntries(lines: AsyncIterable<ExportLine>): Promise<string> {
  const rows: string[][] = [];
  for await (const line of lines) {
    if (line["format"] !== undefined) continue;
    const actor = [line["actor_kind"], line["actor_id"]].filter((part) => part !== null).join(" ");
    const cells = [
      line["sequence"],
      line["occurred_at"],
      line["action"],
      line["subject_id"],
      actor,
      line["detail"],
    ];
    rows.push(cells.map(String));
  }
  if (rows.length === 0) tell("There are no chained entries in this range.");
  return table(["NO", "TIME", "ACTION", "SUBJECT", "ACTOR", "DETAIL"], rows);
}

function readSince(text: string): string {
  const isDate = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z)?$/.test(text);
  const time = isDate ? new Date(text) : null;
  if (!time || Number.isNaN(time.getTime()))
    throw new InvalidArgumentError("It must be a day (2026-11-21) or a time in UTC (2026-11-21T07:00:00Z).");
  return time.toISOString();
}
