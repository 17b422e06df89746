import { html, type Html, type HtmlPart } from "#lib/html.ts";
import { renderDocument } from "./document.ts";

/** The pages without a form. Nothing on them tells more than the end user knows already. */
function renderMessage(kind: "done" | "notice", heading: string, ...paragraphs: readonly HtmlPart[]): Html {
  return renderDocument(
    heading,
    html`<div class="${kind === "done" ? "sign sign-done" : "sign"}" aria-hidden="true">
        ${kind === "done" ? CHECK : EXCLAMATION}
      </div>
      <h1>${heading}</h1>
      ${paragraphs.map((paragraph) => html`<p class="lead">${paragraph}</p>`)}`,
  );
}

const CHECK = html`<svg viewBox="0 0 24 24" focusable="false">
  <path
    fill="none"
    stroke="currentColor"
    stroke-width="2.5"
    stroke-linecap="round"
    stroke-linejoin="round"
    d="m5 12.5 4.5 4.5L19 7.5"
  />
</svg>`;
const EXCLAMATION = html`<svg viewBox="0 0 24 24" focusable="false">
  <path fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" d="M12 6v7.5M12 18v.01" />
</svg>`;

const CLOSE = "You can close this page.";
const ASK_AGAIN = "Go back to the application that sent you here and start again to get a new link.";

/** After a submit without a `return_url`. The login was received, not tested: spec, Credential session rule 1. */
export function renderSuccess(page: { readonly accountName: string; readonly strategyName: string }): Html {
  return renderMessage(
    "done",
    "You are all set",
    html`Your <strong>${page.strategyName}</strong> login was received and stored safely.
      <strong>${page.accountName}</strong> can now use the connection.`,
    CLOSE,
  );
}

/** 410: the session is completed. */
export function renderUsed(): Html {
  return renderMessage(
    "notice",
    "This link has already been used",
    "The form behind it was filled in and sent.",
    CLOSE,
  );
}

/** 410: the session has expired; also the answer to a submit that comes too late. */
export function renderExpired(): Html {
  return renderMessage("notice", "This link has expired", ASK_AGAIN);
}

/** 404: no session has this token. */
export function renderUnknown(): Html {
  return renderMessage(
    "notice",
    "This link does not work",
    "Please check that the whole address was copied.",
    ASK_AGAIN,
  );
}

/** 400: what came back belongs to no sign-in of this browser, or was used already. */
export function renderSignInUnknown(): Html {
  return renderMessage(
    "notice",
    "This sign-in can't go on",
    "It was begun in another browser, took too long, or was finished already. Nothing was connected by it just now.",
    "Please open your link again and start from there.",
  );
}

/** 403: the submit did not come from our form. */
export function renderForbidden(): Html {
  return renderMessage(
    "notice",
    "The form was not accepted",
    "For your safety, a form is only accepted from the page that showed it, and for a limited time. Nothing was saved.",
    "Please open your link again and fill in the form there.",
  );
}

/** 413. */
export function renderTooLarge(): Html {
  return renderMessage(
    "notice",
    "That is too much to send",
    "What you entered is larger than this form can take. Nothing was saved.",
    "Please go back and check that you pasted the right thing.",
  );
}

/** 500 and 503: whether anything was saved is not known here. */
export function renderProblem(): Html {
  return renderMessage(
    "notice",
    "Something went wrong on our side",
    "Please wait a minute, then open your link again.",
  );
}
