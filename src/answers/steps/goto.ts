import { defineStep } from "#answers/browser/define-step.ts";
import { StepFailure } from "#answers/browser/step-failure.ts";
import { shorten } from "#domain/config-problem.ts";
import { urlTemplateProblem } from "#domain/url-template.ts";

export const goto = defineStep<string>({
  kind: "goto",
  description: "Opens a page: a path of the first host, or a URL of one of the hosts.",
  example: "- goto: /login",
  more: "Only `http:` and `https:` pages of the hosts can be opened, also by redirects. The step is done when the page has loaded. An answer with a status of 500 or above is a failure; a page with another status is shown like any other.",
  schema: ({ text }) => text("Opens a page: a path of the first host, or a URL of one of the hosts."),
  check: (url, path) => {
    const problem = urlTemplateProblem(url);
    return problem === null ? [] : [{ path, message: problem }];
  },
  describe: (url) => shorten(url),
  async run(run, template) {
    const { origins } = run.browser;
    const given = await run.text(template);
    const url = URL.canParse(given, origins[0]) ? new URL(given, origins[0]) : null;
    if (url === null || !origins.includes(url.origin))
      throw new StepFailure("blocked", `the URL is not of the allowed hosts (${origins.join(", ")})`);
    const response = await run.page.goto(url.href, { timeout: run.timeoutMs });
    const status = response?.status() ?? 200;
    if (status >= 500) throw new StepFailure("unreachable", `the page answered with the status ${status}`);
  },
});
