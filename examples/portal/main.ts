import { startPortal } from "./portal.ts";

const PORT_DEFAULT = 4600;

/** A whole number from the environment, or exit code 2 with the remedy. */
function setting(name: string, fallback: number, max: number): number {
  const text = process.env[name];
  if (text === undefined || text === "") return fallback;
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (value <= max) return value;
  process.stderr.write(`${name} must be a whole number from 0 to ${max}\n`);
  process.exit(2);
}

const port = setting("PORTAL_PORT", PORT_DEFAULT, 65_535);
const options = {
  port,
  ledgerPort: setting("PORTAL_LEDGER_PORT", port === 0 ? 0 : Math.min(port + 1, 65_535), 65_535),
  seed: process.env["PORTAL_SEED"] ? setting("PORTAL_SEED", 0, 4_294_967_295) : undefined,
  delayMs: setting("PORTAL_DELAY_MS", 0, 600_000),
  failEvery: setting("PORTAL_FAIL_EVERY", 0, 1_000_000),
};

try {
  const portal = await startPortal(options);
  const stop = () => void portal.close().then(() => process.exit(0));
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  process.stdout.write(`Northwind Supplier Portal at ${portal.url}\n`);
  process.stdout.write(`Southgate Ledger at ${portal.ledgerUrl}\n`);
} catch (error) {
  const taken = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
  const isLedger = taken && "port" in error && error.port === options.ledgerPort;
  const reason = taken
    ? `port ${isLedger ? options.ledgerPort : options.port} is taken; set ${isLedger ? "PORTAL_LEDGER_PORT" : "PORTAL_PORT"} to another one, or to 0 for any free port`
    : String(error);
  process.stderr.write(`The portal did not start: ${reason}\n`);
  process.exit(1);
}
