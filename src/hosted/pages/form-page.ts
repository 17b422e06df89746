import type { Brand } from "#domain/branding.ts";
import { explainIssue, type FormIssue } from "#domain/form-issue.ts";
import { textIn, type LocalText } from "#domain/language.ts";
import type { StrategyField } from "#domain/strategy.ts";
import { html, type Html, type HtmlPart } from "#lib/html.ts";
import { directionOf, say, plainText, type Wording } from "#hosted/texts/texts.ts";
import { GLOBE, LINES, LOCK, ONWARD, renderDocument, renderPair, type Shell, type View } from "./document.ts";
import { controlId, isSecret, renderControl } from "./form-control.ts";

/** The content of a form: the account, the system, the purpose and the next page. docs/decisions/0017. */
export interface FormPage {
  /** The account that requests the connection. */
  readonly brand: Brand;
  /** The system to connect. */
  readonly strategyName: LocalText;
  readonly description: LocalText | null;
  /** The address of the system's logo; null: its first letter is shown. */
  readonly targetLogo: string | null;
  /** The hosts that may receive the credential, as people know them: `portal.example.com`. */
  readonly targetHosts: readonly string[];
  /** The user's next page; null: the user stays here. */
  readonly returnHost: string | null;
  /** Where the end user goes who cancels; null: there is no such link. */
  readonly cancelTo: string | null;
  readonly fields: readonly StrategyField[];
  /** Previously entered values, by the controls' names. Secret ones are always left out here. */
  readonly values: ReadonlyMap<string, string>;
  /** How the form is sent. */
  readonly encoding: "application/x-www-form-urlencoded" | "multipart/form-data";
  /** Problems by field key. A problem without a field is shown only in the summary. */
  readonly errors: ReadonlyMap<string, FormIssue>;
  /** The host of the target's own login, which the button opens; null: there is only this form. */
  readonly signInHost: string | null;
  /** Why the end user returned without a connection. */
  readonly notice: FormNotice | null;
  /** The link was first opened in another browser, which may be another person's. */
  readonly isElsewhere: boolean;
  readonly csrf: string;
  /** The form's action, an address of this service. */
  readonly action: string;
  /** In a frame: the parts above the heading, the form's slot, and the parts below it. */
  readonly framed?: { readonly step: Html | false; readonly slot: Html; readonly ways: Html };
}

/**
 * `refused`, `failed`: results of a sign-in at the target. `rejected`: the target did not accept what was typed. `stale`: the page was open for
 * longer than a form is valid.
 */
export type FormNotice = "refused" | "failed" | "rejected" | "stale";

export const renderForm = (shell: Shell, page: FormPage): Html =>
  renderDocument(shell, formView(shell, page));

/** The form itself: the same on a page and in a frame. */
export function formView({ wording, base }: Shell, page: FormPage): View {
  const { texts } = wording;
  const { brand, signInHost, notice, errors } = page;
  const account = brand.name;
  const system = textIn(page.strategyName, wording.language);
  const title = plainText(wording, "connect_title", { system });
  const messages = explain(wording, page);
  const isWrong = errors.size > 0 || notice !== null;
  const body = html`${notice !== null && renderNotice(wording, system, notice, page)}
    ${errors.size > 0 && renderSummary(wording, page, messages)}
    ${page.isElsewhere && renderElsewhere(wording, account)}
    <div class="ask">
      ${renderPair(base, brand, system, page.targetLogo)} ${page.framed?.step}
      <h1>${say(wording, "connect_title", { system })}</h1>
      <p class="lead">${say(wording, "asks", { account, system }, strong)}</p>
    </div>
    ${renderFacts(wording, page, isWrong)}
    <form
      class="connect"
      method="post"
      action="${page.action}"
      enctype="${page.encoding}"
      novalidate${page.framed?.slot}${page.framed && signInHost !== null && html` data-leaves`}
      ${page.framed === undefined && html` data-unsent="${texts.unsent}"`}
      ${textsOfScript(wording, page)}
    >
      <input type="hidden" name="_csrf" value="${page.csrf}" />
      ${renderFields(wording, page, messages)}
      <button type="submit">
        ${signInHost === null ? texts.connect : say(wording, "continue_to", { host: signInHost })}
      </button>
      <p class="sending unseen" role="status"></p>
    </form>
    ${page.cancelTo !== null && html`<p class="way"><a class="quiet" href="${page.cancelTo}">${texts.cancel}</a></p>`}
    ${page.framed?.ways} ${renderAfter(wording, page)}
    ${
      // Who has come this far has read it, and what is said of a forwarded link says more.
      !isWrong &&
      !page.isElsewhere &&
      html`<p class="caution">
        ${say(wording, page.framed === undefined ? "caution" : "frame_caution", { account })}
      </p>`
    }`;
  return { title: isWrong ? plainText(wording, "error_title", { title }) : title, body, hasForm: true };
}

/** A form with more fields has those that few need behind a fold. */
const FIELDS_MAX = 6;
const FOLDED_MIN = 3;

/** A file, a header or a note that may be left out; a second factor is wanted by many, and a tick belongs to the end. */
const isFolded = ({ type, required }: StrategyField): boolean =>
  !required && type !== "totp_secret" && type !== "checkbox";

/** All fields in their order, or first those that everyone fills in. The fold is open where something in it was typed or is wrong. */
function renderFields(
  wording: Wording,
  { fields, values, errors }: FormPage,
  messages: ReadonlyMap<string, string>,
): Html {
  const render = (some: readonly StrategyField[]): readonly Html[] =>
    some.map((field) => renderControl(wording, field, values, messages.get(field.key)));
  const folded = fields.filter(isFolded);
  if (fields.length <= FIELDS_MAX || folded.length < FOLDED_MIN) return html`${render(fields)}`;
  const others = fields.filter((field) => !isFolded(field));
  const ticks = others.filter(({ type }) => type === "checkbox");
  const isOpen = folded.some(
    ({ key }) => errors.has(key) || [...values].some(([name, value]) => name.startsWith(key) && value !== ""),
  );
  const names = new Intl.ListFormat(wording.language).format(
    folded.map(({ label }) => textIn(label, wording.language)),
  );
  return html`${render(others.filter(({ type }) => type !== "checkbox"))}
    <details class="more" ${isOpen && html`open`}>
      <summary>${wording.texts.fields_more}<span class="names">${names}</span></summary>
      ${render(folded)}
    </details>
    ${render(ticks)}`;
}

const strong = (text: string): Html => html`<strong><bdi>${text}</bdi></strong>`;

/** The script's texts in the page's language; only those that this form can need. */
function textsOfScript({ texts }: Wording, { fields }: FormPage): Html {
  const has = (type: StrategyField["type"]): boolean => fields.some((field) => field.type === type);
  return html`data-sending="${texts.sending}"${fields.some(isSecret) && html` data-show="${texts.show}" data-hide="${texts.hide}"`}${has("headers") && html` data-add="${texts.header_add}" data-remove="${texts.header_remove}"`}${has("totp_secret") && html` data-qr-choose="${texts.qr_choose}" data-qr-local="${texts.qr_local}" data-qr-reading="${texts.qr_reading}" data-qr-found="${texts.qr_found}" data-qr-none="${texts.qr_none}"`}`;
}

/** Not in a frame, where the script sets the focus, because the surrounding page may need it elsewhere. */
const AUTOFOCUS = html` autofocus`;

function renderNotice(
  wording: Wording,
  system: string,
  notice: FormNotice,
  { brand, fields, framed }: FormPage,
): Html {
  const { texts } = wording;
  const heading =
    notice === "refused"
      ? say(wording, "not_connected", { system })
      : say(wording, `${notice}_heading` as const, { system });
  const style = notice === "failed" || notice === "rejected" ? "summary" : "summary heed";
  return html`<div class="${style}" role="alert" tabindex="-1" ${framed === undefined && AUTOFOCUS}>
    <h2>${heading}</h2>
    <p>${texts[framed !== undefined && notice === "refused" ? "frame_refused" : notice]}</p>
    ${notice === "failed" && html`<p>${say(wording, "failed_again", { account: brand.name }, strong)}</p>`}
    ${(notice === "stale" || notice === "rejected") && fields.some(isSecret) && html`<p>${texts.secrets_again}</p>`}
  </div>`;
}

/** A forwarded link would connect this person's login to the person for whom the link was created. */
function renderElsewhere(wording: Wording, account: string): Html {
  return html`<div class="summary heed" role="note">
    <h2>${wording.texts.elsewhere_heading}</h2>
    <p>${say(wording, "elsewhere_other", { account }, strong)}</p>
    <p>${wording.texts.elsewhere_you}</p>
  </div>`;
}

/**
 * What is read, where the login may be sent, and how it is kept: above the fields, because it is to be known before they are filled in.
 * `isAgain`: of a page that was seen before, they are behind a fold.
 */
function renderFacts(wording: Wording, page: FormPage, isAgain: boolean): Html {
  const { texts, language } = wording;
  const { brand, description, targetHosts, signInHost } = page;
  const fact = (icon: Html, said: HtmlPart): Html => html`<li>${icon}${said}</li>`;
  const hosts = new Intl.ListFormat(language)
    .formatToParts(targetHosts)
    .map(({ type, value }) => (type === "element" ? html`<bdi class="host">${value}</bdi>` : value));
  const facts = html`<ul class="facts">
    ${description !== null && fact(LINES, textIn(description, language))}
    ${signInHost !== null && fact(ONWARD, say(wording, "sign_in_there", { host: signInHost }, strong))}
    ${targetHosts.length > 0 && fact(GLOBE, html`${texts.used_at} ${hosts}`)}
    ${fact(
      LOCK,
      signInHost === null ? say(wording, "stored_how", { account: brand.name }) : texts.stored_how_there,
    )}
  </ul>`;
  if (!isAgain) return facts;
  return html`<details class="again">
    <summary>${texts.facts_again}</summary>
    ${facts}
  </details>`;
}

/** Where the end user is next; a frame's page stays where it is. */
const renderAfter = (wording: Wording, { returnHost, framed }: FormPage): Html | false =>
  returnHost !== null &&
  framed === undefined &&
  html`<p class="caution">${say(wording, "goes_back", { host: returnHost })}</p>`;

/** The problem of each field, as text. */
function explain(wording: Wording, { fields, errors }: FormPage): ReadonlyMap<string, string> {
  const labels = new Map(fields.map((field) => [field.key, textIn(field.label, wording.language)]));
  const isolate = (label: string): string =>
    directionOf(wording.language) === "rtl" ? `\u2068${label}\u2069` : label;
  return new Map(
    [...errors].map(([key, issue]) => [
      key,
      explainIssue(issue, isolate(labels.get(key) ?? ""), {
        language: wording.language,
        sentences: wording.texts.issues,
      }),
    ]),
  );
}

/** A summary of all problems, in the words that stand at the fields, with links to the controls; announced when the page opens. */
function renderSummary(
  { texts }: Wording,
  { fields, framed }: FormPage,
  messages: ReadonlyMap<string, string>,
): Html {
  const keys = new Set(fields.map((field) => field.key));
  const general = [...messages]
    .filter(([key]) => !keys.has(key))
    .map(([, message]) => html`<li>${message}</li>`);
  const ofFields = fields
    .filter(({ key }) => messages.has(key))
    .map(({ key }) => html`<li><a href="#${controlId(key)}">${messages.get(key)}</a></li>`);
  return html`<div class="summary" role="alert" tabindex="-1" ${framed === undefined && AUTOFOCUS}>
    <h2>${texts.check_entries}</h2>
    <ul>
      ${general}${ofFields}
    </ul>
    ${fields.some(isSecret) && html`<p>${texts.secrets_again}</p>`}
  </div>`;
}
