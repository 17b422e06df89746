import { isSelector } from "#answers/is-selector.ts";
import type { ConfigFinding } from "#nodes/define-node.ts";
import type { HttpConfig } from "./http-config.ts";
import type { Paginate } from "./paginate-config.ts";
import { readPageVariables } from "./page-variables.ts";
import { readColumn } from "#nodes/parse/read-parsed.ts";

const KINDS = ["cursor", "page", "offset", "link_header", "next_url", "next_css"] as const;
type Kind = (typeof KINDS)[number];
/** Kinds in which a page links to the next one. */
const ADDRESSED: ReadonlySet<Kind> = new Set(["link_header", "next_url", "next_css"]);
/** Formats in which a page can't contain links. */
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
          "`paginate` needs exactly one of `cursor`, `page`, `offset`, `link_header`, `next_url` and `next_css`",
      },
    ];
  const findings: ConfigFinding[] = [];
  if (records === undefined && parse === undefined)
    findings.push({
      path: ["paginate"],
      message: "only records can be paginated: add `records` or `parse` to the node",
    });
  return [...findings, ...carrierFindings(config, paginate, kind), ...bodyFindings(config, paginate)];
}

const at = (key: string, message: string): ConfigFinding => ({ path: ["paginate", key], message });

/** Mistakes in how the next page is requested. */
function carrierFindings({ request }: HttpConfig, paginate: Paginate, kind: Kind): readonly ConfigFinding[] {
  const findings: ConfigFinding[] = [];
  if (ADDRESSED.has(kind)) {
    if (paginate.param !== undefined)
      findings.push(at("param", `\`param\` is not allowed with \`${kind}\`, which is a complete url`));
  } else if (
    paginate.param === undefined &&
    !readPageVariables(request, paginate).some((name) => name === kind)
  ) {
    findings.push({
      path: ["paginate"],
      message: `\`${kind}\` needs \`param\`, the name of its query parameter, or \`{{ $${kind} }}\` in the request`,
    });
  }
  for (const key of ["size", "size_param"] as const) {
    if (paginate[key] !== undefined && kind !== "offset")
      findings.push(at(key, `\`${key}\` is only for \`offset\``));
  }
  if (paginate.size_param !== undefined && paginate.size === undefined)
    findings.push(at("size_param", "`size_param` needs `size`: add it"));
  return findings;
}

/** Mistakes in what is read from the body of a page. */
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
      at(
        "next_css",
        "`next_css` reads a link from an HTML page and needs `parse: { format: html }`; for JSON use `next_url`",
      ),
    );
  const { css } = readColumn("next_css", link, "html");
  if (css === null) findings.push(at("next_css", "add a selector for the link, such as `a[rel=next]`"));
  else if (!isSelector(css)) findings.push(at("next_css", `\`${css}\` is not a CSS selector`));
  return findings;
}
