import type { FastifyReply } from "fastify";
import { html, type Html } from "#lib/html.ts";
import { hostedHeaders } from "./pages/headers.ts";

/** The six operations of the interface, as a caller uses them. */
const OPERATIONS: readonly (readonly [call: string, purpose: string])[] = [
  ["POST /api/v1/credential-sessions", "starts a hosted form: {strategy_id, name?, return_url?} → 201 with hosted_url"],
  ["GET /api/v1/credential-sessions/{id}", "polled every 2 s until completed; then it holds credential_id"],
  ["DELETE /api/v1/credentials/{credentialId}", "destroys a credential → 204"],
  ["POST /api/v1/blueprints/{blueprintKey}/trigger", "queues a run, JSON or multipart → 202 with id and run_key"],
  ["GET /api/v1/blueprint-runs/{runId}/status", "polled every 2 to 5 s until completed, failed or cancelled"],
  ["GET /api/v1/blueprint-runs/{runId}/results", "?deliveryMethod=direct or presigned_url, once completed"],
];

/** `GET /docs`: where a caller begins. Works offline; no account data. */
export async function sendDocs(reply: FastifyReply, publicUrl: string): Promise<FastifyReply> {
  return await reply
    .headers(hostedHeaders("page"))
    .type("text/html; charset=utf-8")
    .send(renderDocs(publicUrl).toString());
}

function renderDocs(publicUrl: string): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>Latchkey: the API</title>
        <link rel="stylesheet" href="connect/style.css" />
      </head>
      <body>
        <main class="card">
          <h1>The API</h1>
          <p>Base URL: <code>${publicUrl}/api/v1</code>. Every request carries <code>Authorization: Bearer &lt;API_KEY&gt;</code>.
            Requests that change something take an <code>Idempotency-Key</code>.</p>
          <dl>
            ${OPERATIONS.map(([call, purpose]) => html`<dt><code>${call}</code></dt><dd>${purpose}</dd>`)}
          </dl>
          <p>The interface to the letter is <code>spec/interface.md</code> in the repository; how operators write accounts,
            strategies and Blueprints is in <code>docs/</code>.</p>
        </main>
      </body>
    </html>`;
}
