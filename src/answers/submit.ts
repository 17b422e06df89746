import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { quote, quoteList, shorten, type ConfigFinding } from "#domain/config-problem.ts";
import { TEMPLATE, type ExpressionScopeKind } from "#domain/expression.ts";
import { HANDLE_PREFIX } from "#domain/handle-text.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { isSelector } from "./is-selector.ts";
import type { PageForm } from "./page-form.ts";
import { readPage } from "./page-reader.ts";
import { textPairs, type TextPairs } from "./text-pairs.ts";

/** The keys of `submit`, the same for logins and nodes. */
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

/** The functions for filling in a form. */
export interface SubmitTools {
  readonly signal: AbortSignal;
  /** The beginning of messages. */
  readonly place: string;
  /** Creates the error to throw. */
  readonly fail: (message: string) => Error;
  /** Renders all templates at once, because rendering a one-time code uses it up. */
  readonly render: (template: JsonObject) => Promise<Json | undefined>;
  /** Whether names and values must exist in the form, and the request must look like a browser's: since edition 2. */
  readonly isStrict: boolean;
}

/** A form, ready to be sent. */
export interface FormRequest {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly headers: TextPairs;
  readonly body: string | undefined;
}

/**
 * The request that submits a form of a page with some of its fields filled in: its method, its action, its hidden inputs and its
 * other controls. The page determines where it goes, so the egress gate checks its origin as for any other request. `pages`: the
 * newest first; the form is taken from the first page that has it.
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
    throw fail(`${place}: the form is sent as ${form.encoding}, which is not supported yet`);
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

/** As browsers do within an origin; targets check it against forged requests. A handle would not fit there as a whole. */
function refererOf({ url: from }: OutboundResponse, to: URL): TextPairs {
  const url = URL.parse(from);
  if (url === null || url.origin !== to.origin || from.includes(HANDLE_PREFIX)) return [];
  [url.hash, url.username, url.password] = ["", "", ""];
  return [["referer", url.href]];
}

const LISTED_MAX = 20;
const LISTED_CHARACTERS_MAX = 40;

/** Lists only short names, and never truncates one: the redactor must be able to find complete values. */
function list(names: readonly string[]): string {
  const short = names.filter(({ length }) => length <= LISTED_CHARACTERS_MAX).slice(0, LISTED_MAX);
  return quoteList(short) + (short.length < names.length ? ", …" : "");
}

/** Throws for a control that doesn't exist or doesn't accept the value. The value is not shown. */
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
  throw fail(`${place}: the previous page has no form \`${shorten(css, 100)}\`${instead}`);
}

/** Explains why the form may be missing. */
async function describeForms(page: OutboundResponse, signal: AbortSignal): Promise<string> {
  const queries = ["form", "script"].map((css) => ({ kind: "css", css, attr: null }) as const);
  const answers = await readPage(page.text(), queries, signal);
  if (answers === null || answers[0] !== null) return "";
  return answers[1] === null
    ? "; it has no form at all"
    : "; it has no form at all, only scripts: JavaScript creates it. Find its requests in a browser's network tab, and write them as steps " +
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
