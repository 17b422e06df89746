import { Type, type Static } from "typebox";
import { quote, quoteList, shorten, type ConfigFinding } from "#domain/config-problem.ts";
import { TEMPLATE, type ExpressionScopeKind } from "#domain/expression.ts";
import { HANDLE_PREFIX } from "#domain/handle-text.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { isSelector } from "./is-selector.ts";
import type { PageForm } from "./page-form.ts";
import { readPage } from "./page-reader.ts";
import { textPairs, type TextPairs } from "./text-pairs.ts";

/** The keys of `submit`, of logins and nodes alike. */
export const submitSchema = (scope: ExpressionScopeKind, description: string) =>
  Type.Object(
    {
      form: Type.String({
        minLength: 1,
        maxLength: 1_000,
        description: "A CSS selector: the first form of the page that matches.",
      }),
      fields: Type.Record(Type.String({ minLength: 1 }), Type.Unsafe<Json>({}), {
        minProperties: 1,
        [TEMPLATE]: scope,
        description:
          "Values to fill in, by the controls' names; the other controls keep the page's values. Naming a button presses it. It is an error if the form has no control of that name, or if the value is not an option of its `select` or radio buttons.",
      }),
      add: Type.Optional(
        Type.Record(Type.String({ minLength: 1 }), Type.Unsafe<Json>({}), {
          minProperties: 1,
          [TEMPLATE]: scope,
          description:
            "Additional values under names that the form does not have, such as those that a script of the page would add.",
        }),
      ),
    },
    { additionalProperties: false, description },
  );

export type SubmitConfig = Static<ReturnType<typeof submitSchema>>;

/** What a form needs to be filled in. */
export interface SubmitTools {
  readonly signal: AbortSignal;
  /** Begins messages. */
  readonly place: string;
  /** What is thrown. */
  readonly fail: (message: string) => Error;
  /** All templates in one go: a one-time code that is rendered is used. */
  readonly render: (template: JsonObject) => Promise<Json | undefined>;
  /** Whether names and values must be those of the form, and the request looks as a browser's: since edition 2. */
  readonly isStrict: boolean;
}

/** A form as it is sent. */
export interface FormRequest {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly headers: TextPairs;
  readonly body: string | undefined;
}

/**
 * The request that a form of a page makes when some of its fields are filled in: its method, its action, its hidden inputs and
 * what else stands in it. Where it goes is the page's word, so the egress gate holds it to the hosts as any other.
 * `pages`: the newest first; the form is taken from the first that has it.
 */
export async function buildSubmit(
  tools: SubmitTools,
  submit: SubmitConfig,
  pages: readonly OutboundResponse[],
): Promise<FormRequest> {
  const { place, fail } = tools;
  const { form, page } = await findForm(tools, submit, pages);
  const rendered = await tools.render({ fields: submit.fields, add: submit.add ?? {} });
  const { fields, add } = isJsonObject(rendered) ? rendered : {};
  const filledIn = textPairs(fields, `${place}: fields`, fail);
  if (tools.isStrict) requireControls(tools, form, filledIn, `${place}: the form ${quote(submit.form)}`);
  const filled = [...filledIn, ...textPairs(add, `${place}: add`, fail)];
  const names = new Set(filled.map(([name]) => name));
  const pressed = tools.isStrict ? form.buttons.find(({ name }) => names.has(name)) : undefined;
  const left = form.pairs.filter(
    ([name], index) => !names.has(name) && !(pressed !== undefined && index === form.pressedPair),
  );
  const pairs = new URLSearchParams();
  for (const [name, value] of [...left, ...filled]) pairs.append(name, value);
  const url = addressOf(tools, { ...form, action: pressed?.action ?? form.action }, page);
  const headers = tools.isStrict ? refererOf(page, url) : [];
  if (form.method !== "post") {
    url.search = pairs.toString();
    return { method: "GET", url: url.href, headers, body: undefined };
  }
  if (form.encoding === "multipart/form-data" || form.encoding === "text/plain")
    throw fail(`${place}: the form is sent as ${form.encoding}, which is not built yet`);
  return {
    method: "POST",
    url: url.href,
    headers: [["content-type", "application/x-www-form-urlencoded"], ...headers],
    body: pairs.toString(),
  };
}

function addressOf(
  { place, fail }: SubmitTools,
  { base: written, action }: PageForm,
  page: OutboundResponse,
): URL {
  const base = URL.canParse(written, page.url) ? new URL(written, page.url).href : page.url;
  const address = action === "" ? page.url : action;
  if (!URL.canParse(address, base)) throw fail(`${place}: the form's action is not a URL`);
  return new URL(address, base);
}

/** As browsers do it within an origin; targets use it against forged requests. A handle would not stand whole there. */
function refererOf({ url: from }: OutboundResponse, to: URL): TextPairs {
  const url = URL.parse(from);
  if (url === null || url.origin !== to.origin || from.includes(HANDLE_PREFIX)) return [];
  [url.hash, url.username, url.password] = ["", "", ""];
  return [["referer", url.href]];
}

const LISTED_MAX = 20;
const LISTED_CHARACTERS_MAX = 40;

/** Short ones alone, and whole: what the redactor looks for must not be cut in two. */
function list(names: readonly string[]): string {
  const short = names.filter(({ length }) => length <= LISTED_CHARACTERS_MAX).slice(0, LISTED_MAX);
  return quoteList(short) + (short.length < names.length ? ", …" : "");
}

/** Throws for a control that is not there, or does not take the value. What was filled in is not shown. */
function requireControls(
  { fail }: SubmitTools,
  { controls }: PageForm,
  filled: TextPairs,
  place: string,
): void {
  const there = controls.map(({ name }) => name);
  for (const [name, value] of filled) {
    const control = controls.find((each) => each.name === name);
    if (control === undefined)
      throw fail(
        `${place} has no control ${quote(name)}; it has ${there.length === 0 ? "none" : list(there)}. Values that a script of the page adds ` +
          "belong in `submit.add`",
      );
    if (control.options !== null && !control.options.includes(value))
      throw fail(
        `${place}: the value is not an option of the control ${quote(name)}; it has ${list(control.options)}`,
      );
  }
}

async function findForm(
  { place, signal, fail }: SubmitTools,
  { form: css }: SubmitConfig,
  pages: readonly OutboundResponse[],
): Promise<{ readonly form: PageForm; readonly page: OutboundResponse }> {
  for (const page of pages) {
    const answers = await readPage(page.text(), [{ kind: "form", css }], signal);
    if (answers === null)
      throw fail(`${place}: the page could not be read within the limits of time and memory`);
    const [answer] = answers;
    // Written by our own thread.
    if (typeof answer === "string") return { form: JSON.parse(answer) as PageForm, page };
  }
  const [newest] = pages;
  const instead = newest === undefined ? "" : await describeForms(newest, signal);
  throw fail(`${place}: the page before has no form \`${shorten(css, 100)}\`${instead}`);
}

/** Why it may be that the form is not there. */
async function describeForms(page: OutboundResponse, signal: AbortSignal): Promise<string> {
  const queries = ["form", "script"].map((css) => ({ kind: "css", css, attr: null }) as const);
  const answers = await readPage(page.text(), queries, signal);
  if (answers === null || answers[0] !== null) return "";
  return answers[1] === null
    ? "; it has no form at all"
    : "; it has no form at all, but scripts: JavaScript builds it. Look up in a browser's network tab what it sends, and write that as steps " +
        "with a `request`";
}

/** Mistakes that the schema can't express. */
export function submitFindings(
  { form }: SubmitConfig,
  path: ConfigFinding["path"],
): readonly ConfigFinding[] {
  return isSelector(form)
    ? []
    : [{ path: [...path, "form"], message: `${quote(form)} is not a CSS selector` }];
}
