import type { TSchema } from "typebox";
import { termsOf, type StepKind, type Terms } from "#answers/browser/define-step.ts";
import { stepKinds } from "#answers/steps/step-kinds.ts";
import { Type } from "#lib/type.ts";
import type { Generated } from "./generated.ts";
import { keyTable, page, yaml } from "./type-pages.ts";

/** `docs/steps/<kind>.md`: from the schemas that `apply` checks by. */
export const stepPages: readonly Generated[] = stepKinds.map((kind) => ({
  path: `docs/steps/${kind.kind}.md`,
  content: async () => stepPage(kind),
}));

function stepPage({ kind, description, only, example, more, schema, beside }: StepKind): string {
  const terms = termsOf(only ?? "login", "run", () => Type.Object({}));
  const own = schema(terms);
  const where = only === undefined ? "Logins and nodes." : only === "node" ? "Only nodes." : "Only logins.";
  return page(`Step: \`${kind}\``, description, [
    ["Example", yaml(`${example}\n`)],
    ["Keys", keysOf(own, terms)],
    ...(beside === undefined ? [] : ([["Beside it", keyTable(Type.Object(beside(terms)))]] as const)),
    ["Where", where],
    ["More", [more, TIMEOUT].filter((text) => text !== undefined).join("\n\n")],
  ]);
}

/** Steps on an element have the keys of its locator, which have a section of their own. */
function keysOf(schema: object, { locatorKeys }: Terms): string {
  const { properties = {} } = schema as { readonly properties?: Readonly<Record<string, TSchema>> };
  const own = Object.entries(properties).filter(([key]) => !Object.hasOwn(locatorKeys, key));
  const table = keyTable(Type.Object(Object.fromEntries(own)));
  if (Object.keys(properties).length === 0) return "Its value is not an object and has no keys.";
  if (own.length === Object.keys(properties).length) return table;
  const locator = "The keys of a [locator](../browser.md#locators)";
  return table === "" ? `${locator}.` : `${locator}, and:\n\n${table}`;
}

const TIMEOUT =
  "[Browser automation](../browser.md) explains steps and locators. Every step may have `timeout` beside it: how long it may wait for the page, 10 s by default.";
