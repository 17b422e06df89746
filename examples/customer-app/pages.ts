import { html } from "hono/html";
import type { ResultSet, RunResults, RunStatus } from "../../sdk/typescript/src/latchkey.ts";
import type { Book, Connection, Fetch } from "./ledger-book.ts";
import { INTEGRATIONS } from "./ledger-book.ts";

type Html = ReturnType<typeof html>;

export interface ShownRun {
  readonly fetch: Fetch;
  readonly run: RunStatus;
}

export function homePage(book: Book, runs: readonly ShownRun[], latchkeyUrl: string): Html {
  const connections = [...book.connections.values()];
  return document(
    "Ledgerly",
    null,
    html`<h1>Ledgerly</h1>
      <p>Your suppliers' invoices in one place.</p>
      <h2>Connections</h2>
      ${connections.length === 0 ? html`<p>Nothing is connected yet.</p>` : connections.map(connectionItem)}
      ${INTEGRATIONS.map(
        ({ strategyId, name }) =>
          html`<form method="post" action="/connect">
              <button name="strategy" value="${strategyId}">Connect ${name}</button>
            </form>
            <button class="here" data-strategy="${strategyId}" data-name="${name}" hidden>
              Connect ${name} without leaving this page
            </button>`,
      )}
      <p class="told" role="status"></p>
      <script src="${latchkeyUrl}/embed/v1/latchkey.js"></script>
      <script src="/connect.js"></script>
      <h2>Fetched</h2>
      ${
        runs.length === 0
          ? html`<p>Nothing was fetched yet.</p>`
          : html`<ul>
              ${runs.map(runItem)}
            </ul>`
      }`,
  );
}

const connectionItem = ({ id, integration, credentialId }: Connection): Html =>
  html`<section class="connection">
    <h3>${integration.name}</h3>
    ${
      credentialId === null
        ? html`<p>Not finished. <a href="/connected?connection=${id}">Look again</a></p>`
        : html`<p>Connected as <code>${credentialId}</code></p>
            ${integration.fetches.map(
              ({ blueprint, name }) =>
                html`<form method="post" action="/connections/${id}/fetch">
                  <button name="blueprint" value="${blueprint}">Fetch: ${name}</button>
                </form>`,
            )}
            <form method="post" action="/connections/${id}/disconnect">
              <button>Disconnect</button>
            </form>`
    }
  </section>`;

const runItem = ({ fetch, run }: ShownRun): Html =>
  html`<li>
    <a href="/fetched/${fetch.runId}">${fetch.name}</a>, ${fetch.connection.integration.name}:
    <span class="status">${stepOf(run)}</span>
  </li>`;

/** Unknown steps are progress like any other. */
const stepOf = ({ status, progress_step: step }: RunStatus): string =>
  step === status ? status : `${status} (${step.replaceAll("_", " ")})`;

export function runPage({ fetch, run }: ShownRun, results: RunResults | null): Html {
  return document(
    fetch.name,
    run.ended_at === null ? 2 : null,
    html`<p><a href="/">Ledgerly</a></p>
      <h1>${fetch.name}</h1>
      <p class="status">${stepOf(run)}</p>
      ${results !== null && Object.entries<ResultSet | string>(results.results).map(([key, set]) => resultTable(key, set))}`,
  );
}

const ROWS_MAX = 50;

function resultTable(key: string, set: ResultSet | string): Html {
  if (typeof set === "string")
    return html`<h2>${key}</h2>
      <p><a href="${set}">Download</a></p>`;
  const columns = Object.keys(set.records[0]?.data ?? {});
  return html`<h2>${key}: ${set.totalRecords} records</h2>
    <table>
      <tr>
        ${columns.map((column) => html`<th>${column}</th>`)}
        <th>to be checked</th>
      </tr>
      ${set.records.slice(0, ROWS_MAX).map(
        ({ data, errors }) =>
          html`<tr>
            ${columns.map((column) => html`<td>${textOf(data[column])}</td>`)}
            <td>${errors.map(({ message }) => message).join("; ")}</td>
          </tr>`,
      )}
    </table>`;
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value ?? ""));

export const messagePage = (title: string, message: string): Html =>
  document(
    title,
    null,
    html`<h1>${title}</h1>
      <p>${message}</p>
      <p><a href="/">Back to Ledgerly</a></p>`,
  );

const document = (title: string, refreshSeconds: number | null, body: Html): Html =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        ${refreshSeconds !== null && html`<meta http-equiv="refresh" content="${refreshSeconds}" />`}
        <title>${title}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="/style.css" />
      </head>
      <body>
        ${body}
      </body>
    </html>`;
