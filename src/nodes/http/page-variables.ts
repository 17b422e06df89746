import { isJsonObject, type Json } from "#domain/json.ts";
import { splitUrlTemplate } from "#domain/url-template.ts";

/** The variables with which a request selects its page. */
export type PageVariable = "page" | "cursor" | "offset";

/** The page variables that a request's templates can use. Called with any config. */
export function pageVariables(paginate: unknown): readonly PageVariable[] {
  const { cursor, page, offset } = (paginate ?? {}) as { readonly [kind in PageVariable]?: unknown };
  if (cursor !== undefined) return ["page", "cursor"];
  if (offset !== undefined) return ["page", "offset"];
  return page === undefined ? [] : ["page"];
}

/** The variables of pages that the request's templates read. */
export function readPageVariables(request: object, paginate: unknown): readonly PageVariable[] {
  const expressions = templatesOf(request as Json).flatMap((text) =>
    (splitUrlTemplate(text) ?? []).flatMap((part) => (part.kind === "expression" ? [part.template] : [])),
  );
  return pageVariables(paginate).filter((name) =>
    expressions.some((source) => new RegExp(`\\$${name}(?![A-Za-z0-9_])`).test(source)),
  );
}

function templatesOf(value: Json): readonly string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.flatMap(templatesOf);
  return isJsonObject(value) ? Object.values(value).flatMap(templatesOf) : [];
}
