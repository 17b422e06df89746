// ARCHITECTURE.md, What never happens: no row that decides is used unverified.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { SIGNED_TABLES } from "#db/signing/signed-tables.ts";

const root = join(import.meta.dirname, "..", "..", "src");
const files = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .toSorted();
const textOf = (file: string): string => readFileSync(join(root, file), "utf8");

const tables = Object.values(SIGNED_TABLES)
  .map(({ table }) => table)
  .join("|");

/** Where the tables are read or written, and why that is no way round. A new line here is a decision. */
const IN_SQL: Readonly<Record<string, string>> = {
  "db/backups/snapshot.ts":
    "names the keys that a restore needs; what a backup has is verified when it is used, like any row",
  "db/account-secrets.ts": "reads by readGenuine, writes signed rows",
  "db/runs/admission.ts":
    "counts by how many runs at once a strategy allows: that delays runs, and sends nothing anywhere",
  "db/runs/group-limits.ts":
    "reads how many runs at once a Blueprint allows: that delays runs, and sends nothing anywhere",
  "db/operators/operator-schedules.ts": "shows keys of Blueprints",
  "db/credentials/sealed-places.ts": "moves sealed values to another key",
  "db/config-documents.ts": "reads by readGenuine",
  "db/signing/new-versions.ts": "writes signed rows",
  "db/operators/operator-config.ts":
    "lists for operators; what they may apply again it reads by readOneGenuine",
  "db/operators/operator-sessions.ts":
    "reads by readGenuine, writes signed rows; the lists of an operator's own sessions are shown",
  "db/operators/operators.ts": "reads by readGenuine, writes signed rows; lists for admins",
  "db/document-sources.ts":
    "keeps the text of a version; it is shown only while it says what the verified version says",
  "db/operators/operator-credentials.ts": "shows keys of Blueprints",
  "db/schedules/schedules.ts": "shows keys of Blueprints",
  "db/schedules/schedule-fires.ts": "finds the keys of Blueprints; the trigger verifies what it runs",
  "db/operators/whose.ts": "shows who created a session or a key, for operators",
  "db/runs/review-presence.ts": "shows names of operators",
  "db/operators/operator-tokens.ts": "reads by readGenuine, writes signed rows; lists for admins",
  "db/credentials/vault-keys.ts": "reads by readGenuine, writes signed rows",
  "db/operators/two-person-rules.ts": "reads by readGenuine, writes signed rows",
  "db/operators/proposals.ts": "reads by readGenuine, writes signed rows; shows the name of an operator",
  "db/operators/operator-audit.ts": "shows the name of an operator",
  "db/operators/operator-changes.ts": "ends streams of sessions and tokens that are over",
  "db/operators/operator-overview.ts": "shows keys of Blueprints",
  "db/operators/operator-runs.ts": "shows keys of Blueprints and names of operators",
  "db/operators/run-search.ts": "shows keys of Blueprints and ids of strategies that a search finds",
  "db/runs/reviews.ts": "shows keys of Blueprints",
  "db/runs/run-writes.ts": "shows keys of Blueprints",
  "db/runs/runs.ts": "shows keys of Blueprints",
};

test("the tables that decide stand in the SQL of these files and of no other", () => {
  const used = new RegExp(`\\b(?:from|join|into|update|using)\\s+(?:${tables})\\b`);
  const found = files.filter((file) => file.startsWith("db/") && used.test(textOf(file)));
  assert.deepEqual(
    found.filter((file) => !(file in IN_SQL)),
    [],
  );
});

/** Columns that nobody needs to show. */
const DECIDES =
  /\b(?:password_hash|totp_nonce|totp_confirmed_at|public_jwk|current_version|row_mac|row_serial|token_hash)\b/;

test("the columns that decide are named where they are verified or written, and nowhere else", () => {
  const verified = [
    "db/signing/new-versions.ts",
    "db/signing/signed-tables.ts",
    "db/signing/first-signing.ts",
    "db/signing/check-signed-rows.ts",
    // Not verified: a text is compared with the version that is.
    "db/document-sources.ts",
    // Not verified: it counts by the number of runs at once alone.
    "db/runs/admission.ts",
    "db/runs/group-limits.ts",
  ];
  const places = files.filter((file) =>
    DECIDES.test(textOf(file).replaceAll(/^\s*(?:\/\*\*|\*|\/\/).*$/gm, "")),
  );
  for (const file of places) {
    if (verified.includes(file)) continue;
    assert.match(
      textOf(file),
      /\bread(?:One)?Genuine\(/,
      `${file} reads what decides, and does not verify it`,
    );
  }
  // The search finds something.
  assert.ok(places.length > 6, places.join());
});

test("only one file verifies signatures of rows", () => {
  assert.deepEqual(
    files.filter((file) => /\bkeys\.isGenuine\(/.test(textOf(file))),
    ["db/signing/signed-rows.ts"],
  );
});
