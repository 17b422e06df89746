import { print, table } from "#cli/output.ts";
import { fillIn } from "./end-user.ts";
import { LEDGER_KEY, LOGIN } from "./end-user-logins.ts";
import type { Example, Stage } from "./example.ts";
import { connect, followToEnd, insist, readResults, trigger, why } from "./steps.ts";

export const threeWayMatch: Example = {
  name: "three-way-match",
  shows: "two credentials of two systems in one run, joins, reasons for what does not match",
  documents: [
    "strategies/northwind-portal.yaml",
    "strategies/southgate-ledger.yaml",
    "blueprints/three-way-match.yaml",
  ],
  play,
};

interface Match {
  readonly invoice: string;
  readonly order: string;
  readonly billed_quantity: number;
  readonly billed_price: number;
  readonly ordered_price?: number;
  readonly arrived_quantity?: number;
}

async function play({ backend }: Stage): Promise<void> {
  const portal = await connect(
    backend,
    { strategy: "strat_northwind_portal", name: "Dana Demo, portal", key: "match-connect-portal" },
    async (hostedUrl) => await fillIn(hostedUrl, LOGIN),
  );
  const ledger = await connect(
    backend,
    { strategy: "strat_southgate_ledger", name: "Southgate", key: "match-connect-ledger" },
    async (hostedUrl) => await fillIn(hostedUrl, LEDGER_KEY),
  );
  const runId = await trigger(backend, "three-way-match", { credential_ids: [portal, ledger] });
  await followToEnd(backend, runId);
  const payable = await readResults<Match>(backend, runId, "invoices.payable");
  const questioned = await readResults<Match>(backend, runId, "invoices.questioned");
  print(
    `${payable.totalRecords} invoices agree with their order and receipt; ${questioned.totalRecords} do not:\n`,
  );
  print(
    table(
      ["INVOICE", "ORDER", "BILLED", "ORDERED AT", "ARRIVED", "WHY"],
      questioned.records.map((record) => [
        record.data.invoice,
        record.data.order,
        `${record.data.billed_quantity} at ${record.data.billed_price.toFixed(2)}`,
        record.data.ordered_price?.toFixed(2) ?? "",
        String(record.data.arrived_quantity ?? ""),
        why(record),
      ]),
    ),
  );
  insist(
    payable.totalRecords === 36 && questioned.totalRecords === 4,
    "The questioned invoices are not the four prepared ones.",
  );
}
