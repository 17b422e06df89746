import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/**
 * What becomes of a COMMIT and of the connection that sent it: `after`: the server gets it, its answer never arrives;
 * `late`: the same, but the server gets it when the connection has long been gone; `before`: the server never gets it.
 */
export const CUTS = ["after", "late", "before"] as const;
export type Cut = (typeof CUTS)[number];

/** A proxy before PostgreSQL that cuts connections around the COMMIT of transactions that claim an idempotency key, or complete a session. */
export interface CommitProxy {
  /** DATABASE_URL through the proxy. */
  readonly url: string;
  /** How many connections were cut so far. */
  readonly cuts: Readonly<Record<Cut, number>>;
  /** Cuts every second such COMMIT from now on, each way in turn, until `total` were cut; `deafMs`: after a cut nobody gets through for so long. */
  start(total: number, options?: { readonly deafMs?: number }): void;
  close(): Promise<void>;
}

const COMMIT = Buffer.from("commit\0");
/** A claim alone, by its text; those of a group, and submits, by the names of their prepared statements, which every use holds. */
const CLAIMS = [
  "insert into idempotency_key",
  "insert_runs_with_keys",
  "insert_sessions_with_keys",
  "lock_credentials_with_keys",
  "complete_sessions",
].map((text) => Buffer.from(text));
const LATE_MS = 250;

/** `cuts`: `any` COMMIT, or those of a claim alone. */
export async function startCommitProxy(
  databaseUrl: string,
  { cuts: which = "claims" }: { readonly cuts?: "claims" | "any" } = {},
): Promise<CommitProxy> {
  const target = new URL(databaseUrl);
  const host = decodeURIComponent(target.hostname);
  const port = target.port || "5432";
  const cuts = { after: 0, late: 0, before: 0 };
  const open = new Set<Socket>();
  let total = 0;
  let deafMs = 0;
  let deafUntil = 0;
  let seen = 0;
  const nextCut = (): Cut | null => {
    const done = cuts.after + cuts.late + cuts.before;
    if (done >= total || ++seen % 2 === 0) return null;
    const cut = CUTS[done % CUTS.length] ?? "after";
    cuts[cut]++;
    return cut;
  };
  const server = createServer((client) => {
    if (performance.now() < deafUntil) return void client.destroy();
    const upstream = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(Number(port), host);
    let claims = false;
    let isCut = false;
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => open.delete(socket));
    }
    upstream.on("data", (bytes) => {
      if (isCut) upstream.end();
      else client.write(bytes);
    });
    upstream.on("close", () => client.destroy());
    client.on("close", () => {
      if (!isCut) upstream.destroy();
    });
    client.on("data", (bytes: Buffer) => {
      if (which === "any" || CLAIMS.some((claim) => bytes.includes(claim))) claims = true;
      const cut = claims && bytes.includes(COMMIT) ? nextCut() : null;
      if (bytes.includes(COMMIT)) claims = false;
      if (cut === null) return void upstream.write(bytes);
      isCut = true;
      deafUntil = performance.now() + deafMs;
      if (deafMs > 0) for (const socket of open) if (socket !== upstream) socket.destroy();
      client.destroy();
      if (cut === "after") upstream.write(bytes);
      if (cut === "late") setTimeout(() => upstream.write(bytes), LATE_MS);
      if (cut === "before") upstream.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: url.href,
    cuts,
    start: (count, options) => {
      total = count;
      deafMs = options?.deafMs ?? 0;
    },
    close: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
