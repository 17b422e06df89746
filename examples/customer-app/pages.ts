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
    html`<div class="intro">
        <h1>Suppliers</h1>
        <p>Connect a supplier’s portal once, and its invoices come to Ledgerly by themselves.</p>
      </div>
      <h2>Connections</h2>
      ${
        connections.length === 0
          ? html`<p class="empty">Nothing is connected yet.</p>`
          : html`<div class="cards">${connections.map(connectionItem)}</div>`
      }
      <h2>Add a supplier</h2>
      <div class="cards">${INTEGRATIONS.map(integrationItem)}</div>
      <p class="told" role="status"></p>
      <script src="${latchkeyUrl}/embed/v1/latchkey.js"></script>
      <script src="/connect.js"></script>
      <h2>Activity</h2>
      ${
        runs.length === 0
          ? html`<p class="empty">Nothing was fetched yet.</p>`
          : html`<ul class="activity">
              ${runs.map(runItem)}
            </ul>`
      }`,
  );
}

const tile = (name: string): Html => html`<span class="tile" aria-hidden="true">${name.charAt(0)}</span>`;

const integrationItem = ({ strategyId, name, fetches }: (typeof INTEGRATIONS)[number]): Html =>
  html`<section class="card">
    <div class="who">
      ${tile(name)}
      <div>
        <h3>${name}</h3>
        <p>${fetches.map((each) => each.name).join(" · ")}</p>
      </div>
    </div>
    <div class="buttons">
      <button class="here" data-strategy="${strategyId}" data-name="${name}" hidden>
        Connect<span class="unseen"> ${name} without leaving this page</span>
      </button>
      <form method="post" action="/connect">
        <button class="quiet" name="strategy" value="${strategyId}">
          On a page of its own<span class="unseen">: connect ${name}</span>
        </button>
      </form>
    </div>
  </section>`;

const connectionItem = ({ id, integration, credentialId }: Connection): Html =>
  html`<section class="card connection">
    <div class="who">
      ${tile(integration.name)}
      <div>
        <h3>${integration.name}</h3>
        <p>
          ${
            credentialId === null
              ? html`<span class="pill">Not finished</span>
                  <a href="/connected?connection=${id}">Look again</a>`
              : html`<span class="pill good">Connected</span>`
          }
        </p>
      </div>
    </div>
    ${
      credentialId !== null &&
      html`<div class="buttons">
        ${integration.fetches.map(
          ({ blueprint, name }) =>
            html`<form method="post" action="/connections/${id}/fetch">
              <button name="blueprint" value="${blueprint}">Fetch: ${name}</button>
            </form>`,
        )}
        <form method="post" action="/connections/${id}/disconnect">
          <button class="quiet">Disconnect</button>
        </form>
      </div>`
    }
  </section>`;

const runItem = ({ fetch, run }: ShownRun): Html =>
  html`<li>
    <a href="/fetched/${fetch.runId}">${fetch.name}</a>
    <span class="from">${fetch.connection.integration.name}</span>
    ${statusPill(run)}
  </li>`;

const TONES: Readonly<Record<string, string>> = { completed: "good", failed: "bad", cancelled: "bad" };

const statusPill = (run: RunStatus): Html =>
  html`<span class="pill status ${TONES[run.status] ?? "moving"}">${stepOf(run)}</span>`;

/** What an end user of Ledgerly understands of each step. */
const STEPS: Readonly<Record<string, string>> = {
  queued: "Starting",
  authenticating: "Signing in",
  running: "Fetching",
  awaiting_review: "Being checked",
  completed: "Done",
  failed: "Failed",
  cancelled: "Cancelled",
};

/** Unknown steps are progress like any other. */
const stepOf = ({ progress_step: step }: RunStatus): string => STEPS[step] ?? "In progress";

export function runPage({ fetch, run }: ShownRun, results: RunResults | null): Html {
  return document(
    fetch.name,
    run.ended_at === null ? 2 : null,
    html`<p><a href="/">← Suppliers</a></p>
      <div class="head">
        <h1>${fetch.name}</h1>
        ${statusPill(run)}
      </div>
      <p class="from">${fetch.connection.integration.name}</p>
      ${results !== null && Object.entries<ResultSet | string>(results.results).map(([key, set]) => resultTable(key, set))}`,
  );
}

const ROWS_MAX = 50;

function resultTable(key: string, set: ResultSet | string): Html {
  if (typeof set === "string")
    return html`<h2>${key}</h2>
      <p><a href="${set}">Download</a></p>`;
  const { records, totalRecords: total } = set;
  const columns = Object.keys(records[0]?.data ?? {});
  const wrong = records.filter(({ errors }) => errors.length > 0).length;
  return html`<h2>${titleOf(key)}: ${total} ${total === 1 ? "record" : "records"}</h2>
    <p class="from">
      ${wrong === 0 ? "All of them are good." : `${wrong} to be checked.`}
      ${total > ROWS_MAX && `The first ${ROWS_MAX} are shown.`}
    </p>
    <div class="table" tabindex="0" role="region" aria-label="${key}">
      <table>
        <tr>
          ${columns.map((column) => html`<th class="${isNumeric(records, column) && "number"}">${titleOf(column)}</th>`)}
          <th>To be checked</th>
        </tr>
        ${records.slice(0, ROWS_MAX).map(
          ({ data, errors }) =>
            html`<tr class="${errors.length > 0 && "wrong"}">
              ${columns.map((column) => html`<td class="${isNumeric(records, column) && "number"}">${textOf(data[column])}</td>`)}
              <td>${errors.map(({ message }) => message).join("; ")}</td>
            </tr>`,
        )}
      </table>
    </div>`;
}

const titleOf = (key: string): string => {
  const words = key.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
};

const isNumeric = (records: ResultSet["records"], column: string): boolean =>
  records.every(({ data }) => typeof data[column] === "number");

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
        <header>
          <a class="brand" href="/"><span aria-hidden="true">L</span> Ledgerly</a>
          <span class="tenant">Harbour Bakery</span>
        </header>
        <main>${body}</main>
        <footer>
          An example of a customer’s application. What you type to connect goes to Latchkey alone.
        </footer>
      </body>
    </html>`;
