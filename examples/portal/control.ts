import type { FastifyInstance } from "fastify";
import { type Fault, FAULT_KINDS, type Faults } from "./faults.ts";

/** What can be read and switched from outside, beside the portal's own pages. */
export interface Controlled {
  readonly faults: Faults;
  /** Access tokens are forgotten after so many requests, whatever `expires_in` said; null: when their time is over. */
  setTokenUses(uses: number | null): void;
  /** What the portal has seen and holds. */
  state(): Readonly<Record<string, unknown>>;
}

/**
 * The portal's switches. `GET /__control` shows what it holds and has seen; `PUT /__control` sets
 * `{ seed, faults, access_token_uses }`, and what is left out is off. No sign-in: the portal listens on loopback only, and
 * takes JSON alone, which no page of another site can send unasked.
 */
export function addControl(app: FastifyInstance, controlled: Controlled): void {
  app.get("/__control", () => ({ ...controlled.state(), faults: controlled.faults.state() }));
  app.put("/__control", async (request, reply) => {
    const read = readSwitches(request.body);
    if ("problem" in read) return reply.code(422).send({ error: read.problem });
    controlled.faults.set(read.seed, read.faults);
    controlled.setTokenUses(read.tokenUses);
    return { ...controlled.state(), faults: controlled.faults.state() };
  });
}

type Switches =
  | { readonly seed: number; readonly faults: readonly Fault[]; readonly tokenUses: number | null }
  | { readonly problem: string };

type Loose = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Loose =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function readSwitches(body: unknown): Switches {
  if (!isObject(body)) return { problem: "the body must be an object" };
  const unknown = Object.keys(body).find((key) => !["seed", "faults", "access_token_uses"].includes(key));
  if (unknown !== undefined) return { problem: `${unknown} is no switch` };
  const { seed = 0, faults = [], access_token_uses: uses = null } = body;
  if (!isWhole(seed, 0, 4_294_967_295)) return { problem: "seed must be a whole number" };
  if (uses !== null && !isWhole(uses, 1, 1_000_000))
    return { problem: "access_token_uses must be a whole number from 1, or null" };
  if (!Array.isArray(faults)) return { problem: "faults must be a list" };
  const read: Fault[] = [];
  for (const [index, each] of faults.entries()) {
    const fault = readFault(each);
    if (typeof fault === "string") return { problem: `faults[${index}]: ${fault}` };
    read.push(fault);
  }
  return { seed, faults: read, tokenUses: uses };
}

/** The fault, or what is wrong with it. */
function readFault(value: unknown): Fault | string {
  if (!isObject(value)) return "must be an object";
  const { kind: name, path, count = null, probability = 1, seconds = 1 } = value;
  const kind = FAULT_KINDS.find((known) => known === name);
  if (kind === undefined) return `kind must be one of ${FAULT_KINDS.join(", ")}`;
  if (typeof path !== "string" || !path.startsWith("/")) return "path must begin with /";
  if (count !== null && !isWhole(count, 1, 1_000_000)) return "count must be a whole number from 1, or null";
  if (typeof probability !== "number" || !(probability >= 0 && probability <= 1))
    return "probability must be a number from 0 to 1";
  if (typeof seconds !== "number" || !(seconds >= 0 && seconds <= 600))
    return "seconds must be a number from 0 to 600";
  return { kind, path, count, probability, seconds };
}

const isWhole = (value: unknown, min: number, max: number): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= min && value <= max;
