// docs/run.md: a recording has the exchanges without secrets, whatever of an answer holds one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { recordTarget, type Exchange } from "#engine/local/recording.ts";
import { openTarget } from "#engine/login/target-session.ts";
import { makeRedactor } from "#engine/redaction/redact.ts";
import { openGate } from "#outbound/gate.ts";
import { startTarget } from "../outbound/targets.ts";

const SECRET = "canary-4711-öffnen";
const LATIN = Buffer.from(`<p>für ${SECRET}</p>`, "latin1");
const BYTES = Buffer.concat([Buffer.from([0, 0xff, 0xfe]), Buffer.from(` ${SECRET} `), Buffer.from([0xff])]);

test("an answer that gives a secret back is recorded without it: in headers, in text of any charset, in other bytes", async (t) => {
  const answers: Readonly<Record<string, readonly [string, Buffer]>> = {
    "/text": ["application/json", Buffer.from(JSON.stringify({ token: SECRET }))],
    "/latin": ["text/html; charset=iso-8859-1", LATIN],
    "/bytes": ["application/octet-stream", BYTES],
  };
  const target = await startTarget(t, (seen, response) => {
    const [type, body] = answers[seen.url] ?? assert.fail(seen.url);
    const link = `</next?key=${encodeURIComponent(SECRET)}>; rel="next"`;
    response.writeHead(200, { "content-type": type, link }).end(body);
  });
  const gate = openGate({ allow: ["127.0.0.0/8"] });
  t.after(() => gate.close());
  const exchanges: Exchange[] = [];
  const origins = [target.origin];
  const recorded = recordTarget(openTarget(gate, origins, null), origins, makeRedactor([SECRET]), exchanges);
  for (const url of Object.keys(answers))
    await recorded.send({ method: "GET", url }, new AbortController().signal);
  const answered = exchanges.map((exchange) =>
    "response" in exchange ? exchange.response : assert.fail(exchange.failure.message),
  );
  assert.deepEqual(
    answered.map(({ headers }) => headers["link"]),
    Array.from(answered, () => `</next?key=[REDACTED]>; rel="next"`),
  );
  const [text, latin, bytes] = answered.map(({ body }) =>
    typeof body === "string" ? body : Buffer.from(body.base64, "base64").toString("latin1"),
  );
  assert.equal(text, `{"token":"[REDACTED]"}`);
  assert.equal(latin, "<p>für [REDACTED]</p>");
  assert.equal(bytes, `\0\xff\xfe [REDACTED] \xff`);
});
