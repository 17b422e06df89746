import { print, table } from "#cli/output.ts";
import { fillIn } from "./end-user.ts";
import { LOGIN } from "./end-user-logins.ts";
import type { Example, Stage } from "./example.ts";
import { connect, follow, insist, readResults, trigger } from "./steps.ts";
import { readTarget, switchTarget, type TargetState } from "./target.ts";

export const browser: Example = {
  name: "browser",
  shows:
    "a page drawn by script: a login by browser, its table and its export, requests with the same session",
  documents: [
    "strategies/northwind-shipments.yaml",
    "blueprints/shipments.yaml",
    "blueprints/book-pickup.yaml",
  ],
  needsBrowser: true,
  play,
};

const ROWS_SHOWN = 5;
const STATUS = "delayed";
const BOOKED = "SH-0004";
const BOOKED_IN_DOUBT = "SH-0008";

interface Shipment {
  readonly number: string;
  readonly destination: string;
  readonly due: string;
  readonly packages: number;
  readonly weight_kg: number;
}

async function play(stage: Stage): Promise<void> {
  const { backend, surroundings } = stage;
  const credentialId = await connect(
    backend,
    { strategy: "strat_northwind_shipments", name: "Dana Demo, shipments", key: "browser-connect" },
    async (hostedUrl) => await fillIn(hostedUrl, LOGIN),
  );
  print(
    "The portal's shipments have no form and no cookie. A browser logs in, and reads what only a page shows:",
  );
  const runId = await trigger(backend, "shipments", { credential_id: credentialId, status: STATUS });
  await followOrShow(stage, runId);
  await showShipments(stage, runId);
  await book(stage, credentialId, BOOKED);
  // The answer to the next booking is lost on its way to the page, which then says that there is no connection.
  await switchTarget(surroundings.portalUrl, {
    faults: [{ kind: "lost_answer", path: "/shipments/api/pickups", count: 1 }],
  });
  await book(stage, credentialId, BOOKED_IN_DOUBT);
  await switchTarget(surroundings.portalUrl, {});
  await compare(stage);
}

async function showShipments({ backend, surroundings }: Stage, runId: string): Promise<void> {
  const { totalRecords, records } = await readResults<Shipment>(backend, runId, "shipments");
  const exported = await readResults<{ readonly number: string }>(backend, runId, "exported");
  print(
    `\n${table(
      ["NUMBER", "DESTINATION", "DUE", "PACKAGES", "KG"],
      records
        .slice(0, ROWS_SHOWN)
        .map(({ data }) => [
          data.number,
          data.destination,
          data.due,
          String(data.packages),
          String(data.weight_kg),
        ]),
    )}\n… and ${totalRecords - ROWS_SHOWN} more.\n`,
  );
  const answered = await answeredBy(surroundings.portalUrl);
  print(
    `By browser: one sign-in, ${answered("GET /shipments/api/list", 200)} answers to the pages' own script, and a file of ` +
      `${exported.totalRecords} ${STATUS} shipments.\n` +
      `By requests, with the token of the browser's login: ${answered("GET /shipments/api/items/:number", 200)} details.`,
  );
  const numbers = (set: typeof exported): string => set.records.map(({ data }) => data.number).join();
  insist(
    totalRecords > 0 && numbers({ totalRecords, records }) === numbers(exported),
    "The pages and the export show different shipments.",
  );
}

/** A pickup, on the page's form. */
async function book(stage: Stage, credentialId: string, shipment: string): Promise<void> {
  const input = { credential_id: credentialId, shipment, day: "2026-05-04" };
  const runId = await trigger(stage.backend, "book-pickup", input, `browser-book-${shipment}`);
  await followOrShow(stage, runId);
}

/** Only operators see why a run failed, such as a browser that does not start here. */
async function followOrShow({ backend, surroundings }: Stage, runId: string): Promise<void> {
  const { status } = await follow(backend, runId);
  if (status === "completed") return;
  print(await surroundings.latchkey("runs", "show", runId));
  insist(false, "The run did not complete.");
}

async function compare({ surroundings }: Stage): Promise<void> {
  const { pickups, faults } = await readTarget(surroundings.portalUrl);
  const answered = await answeredBy(surroundings.portalUrl);
  print(
    `\n${table(
      ["PICKUP", "SHIPMENT", "DAY"],
      pickups.map(({ id, shipment, day }) => [id, shipment, day]),
    )}`,
  );
  insist(
    pickups.map(({ shipment }) => shipment).join() === [BOOKED, BOOKED_IN_DOUBT].join(),
    "The portal does not have each pickup once.",
  );
  insist(faults.length === 0, "A fault is still switched on.");
  const signIns = answered("POST /shipments/api/session", 201);
  insist(signIns === 1, `The portal saw ${signIns} sign-ins instead of one.`);
  print(
    `The answer to the booking of ${BOOKED_IN_DOUBT} was lost: a look-up on the page of pickups found it, and it was not booked again.\n` +
      "The portal saw one sign-in for all three runs: the login is kept for 15 minutes.",
  );
}

async function answeredBy(portalUrl: string): Promise<(route: string, status: number) => number> {
  const { answered }: TargetState = await readTarget(portalUrl);
  return (route, status) => answered[route]?.[status] ?? 0;
}
