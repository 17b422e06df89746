import type { FastifyInstance } from "fastify";
import { mulberry32 } from "./random.ts";
import { type SignedIn, unauthenticated } from "./signed-in.ts";

interface Meter {
  readonly id: string;
  readonly site: string;
}

interface Reading {
  readonly meter: string;
  /** YYYY-MM-DD */
  readonly date: string;
  readonly kwh: number;
}

export const METER_COUNT = 12;
const MONTHS = 6;
/** Where a reading is lower than the one before: somebody has changed the meter, or mistyped. */
export const BACKWARDS = { meter: 4, month: 3 } as const;

const meterId = (index: number): string => `M-${String(index + 1).padStart(2, "0")}`;

export const METERS: readonly Meter[] = Array.from({ length: METER_COUNT }, (_, index) => ({
  id: meterId(index),
  site: ["Harbour Road", "Mill Lane", "Old Foundry"][index % 3] ?? "",
}));

/** Six readings a meter, the same on every machine; each is higher than the one before, but for one. */
export function generateReadings(seed: number): readonly Reading[] {
  const random = mulberry32(seed);
  return METERS.flatMap(({ id }, index) => {
    let kwh = 6_000 + Math.floor(random() * 9_000);
    return Array.from({ length: MONTHS }, (_, month) => {
      kwh += 80 + Math.floor(random() * 400);
      const isBackwards = index === BACKWARDS.meter && month === BACKWARDS.month;
      const date = `2026-${String(month + 1).padStart(2, "0")}-01`;
      return { meter: id, date, kwh: isBackwards ? kwh - 5_000 : kwh };
    });
  });
}

/** `GET /api/meters`, and for each `GET /api/meters/:meter/readings`. */
export function addMeterRoutes(app: FastifyInstance, signedIn: SignedIn, readings: readonly Reading[]): void {
  app.get("/api/meters", async (request, reply) =>
    signedIn(request) ? { meters: METERS } : unauthenticated(reply),
  );
  app.get<{ Params: { meter: string } }>("/api/meters/:meter/readings", async (request, reply) => {
    if (!signedIn(request)) return unauthenticated(reply);
    const found = readings.filter(({ meter }) => meter === request.params.meter);
    if (found.length === 0) return reply.code(404).send({ error: "There is no such meter" });
    return { readings: found };
  });
}
