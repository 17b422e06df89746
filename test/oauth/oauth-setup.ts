import { load } from "cheerio";
import { CookieJar } from "tough-cookie";
import { moveClock } from "../clock.ts";
import { openCaller, type Caller } from "../caller.ts";
import { keepSecret } from "../keep-secret.ts";
import { install, type Installation, type RunningService } from "../service.ts";
import { CLIENT, startProvider, type ProviderSite } from "./provider.ts";

/** A strategy of `acme` whose end users log in at the provider. */
export const oauthStrategy = (provider: ProviderSite, id: string, extra = "", fields = ""): string => `
strategy: ${id}
account: acme
name: Northwind
hosts: ["${provider.api}"]
${fields}
login:
  type: oauth2
  issuer: ${provider.issuer}
  client_id: ${CLIENT.id}
  client_secret: { secret: NORTHWIND }
  scopes: [openid, offline_access]
  extra_params: { prompt: consent${extra} }`;

export const itemsBlueprint = (key: string, strategy: string): string => `
blueprint: ${key}
account: acme
credentials: { it: { strategy: ${strategy} } }
nodes:
  - { id: read, type: http, credential: it, request: { url: /api/items }, records: $ }
  - { id: out, type: output, refKey: out, from: read }`;

export interface OAuthBench extends AsyncDisposable {
  readonly installation: Installation;
  readonly service: RunningService;
  readonly provider: ProviderSite;
  readonly caller: Caller;
  /** Calls another process of the installation. */
  callerOf(service: RunningService): Caller;
  session(
    strategy?: string,
    returnUrl?: string,
  ): Promise<{ readonly id: string; readonly hosted_url: string }>;
  status(sessionId: string): Promise<{ readonly status: string; readonly credential_id: string | null }>;
  /** A credential by the whole way through the provider's pages. */
  connect(strategy?: string): Promise<string>;
  redirectUri(strategy?: string): string;
  credentialCount(): Promise<number>;
  /** `app_now()` is later by this. */
  moveClock(by: string): Promise<void>;
}

export async function openOAuthBench(
  documents: (provider: ProviderSite) => readonly string[],
  options: { readonly environment?: Record<string, string> } = {},
): Promise<OAuthBench> {
  await using opened = new AsyncDisposableStack();
  const provider = opened.use(await startProvider());
  const installation = opened.use(await install(options.environment));
  const account = "account: acme\nname: Acme Inc.\nallowed_origins: [https://app.acme.example]";
  const own = [oauthStrategy(provider, "strat_northwind"), itemsBlueprint("items", "strat_northwind")];
  await installation.apply(account, ...own, ...documents(provider));
  await keepSecret(installation, "NORTHWIND", CLIENT.secret, new URL(provider.issuer).origin);
  const [key, service] = await Promise.all([installation.createKey("acme"), installation.serve()]);
  const caller = openCaller(service.url, key);
  const redirectUri = (strategy = "strat_northwind"): string =>
    `${service.url}/connect/oauth/acme/${strategy}`;
  provider.open([redirectUri(), redirectUri("strat_other"), redirectUri("strat_fields")]);
  const { db } = installation.database;
  const session: OAuthBench["session"] = async (strategy = "strat_northwind", returnUrl) => {
    const body = { strategy_id: strategy, ...(returnUrl === undefined ? {} : { return_url: returnUrl }) };
    return (await caller.post("/credential-sessions", body)).body;
  };
  const status: OAuthBench["status"] = async (id) => (await caller.get(`/credential-sessions/${id}`)).body;
  const kept = opened.move();
  return {
    installation,
    service,
    provider,
    caller,
    session,
    status,
    redirectUri,
    callerOf: (other) => openCaller(other.url, key),
    connect: async (strategy) => {
      const made = await session(strategy);
      const visitor = new Visitor();
      const answer = await visitor.open(await visitor.signIn(await visitor.leave(made.hosted_url)));
      const { credential_id: id } = await status(made.id);
      if (id === null)
        throw new Error(`not connected: ${answer.status} ${answer.text}\n${installation.logs()}`);
      return id;
    },
    credentialCount: async () =>
      (await db.query<{ n: number }>("select count(*)::int as n from credential"))[0]?.n ?? Number.NaN,
    moveClock: async (by) => await moveClock(db, by),
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

export interface Page {
  readonly status: number;
  readonly location: string | null;
  readonly text: string;
  readonly setCookies: readonly string[];
}

/** A browser without script: cookies, redirects one by one, forms. */
export class Visitor {
  readonly jar = new CookieJar();

  async open(url: string, form?: Readonly<Record<string, string>>): Promise<Page> {
    const cookie = this.jar.getCookieStringSync(url);
    const response = await fetch(url, {
      redirect: "manual",
      headers: cookie === "" ? {} : { cookie },
      ...(form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) }),
    });
    const setCookies = response.headers.getSetCookie();
    for (const line of setCookies) this.jar.setCookieSync(line, url, { ignoreError: true });
    const location = response.headers.get("location");
    return {
      status: response.status,
      location: location === null ? null : new URL(location, url).href,
      text: await response.text(),
      setCookies,
    };
  }

  /** Presses the button of our page; gives the address of the target's own login. */
  async leave(hostedUrl: string, values: Readonly<Record<string, string>> = {}): Promise<string> {
    const page = await this.open(hostedUrl);
    const csrf = load(page.text)("input[name=_csrf]").attr("value") ?? "";
    const left = await this.open(hostedUrl, { _csrf: csrf, ...values });
    if (left.status !== 303 || left.location === null) throw new Error(`stayed: ${left.status} ${left.text}`);
    return left.location;
  }

  /** Logs in and agrees at the provider; gives the address that it sends the browser back to, not opened yet. */
  async signIn(authorizationUrl: string, decide: "agree" | "cancel" = "agree", who = "ada"): Promise<string> {
    const { origin } = new URL(authorizationUrl);
    let url = authorizationUrl;
    for (let step = 0; step < 12; step += 1) {
      if (new URL(url).origin !== origin) return url;
      const page = await this.open(url);
      if (page.location !== null) {
        url = page.location;
        continue;
      }
      const $ = load(page.text);
      if ($("form").length === 0) throw new Error(`the provider shows no form: ${page.status} ${page.text}`);
      const abort = $("a[href*=abort]").attr("href");
      if (decide === "cancel" && abort !== undefined) {
        url = new URL(abort, url).href;
        continue;
      }
      const prompt = $("input[name=prompt]").attr("value") ?? "";
      const login = prompt === "login" ? { login: who, password: `${who}-password` } : {};
      const sent = await this.open(new URL($("form").attr("action") ?? "", url).href, { prompt, ...login });
      if (sent.location === null)
        throw new Error(`the provider's form answered ${sent.status}: ${sent.text}`);
      url = sent.location;
    }
    throw new Error("the provider never sent the browser back");
  }
}
