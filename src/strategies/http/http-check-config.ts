import { extractFindings } from "#answers/extract.ts";
import { isSelector } from "#answers/is-selector.ts";
import { submitFindings } from "#answers/submit.ts";
import { quote, quoteList } from "#domain/config-problem.ts";
import type { ConfigFinding } from "#strategies/define-login.ts";
import type { ExpectConfig, HttpLogin, RequestConfig, StepConfig } from "./http-schema.ts";
import { checkHeaderNames } from "#strategies/login-headers.ts";
import { hasNoBody } from "#domain/http-methods.ts";
import { urlTemplateProblem } from "#domain/url-template.ts";

type Path = ConfigFinding["path"];

/** docs/logins/http.md: the name of an `extract` must not be a reserved variable. */
const RESERVED: ReadonlySet<string> = new Set(
  "credential inputs metadata run index isValid errors counts nodes token".split(" "),
);

const KINDS = ["css", "json", "regex", "header", "cookie"] as const;
const BODIES = ["json", "form", "text"] as const;

/** Mistakes of an `http` login that its schema can't express. */
export function checkHttpConfig(config: HttpLogin): readonly ConfigFinding[] {
  return [
    ...config.steps.flatMap((step, index) => checkStep(step, index)),
    ...checkRequest(config.check?.request, ["check", "request"]),
    ...checkExpect(config.check?.expect, ["check", "expect"]),
    ...checkHeaderNames(config.session?.headers, ["session", "headers"]),
  ];
}

/** Warnings about an `http` login. */
export function warnOfHttpLogin({ steps, check }: HttpLogin, isCached: boolean): readonly ConfigFinding[] {
  if (check !== undefined) return [];
  const findings: ConfigFinding[] = [];
  if (isCached)
    findings.push({
      path: [],
      message: "a cached session is used until it expires, even if the target has ended it; add a `check`",
    });
  if (!steps.some(canFail))
    findings.push({
      path: ["steps"],
      message:
        "any page with status 200 counts as logged in, even the login form again; add a `check`, or an `expect` that only a successful login meets (`text`, `not_text`, `url`, `json`)",
    });
  return findings;
}

/** Whether the step has a condition besides the status. */
function canFail({ expect, extract = {} }: StepConfig): boolean {
  return expect !== undefined || Object.values(extract).some(({ required }) => required !== false);
}

function checkStep(step: StepConfig, index: number): readonly ConfigFinding[] {
  const path = ["steps", index];
  const extracts = Object.entries(step.extract ?? {});
  return [
    ...checkAction(step, index, path),
    ...checkExpect(step.expect, [...path, "expect"]),
    ...(step.request === undefined ? [] : checkRequest(step.request, [...path, "request"])),
    ...extracts.flatMap(([name]) => checkName(name, [...path, "extract", name])),
    ...extracts.flatMap(([name, extract]) => extractFindings(extract, KINDS, [...path, "extract", name])),
  ];
}

function checkAction({ request, submit }: StepConfig, index: number, path: Path): readonly ConfigFinding[] {
  if (submit === undefined)
    return request === undefined
      ? [{ path, message: "a step needs a `request` or a `submit`; add one" }]
      : [];
  const at = [...path, "submit"];
  if (request !== undefined)
    return [
      { path: at, at: "key", message: "a step can't have both a `request` and a `submit`; remove one" },
    ];
  if (index === 0)
    return [
      { path: at, at: "key", message: "the first step has no previous page; request the form's page first" },
    ];
  return submitFindings(submit, at);
}

export function checkExpect(expect: ExpectConfig | undefined, path: Path): readonly ConfigFinding[] {
  if (expect?.css === undefined || isSelector(expect.css)) return [];
  return [{ path: [...path, "css"], message: `${quote(expect.css)} is not a CSS selector` }];
}

export function checkRequest(request: RequestConfig | undefined, path: Path): readonly ConfigFinding[] {
  if (request === undefined) return [];
  const bodies = BODIES.filter((key) => request[key] !== undefined);
  const [first, second] = bodies;
  const findings = [...checkHeaderNames(request.headers, [...path, "headers"])];
  const urlProblem = urlTemplateProblem(request.url);
  if (urlProblem !== null) findings.push({ path: [...path, "url"], message: urlProblem });
  if (second !== undefined)
    findings.push({
      path: [...path, second],
      at: "key",
      message: `a request has one body; keep only one of ${quoteList(bodies)}`,
    });
  if (first !== undefined && hasNoBody(request.method ?? "GET")) {
    const message =
      request.method === undefined
        ? "a request with a body needs a `method`, e.g. POST"
        : `a ${request.method} request has no body; use another method, or \`query\``;
    findings.push({ path: [...path, first], at: "key", message });
  }
  return findings;
}

function checkName(name: string, path: Path): readonly ConfigFinding[] {
  const finding = (message: string): readonly ConfigFinding[] => [{ path, at: "key", message }];
  if (RESERVED.has(name)) return finding(`${quote(name)} is a reserved variable; choose another name`);
  if (!/^[A-Za-z][A-Za-z0-9_]*$/.test(name))
    return finding(`${quote(name)} is not a variable name; use letters, digits and _`);
  return [];
}
