import { html } from "hono/html";
import type { Invoice } from "./invoices.ts";
import type { Session } from "./sessions.ts";

export type Html = ReturnType<typeof html>;

export interface InvoicePage {
  readonly invoices: readonly Invoice[];
  readonly page: number;
  readonly pages: number;
  readonly total: number;
  readonly displayName: string;
  readonly session: Session;
}

export function loginPage(session: Session, problem: string | null, username: string): Html {
  return signInDocument(
    "Sign in",
    html`<h1>Sign in</h1>
      <p class="lead">See your invoices and when they are due.</p>
      ${alert(problem)}
      <form method="post" action="/login">
        <input type="hidden" name="_csrf" value="${session.csrf}" />
        <label for="username">Username</label>
        <input
          id="username"
          name="username"
          value="${username}"
          autocomplete="username"
          autocapitalize="none"
          spellcheck="false"
          required
          autofocus
        />
        <label for="password">Password</label>
        <input id="password" name="password" type="password" autocomplete="current-password" required />
        <button type="submit">Sign in</button>
      </form>`,
  );
}

export function codePage(session: Session, problem: string | null): Html {
  return signInDocument(
    "One-time code",
    html`<h1>One-time code</h1>
      <p class="lead" id="code-help">Enter the six digits that your authenticator app shows for Northwind.</p>
      ${alert(problem)}
      <form method="post" action="/login/otp">
        <input type="hidden" name="_csrf" value="${session.csrf}" />
        <label for="code">Code</label>
        <input
          id="code"
          name="code"
          class="code"
          inputmode="numeric"
          autocomplete="one-time-code"
          aria-describedby="code-help"
          maxlength="7"
          required
          autofocus
        />
        <button type="submit">Continue</button>
      </form>
      <p class="aside"><a href="/login">Sign in as somebody else</a></p>`,
  );
}

export function messagePage(title: string, message: string): Html {
  return signInDocument(
    title,
    html`<h1>${title}</h1>
      <p class="lead">${message}</p>
      <p class="aside"><a href="/invoices">Go to your invoices</a></p>`,
  );
}

export function invoicesPage(view: InvoicePage): Html {
  return htmlDocument(
    `Invoices, page ${view.page}`,
    html`<header class="bar">
        ${brand()}
        <form method="post" action="/logout">
          <input type="hidden" name="_csrf" value="${view.session.csrf}" />
          <span class="who">${view.displayName}</span>
          <button type="submit" class="quiet">Sign out</button>
        </form>
      </header>
      <main class="wide">
        <div class="heading">
          <h1>Invoices</h1>
          <a class="download" href="/invoices.csv">Download CSV</a>
        </div>
        <div class="sheet" tabindex="0" role="region" aria-labelledby="invoices-caption">
          <table class="invoices">
            <caption id="invoices-caption">
              ${view.total} invoices from all suppliers, page ${view.page} of ${view.pages}
            </caption>
            <thead>
              <tr>
                <th scope="col">Number</th>
                <th scope="col">Supplier</th>
                <th scope="col">Purchase order</th>
                <th scope="col">Due</th>
                <th scope="col">Status</th>
                <th scope="col">Currency</th>
                <th scope="col" class="amount">Total</th>
              </tr>
            </thead>
            <tbody>
              ${view.invoices.map(invoiceRow)}
            </tbody>
          </table>
        </div>
        ${pager(view)}
      </main>`,
  );
}

// `datetime` and `value` carry what a machine reads; the text beside them is for people.
const invoiceRow = (invoice: Invoice): Html =>
  html`<tr>
    <td class="number">${invoice.number}</td>
    <td class="supplier">${invoice.supplier}</td>
    <td class="purchase-order">${invoice.purchase_order}</td>
    <td class="due"><time datetime="${invoice.due_date}">${shownDate(invoice.due_date)}</time></td>
    <td class="status"><span class="badge ${invoice.status}">${invoice.status}</span></td>
    <td class="currency">${invoice.currency}</td>
    <td class="amount total"><data value="${invoice.total}">${shownAmount(invoice.total)}</data></td>
  </tr>`;

const pager = ({ page, pages }: InvoicePage): Html =>
  html`<nav class="pager" aria-label="Pages">
    ${page > 1 ? html`<a rel="prev" href="/invoices?page=${page - 1}">← Previous</a>` : html`<span></span>`}
    <span>Page ${page} of ${pages}</span>
    ${page < pages ? html`<a rel="next" href="/invoices?page=${page + 1}">Next →</a>` : html`<span></span>`}
  </nav>`;

const alert = (problem: string | null): Html =>
  problem === null ? html`` : html`<p class="alert" role="alert">${problem}</p>`;

const brand = (): Html =>
  html`<a class="brand" href="/invoices"
    ><span class="mark" aria-hidden="true">N</span>Northwind Supplier Portal</a
  >`;

export const signInDocument = (title: string, content: Html): Html =>
  htmlDocument(
    title,
    html`<header class="bar">${brand()}</header>
      <main class="card">${content}</main>`,
  );

export const htmlDocument = (title: string, body: Html): Html =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} · Northwind Supplier Portal</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="/style.css" />
      </head>
      <body>
        ${body}
      </body>
    </html>`;

const MONTH_NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function shownDate(date: string): string {
  const [year, month, day] = date.split("-");
  return `${Number(day)} ${MONTH_NAMES[Number(month) - 1] ?? month} ${year}`;
}

/** `-1234.50` as `−1,234.50`: text in, text out, so no cent is lost to a float. */
const shownAmount = (total: string): string => total.replace(/\B(?=(\d{3})+\.)/g, ",").replace("-", "−");
