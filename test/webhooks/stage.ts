import { createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { prepareVault } from "#actions/vault/prepare-vault.ts";
import type { DeliveryJob, DeliveryServices } from "#actions/webhooks/deliver-webhooks.ts";
import { systemClock } from "#lib/clock.ts";
import { openLog } from "#lib/log.ts";
import { systemRandom } from "#lib/random.ts";
import { openSigning, readSigningKey } from "#lib/signing.ts";
import type { Gate } from "#outbound/gate.ts";
import { readConfig, requireSigningKey } from "#service/settings/settings.ts";
import { openFileSource, readKeys } from "#vault/key-source.ts";
import { runCommand } from "../cli/program.ts";
import type { Installation } from "../service.ts";

/** A delivery as an endpoint received it. */
export interface Received {
  readonly path: string;
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The parsed body. */
  readonly event: { readonly type: string; readonly timestamp: string; readonly data: any };
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** How long it takes; default: none. */
  readonly afterMs?: number;
  /** It waits for this. */
  readonly after?: Promise<unknown> | null;
}

/** A customer's server on loopback. */
export interface Receiver {
  readonly url: string;
  readonly received: readonly Received[];
  /** Of one path, in the order in which they came in. */
  at(path: string): readonly Received[];
  readonly connections: number;
  /** The most requests that waited for their answer at the same time. */
  readonly mostAtOnce: number;
  close(): Promise<void>;
}

/** `answer` decides by the delivery; null: there is no answer at all. */
export async function startReceiver(
  answer: (delivery: Received) => Answer | null = () => ({ status: 204 }),
): Promise<Receiver> {
  const received: Received[] = [];
  let connections = 0;
  let waiting = 0;
  let mostAtOnce = 0;
  const server = createServer((request, response) => {
    mostAtOnce = Math.max(mostAtOnce, ++waiting);
    response.once("close", () => waiting--);
    void text(request).then((body) => {
      const { headers, url: path = "/" } = request;
      const delivery = { path, id: String(headers["webhook-id"]), headers, body, event: JSON.parse(body) };
      received.push(delivery);
      const given = answer(delivery);
      if (given === null) return;
      const reply = (): void => void response.writeHead(given.status, given.headers).end(given.body);
      if (given.afterMs) setTimeout(reply, given.afterMs).unref();
      else if (given.after) void given.after.then(reply);
      else reply();
    });
  });
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    at: (path) => received.filter((delivery) => delivery.path === path),
    get connections() {
      return connections;
    },
    get mostAtOnce() {
      return mostAtOnce;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Whether one of the signatures is by this secret: the check of the specification, written anew. */
export function isSignedBy(secret: string, { headers, body }: Received): boolean {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const content = `${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${body}`;
  const wanted = `v1,${createHmac("sha256", key).update(content).digest("base64")}`;
  return String(headers["webhook-signature"]).split(" ").includes(wanted);
}

/** What delivering needs, for a test that delivers itself. */
export async function openDeliveryServices(
  { database: { db }, dataFolder, environment }: Installation,
  gate: Gate,
): Promise<DeliveryServices> {
  const signing = readSigningKey(requireSigningKey(readConfig(environment)).reveal());
  return {
    db,
    vault: await prepareVault(db, await readKeys(openFileSource(join(dataFolder, "master.key")))),
    gate,
    audit: openSigning(signing).audit,
    clock: systemClock,
    random: systemRandom,
    log: openLog({ level: "silent", format: "json" }),
    publicUrl: () => "",
  };
}

/** A job of a worker that has time, and is no member. */
export const deliveryJob = (endpointId: string, job: Partial<DeliveryJob> = {}): DeliveryJob => ({
  endpointId,
  stopped: new AbortController().signal,
  workerId: () => null,
  waitedMs: () => 0,
  noteAge: () => {},
  ...job,
});

/** The id of an endpoint of the account `acme`. */
export async function createEndpoint(installation: Installation, url: string): Promise<string> {
  const words = ["webhooks", "create", "--account", "acme", url, "--json"];
  return JSON.parse((await runCommand(installation, 0, words)).stdout).id;
}

/** So many events for an endpoint, which have been due for this time. */
export async function addDue(
  { database }: Installation,
  endpointId: string,
  events = 1,
  dueFor = "0 s",
): Promise<void> {
  await database.db.query(
    `with event as (
       insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
       select new_event_id(), account_id, 'ping', id, app_now(), jsonb_build_object('id', id)
       from webhook_endpoint, generate_series(1, $2) where id = $1
       returning id)
     insert into webhook_delivery (endpoint_id, event_id, due_at) select $1, id, app_now() - $3::interval from event`,
    [endpointId, events, dueFor],
  );
}
