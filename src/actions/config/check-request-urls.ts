import { isJsonObject, type Json } from "#domain/json.ts";
import { quote, quoteList, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";

/** A base for resolving URLs, with an origin that can't be listed in a document. */
const RELATIVE = "https://relative.invalid";

/** The text before an expression is either a complete host, terminated by `/`, `?` or `#`, or the beginning of a path. */
const HOST_IS_FIXED = /^(?:(?:[a-z][a-z0-9+.-]*:)?[/\\]{2}[^/\\?#]+[/\\?#]|[/?#][^/\\]|[^:/\\?#]+[/?#])/i;

export interface LocatedUrl {
  readonly path: ConfigPath;
  readonly url: string;
}

/** Every `request.url` of a node or a login, at any depth outside of the requests' own parts. */
export function findRequestUrls(value: Json, path: ConfigPath): readonly LocatedUrl[] {
  if (Array.isArray(value))
    return value.flatMap((item: Json, index: number) => findRequestUrls(item, [...path, index]));
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, part]) => {
    if (key !== "request" || !isJsonObject(part)) return findRequestUrls(part, [...path, key]);
    const url = part["url"];
    return typeof url === "string" ? [{ path: [...path, key, "url"], url }] : [];
  });
}

/**
 * Where a request would go, as far as the text says: an origin, `relative`, or `unknown` because an expression decides
 * (the egress gate looks at the result).
 */
function originOf(written: string): { readonly origin: string } | "relative" | "unknown" | "malformed" {
  const template = written.indexOf("{{");
  const fixed = template < 0 ? written : written.slice(0, template);
  if (template >= 0 && !HOST_IS_FIXED.test(`${fixed}.`)) return "unknown";
  if (!URL.canParse(fixed, RELATIVE)) return "malformed";
  const url = new URL(fixed, RELATIVE);
  if (url.protocol !== "https:" && url.protocol !== "http:") return "malformed";
  return url.origin === RELATIVE ? "relative" : { origin: url.origin };
}

/** docs/decisions/0030: no absolute URL outside the strategy's `hosts`, in a node with a credential and in a login. */
export function checkCredentialUrls(
  urls: readonly LocatedUrl[],
  hosts: readonly string[],
  strategy: string,
): readonly ConfigFinding[] {
  return urls.flatMap(({ path, url }) => {
    const where = originOf(url);
    if (where === "malformed")
      return [{ path, message: `${quote(url)} is not a URL; write a path like \`/api/items\`` }];
    if (hosts.length === 0)
      return [
        {
          path,
          message: `${strategy} has no \`hosts\`, so nothing can be sent with its credential; list them there`,
        },
      ];
    if (where === "relative" || where === "unknown" || hosts.includes(where.origin)) return [];
    const remedy = `they are ${quoteList(hosts)}; write a path like \`/api/items\`, or add the origin there`;
    return [{ path, message: `${quote(where.origin)} is not among the \`hosts\` of ${strategy}; ${remedy}` }];
  });
}

/** docs/blueprints.md#http: a node without a credential needs an absolute URL whose origin is in the Blueprint's own `hosts`. */
export function checkPublicUrls(
  urls: readonly LocatedUrl[],
  hosts: readonly string[],
): readonly ConfigFinding[] {
  return urls.flatMap(({ path, url }) => {
    const where = originOf(url);
    if (where === "malformed")
      return [
        { path, message: `${quote(url)} is not a URL; write one like \`https://api.example.com/items\`` },
      ];
    if (where === "relative")
      return [
        {
          path,
          message:
            "a node without a `credential` needs an absolute URL; write the origin too, or name a credential slot",
        },
      ];
    if (where === "unknown" || hosts.includes(where.origin)) return [];
    return [
      {
        path,
        message: `${quote(where.origin)} is not among the Blueprint's own \`hosts\`; add it there, or name a credential slot`,
      },
    ];
  });
}
