import { print, table } from "#cli/output.ts";
import { fillIn } from "./end-user.ts";
import { LOGIN_OF_METERS } from "./end-user-logins.ts";
import type { Example, Stage } from "./example.ts";
import { connect, follow, followToEnd, insist, readResults, trigger, why } from "./steps.ts";
import { readTarget, switchTarget } from "./target.ts";

export const meterReadings: Example = {
  name: "meter-readings",
  shows: "a target that returns 429 and 503, is slow, and locks users out",
  documents: ["strategies/northwind-meters.yaml", "blueprints/meter-readings.yaml"],
  play,
};

const BLUEPRINT = "meter-readings";
const READINGS = 72;

interface Reading {
  readonly meter: string;
  readonly site: string;
  readonly date: string;
  readonly kwh: number;
  readonly used: number;
}

async function play(stage: Stage): Promise<void> {
  await connectWithWrongPassword(stage);
  await readThroughFaults(stage);
}

/** A wrong password, and a schedule that keeps triggering: the portal would lock the user after five attempts, but receives only two. */
async function connectWithWrongPassword({ backend, surroundings }: Stage): Promise<void> {
  const credentialId = await connect(
    backend,
    { strategy: "strat_northwind_meters", name: "Mira Demo, mistyped", key: "meters-connect-wrong" },
    async (hostedUrl) =>
      await fillIn(hostedUrl, { ...LOGIN_OF_METERS, password: "correct horse battery stable" }),
  );
  for (const nth of [1, 2, 3, 4]) {
    const runId = await trigger(backend, BLUEPRINT, { credential_id: credentialId });
    const { status } = await follow(backend, runId);
    const tries = (await readTarget(surroundings.portalUrl)).sign_ins["demo-meters"]?.wrong_tries;
    print(`Run ${nth} ${status}; the portal has seen ${tries} wrong passwords.`);
    insist(
      status === "failed" && tries === Math.min(nth, 2),
      "The wrong password was tried too often, or never.",
    );
  }
  const listed = await surroundings.latchkey("credentials", "list", "--account", "acme");
  print(`\nlatchkey credentials list:\n${listed.split("\n").find((line) => line.includes(credentialId))}\n`);
  const locked = (await readTarget(surroundings.portalUrl)).sign_ins["demo-meters"]?.locked;
  insist(locked === false, "The portal has locked the account.");
}

async function readThroughFaults({ backend, surroundings }: Stage): Promise<void> {
  const credentialId = await connect(
    backend,
    { strategy: "strat_northwind_meters", name: "Mira Demo", key: "meters-connect" },
    async (hostedUrl) => await fillIn(hostedUrl, LOGIN_OF_METERS),
  );
  // The same seed, the same requests in the same order: the same faults every time.
  await switchTarget(surroundings.portalUrl, {
    seed: 7,
    faults: [
      { kind: "limit", path: "/api/meters/", count: 2, probability: 0.3, seconds: 1 },
      { kind: "unavailable", path: "/api/meters/", count: 4, probability: 0.4 },
      { kind: "slow", path: "/api/meters/", count: 1, probability: 0.3, seconds: 4 },
    ],
  });
  const runId = await trigger(backend, BLUEPRINT, { credential_id: credentialId });
  await followToEnd(backend, runId);
  const plausible = await readResults<Reading>(backend, runId, "readings.plausible");
  const implausible = await readResults<Reading>(backend, runId, "readings.implausible");
  const { faults, answered } = await readTarget(surroundings.portalUrl);
  const requests = Object.values(answered["GET /api/meters/:meter/readings"] ?? {});
  print(
    `The portal got ${requests.reduce((sum, count) => sum + count, 0)} requests for 12 meters, and answered ` +
      `${faults.map(({ kind, struck }) => `${struck} with "${kind}"`).join(", ")}.`,
  );
  const total = plausible.totalRecords + implausible.totalRecords;
  print(`All ${total} readings are there; ${implausible.totalRecords} can't be right:\n`);
  print(
    table(
      ["METER", "SITE", "DATE", "KWH", "USED", "WHY"],
      implausible.records.map((record) => [
        record.data.meter,
        record.data.site,
        record.data.date,
        String(record.data.kwh),
        String(record.data.used),
        why(record),
      ]),
    ),
  );
  insist(total === READINGS && implausible.totalRecords === 1, "Readings are missing.");
  insist(
    faults.every(({ struck }) => struck > 0),
    "Not every fault has occurred.",
  );
  await switchTarget(surroundings.portalUrl, {});
}
