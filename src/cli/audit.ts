import { join } from "node:path";
import { InvalidArgumentError, type Command } from "commander";
import type { VerifiedAudit } from "#actions/audit/verify-audit.ts";
import type { ExportLine } from "#actions/audit/export-audit.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, print, table, tell } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";

export function addAudit(program: Command, composition: Composition): void {
  const audit = program
    .command("audit")
    .description("check and export the audit log")
    .addHelpText(
      "after",
      "\nExamples:\n  latchkey audit verify\n  latchkey audit export --account acme --json",
    );
  audit
    .command("verify")
    .description("verify every chain, and report the first place where it was tampered with")
    .option("--account <name>", "only this account's chain")
    .option("--checkpoints <file...>", "checkpoint files (default: the one in the data folder)")
    .option("--json", "print the findings as JSON")
    .addHelpText(
      "after",
      "\nExample:\n  latchkey audit verify --checkpoints /mnt/backup/audit-checkpoints.ndjson",
    )
    .action(async (options: VerifyOptions) => await verify(composition, options));
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
    .addHelpText(
      "after",
      "\nExample:\n  latchkey audit export --account acme --since 2026-11-01 --json > acme.ndjson",
    )
    .action(async (options: ExportOptions) => await exportEntries(composition, options));
}

interface VerifyOptions {
  account?: string;
  checkpoints?: string[];
  json?: boolean;
}

interface ExportOptions {
  account?: string;
  since?: string;
  json?: boolean;
}

async function verify(composition: Composition, options: VerifyOptions): Promise<void> {
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
  const lines = chains.flatMap(({ chain, account, entries, open, findings }) => {
    const name = account ?? chain;
    const waiting = open > 0 ? `, ${open} not chained yet` : "";
    return findings.length === 0
      ? [`${name}: ${entries} entries verified${waiting}`]
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
