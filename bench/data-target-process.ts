/** The target of the data bench: documents of any number of records, `/json?records=n`, and a login. Sends its port. */
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline, Readable } from "node:stream";
import { documentOf, type DataFormat } from "./data-records.ts";

const TYPES: Readonly<Record<DataFormat, string>> = {
  json: "application/json",
  ndjson: "application/x-ndjson",
  csv: "text/csv; charset=utf-8",
};

/** What a login gives and is kept secret: as long as session ids and tokens are. */
const SECRETS = 60;
const secrets = Array.from({ length: SECRETS }, (_each, index) =>
  createHash("sha256").update(`secret ${index}`).digest("base64url").slice(0, 32),
);

const server = createServer((request, response) => {
  const url = new URL(request.url ?? "/", "http://target");
  if (url.pathname === "/login") return void response.end(JSON.stringify({ secrets }));
  const format = url.pathname.slice(1) as DataFormat;
  response.writeHead(200, { "content-type": TYPES[format] });
  const document = documentOf(format, Number(url.searchParams.get("records")));
  pipeline(Readable.from(document, { objectMode: false }), response, () => undefined);
});
process.once("message", () => {
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
});
