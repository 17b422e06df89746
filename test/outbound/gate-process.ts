import { openGate } from "#outbound/gate.ts";

/** A process of its own, for surroundings that only a start can have: sends one request by the gate and one by `fetch`. */
const [url = "", allow = ""] = process.argv.slice(2);

const gate = openGate({ allow: [allow] });
const policy = { origins: [new URL(url).origin], redirectsMax: 0, maxBytes: 1_000, timeoutMs: 5_000 };
const byGate = await gate
  .send({ method: "GET", url: new URL(url), headers: [] }, policy, new AbortController().signal)
  .then(
    (response) => response.text(),
    (error: unknown) => String(error),
  );
const byFetch = await fetch(url).then(
  async (response) => await response.text(),
  () => "failed",
);
await gate.close();
process.stdout.write(JSON.stringify({ byGate, byFetch }));
process.exit(0);
