import { readFileSync } from "node:fs";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { query, wholeNumber } from "./parameters.ts";
import { shipmentsPage, trackingPage } from "./shipment-pages.ts";
import type { ShipmentTokens } from "./shipment-tokens.ts";
import { SHIPMENT_STATUSES, type Shipment, shipmentsCsv } from "./shipments.ts";
import type { SignIn } from "./sign-in.ts";
import { unauthenticated } from "./signed-in.ts";

/** A pickup that was booked. */
export interface Pickup {
  readonly id: string;
  readonly shipment: string;
  readonly day: string;
  readonly booked_by: string;
}

const PAGE_ROWS = 8;
/** The page runs a script of the portal's own, and shows frames of the portal's own. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src data:; frame-src 'self'; " +
  "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const FRAME_POLICY =
  "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'self'";

/**
 * The shipments, as portals have it whose pages are drawn by script: there is no form in the HTML and no cookie. `/shipments` and what
 * is below it is one page; its script (shipments-page.js) signs in, keeps a token in the session storage, and asks `/shipments/api/`.
 */
export function addShipmentRoutes(
  app: FastifyInstance,
  signIn: SignIn,
  tokens: ShipmentTokens,
  shipments: readonly Shipment[],
): readonly Pickup[] {
  const script = readFileSync(new URL("./shipments-page.js", import.meta.url), "utf8");
  const page = async (_request: FastifyRequest, reply: FastifyReply) =>
    await html(reply, PAGE_POLICY, shipmentsPage());
  for (const path of ["/shipments", "/shipments/sign-in", "/shipments/pickups"]) app.get(path, page);
  app.get("/shipments/page.js", (_request, reply) =>
    reply.type("text/javascript; charset=utf-8").send(script),
  );
  app.get<{ Params: { number: string } }>("/shipments/tracking/:number", async (request, reply) => {
    const shipment = shipments.find(({ number }) => number === request.params.number);
    return await html(reply.code(shipment ? 200 : 404), FRAME_POLICY, trackingPage(shipment));
  });
  addSessions(app, signIn, tokens);
  addReads(app, tokens, shipments);
  return addPickups(app, tokens, shipments);
}

function addSessions(app: FastifyInstance, signIn: SignIn, tokens: ShipmentTokens): void {
  app.post("/shipments/api/session", async (request, reply) => {
    const { username, password, code } = textsOf(request.body);
    const outcome = signIn.checkPassword(username ?? "", password ?? "");
    if (outcome === "locked") return reply.code(423).send({ error: "Account locked" });
    if (outcome === "wrong") return reply.code(401).send({ error: "Wrong username or password" });
    if (outcome === "code_needed") {
      if (code === undefined) return reply.code(202).send({ needs: "code" });
      if (signIn.checkCode(username ?? "", code) !== "signed_in")
        return reply.code(401).send({ error: "Wrong code" });
    }
    return reply.code(201).send({ token: tokens.give(username ?? ""), username });
  });
  app.delete("/shipments/api/session", async (request, reply) => {
    tokens.end(request);
    return reply.code(204).send();
  });
  app.get("/shipments/api/me", async (request, reply) => {
    const username = tokens.usernameOf(request);
    return username === undefined ? unauthenticated(reply) : { username };
  });
}

function addReads(app: FastifyInstance, tokens: ShipmentTokens, shipments: readonly Shipment[]): void {
  app.get("/shipments/api/list", async (request, reply) => {
    if (tokens.usernameOf(request) === undefined) return unauthenticated(reply);
    const status = query(request, "status");
    const search = (query(request, "search") ?? "").toUpperCase();
    const found = shipments.filter(
      (shipment) => (status === undefined || shipment.status === status) && shipment.number.includes(search),
    );
    const pages = Math.max(1, Math.ceil(found.length / PAGE_ROWS));
    const page = wholeNumber(query(request, "page") ?? "1", 1, pages);
    if (page === undefined) return reply.code(404).send({ error: `There are pages 1 to ${pages}` });
    const items = found.slice((page - 1) * PAGE_ROWS, page * PAGE_ROWS);
    return { items, page, pages, total: found.length, statuses: SHIPMENT_STATUSES };
  });
  app.get("/shipments/api/export", async (request, reply) => {
    if (tokens.usernameOf(request) === undefined) return unauthenticated(reply);
    return reply.type("text/csv; charset=utf-8").send(shipmentsCsv(shipments));
  });
  app.get<{ Params: { number: string } }>("/shipments/api/items/:number", async (request, reply) => {
    if (tokens.usernameOf(request) === undefined) return unauthenticated(reply);
    const shipment = shipments.find(({ number }) => number === request.params.number);
    return shipment ?? reply.code(404).send({ error: "There is no such shipment" });
  });
}

/** A pickup is booked for a day, once for a shipment. */
function addPickups(
  app: FastifyInstance,
  tokens: ShipmentTokens,
  shipments: readonly Shipment[],
): readonly Pickup[] {
  const pickups: Pickup[] = [];
  app.post("/shipments/api/pickups", async (request, reply) => {
    const username = tokens.usernameOf(request);
    if (username === undefined) return unauthenticated(reply);
    const { shipment = "", day = "" } = textsOf(request.body);
    if (!shipments.some(({ number }) => number === shipment))
      return reply.code(422).send({ error: `There is no shipment ${shipment}` });
    if (!/^\d{4}-\d{2}-\d{2}$/.test(day)) return reply.code(422).send({ error: "Choose a day" });
    if (pickups.some((pickup) => pickup.shipment === shipment))
      return reply.code(409).send({ error: `The pickup of ${shipment} is booked already` });
    const id = `PU-${String(pickups.length + 1).padStart(4, "0")}`;
    const pickup = { id, shipment, day, booked_by: username };
    pickups.push(pickup);
    return reply.code(201).send(pickup);
  });
  app.get("/shipments/api/pickups", async (request, reply) =>
    tokens.usernameOf(request) === undefined ? unauthenticated(reply) : { pickups },
  );
  return pickups;
}

/** The texts of a JSON object. */
function textsOf(body: unknown): Readonly<Record<string, string | undefined>> {
  const entries = typeof body === "object" && body !== null ? Object.entries(body) : [];
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

async function html(
  reply: FastifyReply,
  policy: string,
  content: ReturnType<typeof shipmentsPage>,
): Promise<FastifyReply> {
  reply.header("content-security-policy", policy);
  return reply.type("text/html; charset=utf-8").send(String(await content));
}
