import { isSelector } from "#answers/is-selector.ts";
import type { ConfigFinding } from "#nodes/define-node.ts";
import type { HttpConfig } from "./http-config.ts";
import type { Paginate } from "./paginate-config.ts";
import { readPageVariables } from "./page-variables.ts";
import { readColumn } from "#nodes/parse/read-parsed.ts";

const KINDS = ["cursor", "page", "offset", "link_header", "next_url", "next_css"] as const;
type Kind = (typeof KINDS)[number];
/** Kinds whose next page has an address of its own. */
const ADDRESSED: ReadonlySet<Kind> = new Set(["link_header", "next_url", "next_css"]);
/** Formats that no page with links is. */
const WITHOUT_LINKS: ReadonlySet<string> = new Set(["json", "ndjson", "csv", "xlsx", "xml", "pdf"]);

/** Mistakes of `paginate` that the schema can't express. */
export function paginateFindings(config: HttpConfig): readonly ConfigFinding[] {
  const { paginate, records, parse } = config;
  if (paginate === undefined) return [];
  const kinds = KINDS.filter((key) => paginate[key] !== undefined);
  const [kind, second] = kinds;
  if (kind === undefined || second !== undefined)
    return [
      {
        path: ["paginate"],
        message:
          "`paginate` has exactly one of `cursor`, `page`, `offset`, `link_header`, `next_url` and `next_css`",
      },
    ];
  const findings: ConfigFinding[] = [];
  if (records === undefined && parse === undefined)
    findings.push({
      path: ["paginate"],
      message: "only records have pages: give the node `records` or `parse`",
    });
  return [...findings, ...carrierFindings(config, paginate, kind), ...bodyFindings(config, paginate)];
}

const at = (key: string, message: string): ConfigFinding => ({ path: ["paginate", key], message });

/** How the next page is asked for. */
function carrierFindings({ request }: HttpConfig, paginate: Paginate, kind: Kind): readonly ConfigFinding[] {
  const findings: ConfigFinding[] = [];
  if (ADDRESSED.has(kind)) {
    if (paginate.param !== undefined)
      findings.push(at("param", `\`${kind}\` gives a whole address; it takes no \`param\``));
  } else if (
    paginate.param === undefined &&
    !readPageVariables(request, paginate).some((name) => name === kind)
  ) {
    findings.push({
      path: ["paginate"],
      message: `\`${kind}\` needs \`param\`, the query parameter that carries it, or \`{{ $${kind} }}\` in the request`,
    });
  }
  for (const key of ["size", "size_param"] as const) {
    if (paginate[key] !== undefined && kind !== "offset")
      findings.push(at(key, `\`${key}\` belongs to \`offset\``));
  }
  if (paginate.size_param !== undefined && paginate.size === undefined)
    findings.push(at("size_param", "`size_param` sends `size`: give the node one"));
  return findings;
}

/** What is read from the body of a page. */
function bodyFindings({ records, parse }: HttpConfig, paginate: Paginate): readonly ConfigFinding[] {
  const findings: ConfigFinding[] = [];
  if (parse !== undefined && parse.format !== "json") {
    const remedy = ["html", "text"].includes(parse.format)
      ? ", `link_header` or `next_css`"
      : " or `link_header`";
    for (const key of ["cursor", "next_url"] as const)
      if (paginate[key] !== undefined)
        findings.push(
          at(key, `\`${key}\` is read from a JSON body; with this format use \`page\`, \`offset\`${remedy}`),
        );
    if (paginate.while !== undefined)
      findings.push(
        at("while", "`while` is read from a JSON body; with this format pages end by themselves; remove it"),
      );
  }
  const { next_css: link } = paginate;
  if (link === undefined) return findings;
  if (records !== undefined || (parse !== undefined && WITHOUT_LINKS.has(parse.format)))
    findings.push(
      at("next_css", "a link is read from an HTML page: `parse: { format: html }`; of JSON use `next_url`"),
    );
  const { css } = readColumn("next_css", link, "html");
  if (css === null) findings.push(at("next_css", "name the link: `a[rel=next]`"));
  else if (!isSelector(css)) findings.push(at("next_css", `\`${css}\` is not a CSS selector`));
  return findings;
}
