/** Operators who sign in at a real provider, step by step. */
import { Visitor } from "../oauth/oauth-setup.ts";
import { CLIENT, startProvider, type ProviderSite } from "../oauth/provider.ts";
import { openBrowser, type Browser, type OperatorAnswer } from "./browser.ts";
import { openOperatorStage, type OperatorStage } from "./stage.ts";

export const oidcEnvironment = (issuer: string): Readonly<Record<string, string>> => ({
  LATCHKEY_OIDC_ISSUER: issuer,
  LATCHKEY_OIDC_CLIENT_ID: CLIENT.id,
  LATCHKEY_OIDC_CLIENT_SECRET: CLIENT.secret,
  LATCHKEY_OIDC_LABEL: "Example ID",
  // So that the provider alone is opened by its own setting.
  LATCHKEY_EGRESS_ALLOW: "",
});

export interface OidcStage extends AsyncDisposable {
  readonly operators: OperatorStage;
  readonly provider: ProviderSite;
  /** What the provider says of people, by their login there. */
  readonly people: Map<string, Readonly<Record<string, unknown>>>;
  browser(): Browser;
  /** The whole way, up to what the provider sends the browser back with. */
  away(browser: Browser, who: string, decide?: "agree" | "cancel"): Promise<string>;
  signIn(browser: Browser, who: string): Promise<OperatorAnswer>;
}

/** Leaves for the provider: its address. The browser keeps its session, and what ties the way back to it. */
export async function leave(browser: Browser, path: string, body: object | undefined): Promise<string> {
  const before = browser.cookie;
  const answer = await browser.send("POST", path, body);
  if (answer.status !== 201) throw new Error(answer.text);
  browser.cookie = [before, browser.cookie].filter((each) => each !== "").join("; ");
  return answer.body.url;
}

export const finish = async (browser: Browser, query: string): Promise<OperatorAnswer> =>
  await browser.send("POST", "/session/oidc", { query });

export async function openOidcStage(environment: Readonly<Record<string, string>> = {}): Promise<OidcStage> {
  await using opened = new AsyncDisposableStack();
  const people: OidcStage["people"] = new Map();
  const provider = opened.use(await startProvider({ people }));
  const operators = opened.use(
    await openOperatorStage({ ...oidcEnvironment(provider.issuer), ...environment }),
  );
  provider.open([`${operators.service.url}/dashboard/oidc`]);
  const away: OidcStage["away"] = async (browser, who, decide = "agree") => {
    const url = await leave(browser, "/session/oidc/begin", {});
    const back = await new Visitor().signIn(url, decide, who);
    return new URL(back).search.slice(1);
  };
  const kept = opened.move();
  return {
    operators,
    provider,
    people,
    browser: () => openBrowser(operators.service.url),
    away,
    signIn: async (browser, who) => await finish(browser, await away(browser, who)),
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}
