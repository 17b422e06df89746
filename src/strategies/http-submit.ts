import type { PageForm } from "#answers/page-form.ts";
import { readPage } from "#answers/page-reader.ts";
import { quote, quoteList, shorten } from "#domain/config-problem.ts";
import type { OutboundRequest, OutboundResponse } from "#domain/http-exchange.ts";
import { isJsonObject, type JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { LoginFailure, type LoginContext } from "./define-login.ts";
import type { SubmitConfig } from "./http-schema.ts";
import { renderAt, type Variables } from "./login-expressions.ts";
import { textPairs } from "./login-headers.ts";

/**
 * The request that a form of a page makes when some of its fields are filled in: its method, its action, its hidden inputs and
 * what else stands in it. Where it goes is the page's word, so the egress gate holds it to the strategy's hosts as any other.
 * `pages`: the newest first; the form is taken from the first that has it.
 */
export async function buildSubmit(
  context: LoginContext,
  submit: SubmitConfig,
  pages: readonly OutboundResponse[],
  variables: Variables,
  follow: boolean,
  place: string,
): Promise<OutboundRequest> {
  const { form, page } = await findForm(context, submit, pages, place);
  // In one go: a one-time code that is rendered is used.
  const template = { fields: submit.fields, add: submit.add ?? {} } as JsonObject;
  const rendered = await renderAt(context.expressions, `${place}: fields`, template, { variables });
  const { fields, add } = isJsonObject(rendered) ? rendered : {};
  const filledIn = textPairs(fields, `${place}: fields`);
  if (context.strategy.edition >= 2)
    requireControls(form, filledIn, `${place}: the form ${quote(submit.form)}`);
  const filled = [...filledIn, ...textPairs(add, `${place}: add`)];
  const names = new Set(filled.map(([name]) => name));
  const pairs = new URLSearchParams();
  for (const [name, value] of [...form.pairs.filter(([each]) => !names.has(each)), ...filled])
    pairs.append(name, value);
  const base = URL.canParse(form.base, page.url) ? new URL(form.base, page.url).href : page.url;
  const action = form.action === "" ? page.url : form.action;
  if (!URL.canParse(action, base)) throw new LoginFailure(`${place}: the form's action is no address`);
  const url = new URL(action, base);
  const redirectsMax = follow ? limits.redirectsMax : 0;
  if (form.method !== "post") {
    url.search = pairs.toString();
    return { method: "GET", url: url.href, redirectsMax };
  }
  if (form.encoding === "multipart/form-data" || form.encoding === "text/plain")
    throw new LoginFailure(`${place}: the form is sent as ${form.encoding}, which is not built yet`);
  return {
    method: "POST",
    url: url.href,
    headers: [["content-type", "application/x-www-form-urlencoded"]],
    body: pairs.toString(),
    redirectsMax,
  };
}

/** Why it may be that the form is not there. */
async function describeForms(context: LoginContext, page: OutboundResponse): Promise<string> {
  const queries = ["form", "script"].map((css) => ({ kind: "css", css, attr: null }) as const);
  const answers = await readPage(page.text(), queries, context.signal);
  if (answers === null || answers[0] !== null) return "";
  return answers[1] === null
    ? "; it has no form at all"
    : "; it has no form at all, and scripts: it is made by JavaScript. See in a browser's network tab what it sends, and write that as steps " +
        "with a `request`";
}

const LISTED_MAX = 20;
const LISTED_CHARACTERS_MAX = 40;

/** Short ones alone, and whole: what the redactor looks for must not be cut in two. */
function list(names: readonly string[]): string {
  const short = names.filter(({ length }) => length <= LISTED_CHARACTERS_MAX).slice(0, LISTED_MAX);
  return quoteList(short) + (short.length < names.length ? ", …" : "");
}

/** Throws LoginFailure for a control that is not there, or does not take the value. What was filled in is not shown. */
function requireControls(
  { controls }: PageForm,
  filled: readonly (readonly [name: string, value: string])[],
  place: string,
): void {
  const there = controls.map(({ name }) => name);
  for (const [name, value] of filled) {
    const control = controls.find((each) => each.name === name);
    if (control === undefined)
      throw new LoginFailure(
        `${place} has no control ${quote(name)}; it has ${there.length === 0 ? "none" : list(there)}. What a script of the page adds ` +
          "stands in `submit.add`",
      );
    if (control.options !== null && !control.options.includes(value))
      throw new LoginFailure(
        `${place}: what is filled in is no option of the control ${quote(name)}; it has ${list(control.options)}`,
      );
  }
}

async function findForm(
  context: LoginContext,
  { form: css }: SubmitConfig,
  pages: readonly OutboundResponse[],
  place: string,
): Promise<{ readonly form: PageForm; readonly page: OutboundResponse }> {
  for (const page of pages) {
    const answers = await readPage(page.text(), [{ kind: "form", css }], context.signal);
    if (answers === null)
      throw new LoginFailure(`${place}: the page could not be read within the limits of time and memory`);
    const [answer] = answers;
    // Written by our own thread.
    if (typeof answer === "string") return { form: JSON.parse(answer) as PageForm, page };
  }
  const [newest] = pages;
  const instead = newest === undefined ? "" : await describeForms(context, newest);
  throw new LoginFailure(`${place}: the page before has no form \`${shorten(css, 100)}\`${instead}`);
}
