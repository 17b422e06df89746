import type { StrategyField } from "#domain/strategy.ts";
import { html, type Html } from "#lib/html.ts";
import { LOCK, renderDocument } from "./document.ts";
import { controlId, isSecret, renderControl } from "./form-control.ts";

export interface FormPage {
  /** Who asks. */
  readonly accountName: string;
  /** For which system. */
  readonly strategyName: string;
  readonly description: string | null;
  /** The hosts that may receive the credential, as people know them: `portal.example.com`. */
  readonly targetHosts: readonly string[];
  /** Where the user goes next; null: stays here. */
  readonly returnHost: string | null;
  readonly fields: readonly StrategyField[];
  /** What was typed before, by the controls' names. Secret ones are left out here, whatever is given. */
  readonly values: ReadonlyMap<string, string>;
  /** How the form is sent. */
  readonly encoding: "application/x-www-form-urlencoded" | "multipart/form-data";
  /** By field key. One that is no field's is shown in the summary alone. */
  readonly errors: ReadonlyMap<string, string>;
  /** The host of the target's own login, to which the button leads; null: what is typed here is all. */
  readonly signInHost: string | null;
  /** Why the end user is back here without a connection. */
  readonly notice: SignInNotice | null;
  readonly csrf: string;
  /** Where the form is sent, an address of ours. */
  readonly action: string;
}

export type SignInNotice = "refused" | "failed";

/** The form: who asks, for which system, what for, where next. Design, page 6, 5.4 and T22. */
export function renderForm(page: FormPage): Html {
  const heading = `Connect ${page.strategyName}`;
  const wrong = page.errors.size > 0 || page.notice !== null;
  return renderDocument(
    wrong ? `Error: ${heading}` : heading,
    html`${page.notice !== null && renderNotice(page, page.notice)}
      ${page.errors.size > 0 && renderSummary(page)} ${renderPair(page.accountName, page.strategyName)}
      <h1>${heading}</h1>
      <p class="lead">
        <strong>${page.accountName}</strong> would like to connect to your
        <strong>${page.strategyName}</strong> account.
      </p>
      ${page.description !== null && html`<p class="description">${page.description}</p>`}
      ${
        page.signInHost !== null &&
        html`<p class="description">
          You sign in and agree at <strong>${page.signInHost}</strong>, and come back here. What you enter
          there stays there.
        </p>`
      }
      ${renderFacts(page)}
      <form method="post" action="${page.action}" enctype="${page.encoding}" novalidate>
        <input type="hidden" name="_csrf" value="${page.csrf}" />
        ${page.fields.map((field) => renderControl(field, page.values, page.errors.get(field.key)))}
        <button type="submit">
          ${page.signInHost === null ? "Connect" : `Continue to ${page.signInHost}`}
        </button>
      </form>
      <p class="caution">
        If you did not come here from ${page.accountName}, close this page: nothing has been shared.
      </p>`,
  );
}

function renderNotice({ strategyName }: FormPage, notice: SignInNotice): Html {
  return html`<div class="summary" role="alert" tabindex="-1" autofocus>
    <h2>${strategyName} is not connected</h2>
    <p>
      ${
        notice === "refused"
          ? "The sign-in was cancelled or refused there. Nothing was saved. You can try again below."
          : "The sign-in could not be finished. Nothing was saved. Please try again below."
      }
    </p>
  </div>`;
}

/** Two letters and a line between them: decoration, hidden from assistive technology. */
function renderPair(from: string, to: string): Html {
  return html`<div class="pair" aria-hidden="true">
    <span class="tile">${initial(from)}</span><span class="line"></span><span class="badge">${LOCK}</span
    ><span class="line"></span><span class="tile tile-target">${initial(to)}</span>
  </div>`;
}

function initial(name: string): string {
  const [first] = new Intl.Segmenter("en").segment(name.trim());
  return first?.segment.toUpperCase() ?? "";
}

function renderFacts({ targetHosts, returnHost, signInHost }: FormPage): Html {
  return html`<dl class="facts">
    ${
      signInHost !== null &&
      html`<div>
        <dt>You sign in at</dt>
        <dd>${signInHost}</dd>
      </div>`
    }
    ${
      targetHosts.length > 0 &&
      html`<div>
        <dt>Used only at</dt>
        ${targetHosts.map((host) => html`<dd>${host}</dd>`)}
      </div>`
    }
    <div>
      <dt>Stored</dt>
      <dd>Encrypted, and never shown again</dd>
    </div>
    <div>
      <dt>Afterwards</dt>
      ${
        returnHost === null
          ? html`<dd>You can close this page</dd>`
          : html`<dd>You go back to ${returnHost}</dd>`
      }
    </div>
  </dl>`;
}

/** What is wrong, in one place, with links to the controls; announced when the page opens. */
function renderSummary({ fields, errors }: FormPage): Html {
  const keys = new Set(fields.map((field) => field.key));
  const general = [...errors]
    .filter(([key]) => !keys.has(key))
    .map(([, message]) => html`<li>${message}</li>`);
  const ofFields = fields
    .filter((field) => errors.has(field.key))
    .map((field) => html`<li><a href="#${controlId(field.key)}">${errors.get(field.key)}</a></li>`);
  return html`<div class="summary" role="alert" tabindex="-1" autofocus>
    <h2>Please check what you entered</h2>
    <ul>
      ${general}${ofFields}
    </ul>
    ${fields.some(isSecret) && html`<p>For your safety, secret values are not filled in again. Please enter them once more.</p>`}
  </div>`;
}
