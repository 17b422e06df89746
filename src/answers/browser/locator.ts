import type { FrameLocator, Locator, Page } from "playwright-core";
import type { TSchema } from "typebox";
import { isSelector } from "#answers/is-selector.ts";
import { quote, quoteList, shorten, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";
import { TEMPLATE, type ExpressionScopeKind } from "#domain/expression.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { namedSchema } from "#domain/named-schema.ts";
import { Type } from "#lib/type.ts";

/** The roles by which elements can be found (WAI-ARIA 1.2), as the driver knows them. */
const ROLES = (
  "alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox " +
  "complementary contentinfo definition deletion dialog directory document emphasis feed figure form generic grid " +
  "gridcell group heading img insertion link list listbox listitem log main marquee math menu menubar menuitem " +
  "menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation progressbar radio " +
  "radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider spinbutton status strong " +
  "subscript superscript switch tab table tablist tabpanel term textbox time timer toolbar tooltip tree treegrid treeitem"
).split(" ");

/** The keys of which a locator has exactly one. */
const KINDS = ["role", "label", "placeholder", "text", "alt", "title", "test_id", "css"] as const;
const TEXT_KINDS: readonly string[] = ["label", "placeholder", "text", "alt", "title"];
const OF_ROLE = ["name", "level", "checked"] as const;

export interface LocatorConfig {
  readonly role?: string;
  readonly name?: string;
  readonly exact?: boolean;
  readonly level?: number;
  readonly checked?: boolean;
  readonly label?: string;
  readonly placeholder?: string;
  readonly text?: string;
  readonly alt?: string;
  readonly title?: string;
  readonly test_id?: string;
  readonly css?: string;
  readonly in?: LocatorConfig;
  readonly frame?: LocatorConfig;
  readonly nth?: number;
  readonly has_text?: string;
}

const closed = { additionalProperties: false } as const;

/** The keys of a locator, for a step whose own keys stand beside them. Texts may be templates of the scope. */
function locatorKeys(scope: ExpressionScopeKind, named: (description: string) => TSchema) {
  const text = (description: string) =>
    Type.Optional(Type.String({ minLength: 1, [TEMPLATE]: scope, description }));
  return {
    role: Type.Optional(Type.Enum(ROLES, { description: "The ARIA role, such as button, link or textbox." })),
    name: text("With `role`: the accessible name, such as a button's text."),
    exact: Type.Optional(
      Type.Boolean({
        description: "true: the whole text in the same case. Default: a part of it, in any case.",
      }),
    ),
    level: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 6, description: "With `role: heading`: its level." }),
    ),
    checked: Type.Optional(Type.Boolean({ description: "With `role`: whether it is checked." })),
    label: text("The text of the field's label."),
    placeholder: text("The field's placeholder."),
    text: text("The element's own text."),
    alt: text("The alternative text of an image."),
    title: text("The element's `title`."),
    test_id: text("The attribute `data-testid`."),
    css: Type.Optional(Type.String({ minLength: 1, maxLength: 1_000, description: "A CSS selector." })),
    in: Type.Optional(named("Another locator: only elements inside of that element.")),
    frame: Type.Optional(named("The locator of an iframe that contains the element.")),
    nth: Type.Optional(
      Type.Integer({
        minimum: -1,
        maximum: 10_000,
        description: "The match with this index, counted from 0; -1 is the last.",
      }),
    ),
    has_text: text("Only elements that contain this text."),
  };
}

/** References to the locator of a scope, for the keys of steps and of other locators. */
export function locatorOf(place: "login" | "node", scope: ExpressionScopeKind) {
  const named = (description: string) =>
    namedSchema<LocatorConfig>(`browser_${place}_locator`, () => schema, { description });
  const keys = locatorKeys(scope, named);
  const schema: TSchema = Type.Object(keys, {
    ...closed,
    description: "Where an element of the page is found.",
  });
  return { keys, named };
}

/** Mistakes of a locator that its schema can't express. `config` may have other keys, of its step. */
export function locatorFindings(config: JsonObject, path: ConfigPath): readonly ConfigFinding[] {
  const given = KINDS.filter((kind) => config[kind] !== undefined);
  const [kind, second] = given;
  const findings: ConfigFinding[] = [];
  const refuse = (key: string, message: string): void =>
    void findings.push({ path: [...path, key], at: "key", message });
  if (kind === undefined)
    findings.push({ path, message: `a locator needs one of ${quoteList(KINDS)}; add one` });
  if (second !== undefined)
    refuse(second, `a locator has only one of ${quoteList(KINDS)}; remove \`${second}\`, or use \`in\``);
  for (const key of OF_ROLE)
    if (config[key] !== undefined && config["role"] === undefined) refuse(key, `\`${key}\` needs \`role\``);
  if (config["level"] !== undefined && config["role"] !== undefined && config["role"] !== "heading")
    refuse("level", "`level` needs `role: heading`");
  const isText = config["name"] !== undefined || given.some((each) => TEXT_KINDS.includes(each));
  if (config["exact"] !== undefined && !isText)
    refuse("exact", "`exact` needs a text to compare, such as `name`, `label` or `text`");
  const { css } = config;
  if (typeof css === "string" && (!isSelector(css) || css.includes(">>")))
    findings.push({ path: [...path, "css"], message: `${quote(css)} is not a CSS selector` });
  for (const key of ["in", "frame"])
    if (isJsonObject(config[key])) findings.push(...locatorFindings(config[key], [...path, key]));
  return findings;
}

/** A locator in the document's words: `button "Sign in"`. Templates are not rendered. */
export function describeLocator(locator: LocatorConfig): string {
  const kind = KINDS.find((each) => locator[each] !== undefined) ?? "css";
  const value = String(locator[kind] ?? "");
  const name = locator.name === undefined ? "" : ` "${shorten(locator.name)}"`;
  const what =
    kind === "role"
      ? `${value}${name}`
      : `${kind === "css" ? "element" : kind.replace("_", " ")} "${shorten(value)}"`;
  const text = locator.has_text === undefined ? "" : ` with the text "${shorten(locator.has_text)}"`;
  const nth = locator.nth === undefined ? "" : ` (nth ${locator.nth})`;
  const inside = locator.in === undefined ? "" : ` in ${describeLocator(locator.in)}`;
  const frame = locator.frame === undefined ? "" : ` in the frame ${describeLocator(locator.frame)}`;
  return what + text + nth + inside + frame;
}

type Root = Page | Locator | FrameLocator;

/** Finds what a rendered locator describes, in the page or a part of it. Nothing is looked up until it is used. */
export function locate(root: Root, locator: LocatorConfig): Locator {
  const framed = locator.frame === undefined ? root : locate(root, locator.frame).contentFrame();
  const within = locator.in === undefined ? framed : locate(framed, locator.in);
  let found = baseOf(within, locator);
  if (locator.has_text !== undefined) found = found.filter({ hasText: locator.has_text });
  return locator.nth === undefined ? found : found.nth(locator.nth);
}

function baseOf(root: Root, locator: LocatorConfig): Locator {
  const { role, name, exact, level, checked } = locator;
  const how = exact === undefined ? {} : { exact };
  if (role !== undefined)
    return root.getByRole(role as Parameters<Page["getByRole"]>[0], {
      ...how,
      ...(name !== undefined && { name }),
      ...(level !== undefined && { level }),
      ...(checked !== undefined && { checked }),
    });
  if (locator.label !== undefined) return root.getByLabel(locator.label, how);
  if (locator.placeholder !== undefined) return root.getByPlaceholder(locator.placeholder, how);
  if (locator.text !== undefined) return root.getByText(locator.text, how);
  if (locator.alt !== undefined) return root.getByAltText(locator.alt, how);
  if (locator.title !== undefined) return root.getByTitle(locator.title, how);
  if (locator.test_id !== undefined) return root.getByTestId(locator.test_id);
  return root.locator(`css=${locator.css ?? "*"}`);
}

/** The locator's own keys of a step that has others besides. */
export function locatorPart(config: Readonly<Record<string, unknown>>): LocatorConfig {
  const keys: readonly string[] = [...KINDS, ...OF_ROLE, "exact", "in", "frame", "nth", "has_text"];
  return Object.fromEntries(
    Object.entries(config).filter(([key]) => keys.includes(key)),
  ) as unknown as LocatorConfig;
}

/** As JSON, for rendering its templates. */
export const locatorJson = (locator: LocatorConfig): Json => locator as unknown as Json;
