import { startApp } from "./app.ts";

const PORT_DEFAULT = 3000;

function setting(name: string): string {
  const value = process.env[name];
  if (value !== undefined && value !== "") return value;
  process.stderr.write(`${name} is missing\n`);
  process.exit(2);
}

const port = Number(process.env["LEDGERLY_PORT"] ?? PORT_DEFAULT);
if (!Number.isInteger(port) || port < 0 || port > 65_535) {
  process.stderr.write("LEDGERLY_PORT must be a whole number from 0 to 65535\n");
  process.exit(2);
}

try {
  const app = await startApp({
    port,
    latchkeyUrl: setting("LEDGERLY_LATCHKEY_URL"),
    apiKey: setting("LEDGERLY_API_KEY"),
  });
  const stop = () => void app.close().then(() => process.exit(0));
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  process.stdout.write(`Ledgerly at ${app.url}\n`);
} catch (error) {
  const taken = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
  const reason = taken ? `port ${port} is taken; set LEDGERLY_PORT to another one` : String(error);
  process.stderr.write(`Ledgerly did not start: ${reason}\n`);
  process.exit(1);
}
