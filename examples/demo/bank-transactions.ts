import { print, table } from "#cli/output.ts";
import { LOGIN } from "./end-user-logins.ts";
import type { Example, Stage } from "./example.ts";
import { connect, followToEnd, insist, readResults, RETURN_URL, trigger, why } from "./steps.ts";
import { readTarget, switchTarget } from "./target.ts";
import { walk } from "./visitor.ts";

export const bankTransactions: Example = {
  name: "bank-transactions",
  shows: "OAuth with PKCE, tokens that rotate and expire in the middle of a run, a cursor",
  documents: ["strategies/northwind-bank.yaml", "blueprints/bank-transactions.yaml"],
  play,
};

interface Transaction {
  readonly id: string;
  readonly date: string;
  readonly cents: number;
  readonly currency: string;
  readonly counterparty: string;
}

const TRANSACTIONS = 260;
/** The bank says that an access token is valid for five minutes, but forgets it after this many requests. A run has 13. */
const TOKEN_USES = 5;

async function play({ backend, surroundings }: Stage): Promise<void> {
  const { portalUrl } = surroundings;
  const credentialId = await connect(
    backend,
    { strategy: "strat_northwind_bank", name: "Bank of Dana Demo", key: "bank-connect" },
    // From our page to the bank's login, its consent page, and back: the password is only entered at the bank.
    async (hostedUrl) => await walk(hostedUrl, { ...LOGIN, decision: "allow" }, new URL(RETURN_URL).origin),
  );
  await switchTarget(portalUrl, { access_token_uses: TOKEN_USES });
  for (const round of ["first", "second"]) {
    const before = (await readTarget(portalUrl)).tokens.refreshed;
    const runId = await trigger(backend, "bank-transactions", { credential_id: credentialId });
    await followToEnd(backend, runId);
    const incoming = await readResults<Transaction>(backend, runId, "transactions.incoming");
    const outgoing = await readResults<Transaction>(backend, runId, "transactions.outgoing");
    const total = incoming.totalRecords + outgoing.totalRecords;
    const { tokens } = await readTarget(portalUrl);
    print(
      `The ${round} run: ${incoming.totalRecords} in, ${outgoing.totalRecords} out; the access token expired ` +
        `${tokens.refreshed - before} times meanwhile, and was renewed each time.`,
    );
    insist(total === TRANSACTIONS, `${total} transactions instead of ${TRANSACTIONS}.`);
    insist(tokens.refreshed > before, "No access token expired in the middle of the run.");
    if (round === "first") show([...incoming.records, ...outgoing.records].filter(({ isValid }) => !isValid));
  }
  const { tokens } = await readTarget(portalUrl);
  insist(tokens.reused === 0, "A refresh token was used twice.");
  print(
    `The bank gave one consent (${tokens.exchanged} code exchanged), renewed tokens ${tokens.refreshed} times, each ` +
      "refresh token used once; one that came twice would have ended the connection.",
  );
}

function show(invalid: readonly Parameters<typeof rowOf>[0][]): void {
  insist(invalid.length === 1, `${invalid.length} transactions are invalid instead of one.`);
  print(`\n${table(["ID", "DATE", "AMOUNT", "WHY"], invalid.map(rowOf))}\n`);
}

const rowOf = (record: {
  readonly data: Transaction;
  readonly errors: readonly { readonly field: string | null; readonly message: string }[];
}): string[] => [
  record.data.id,
  record.data.date,
  `${(record.data.cents / 100).toFixed(2)} ${record.data.currency}`,
  why(record),
];
