/** Every state of the embedded flow, brought about at a real service: for the screenshots, and for what must hold on all. */
import type { FrameLocator, Page } from "playwright-core";
import { openTarget, type Target } from "../documents/target.ts";
import { openFlow, serveHostPage, type Site, startSite, toldOf, until } from "./embed-stage.ts";
import {
  blueprint,
  GOOD,
  ledgerStrategy,
  portalStrategy,
  setUpEmbedded,
  submitFrame,
  type Embedded,
  type EmbeddedBody,
} from "./embedded-setup.ts";
import { BROKEN_CLOCK, drawLogo, everyFieldDocument, oauthDocument } from "./hosted-states.ts";

export interface EmbeddedStage extends AsyncDisposable {
  readonly embedded: Embedded;
  readonly app: Site;
  /** Where one signs in for the Blueprint `sign-in`: sends back at once, with a code or with an error. */
  readonly target: Target;
}

/** What end users read of all of them. */
const PURPOSE = {
  en: "Acme Bookkeeping reads your invoices there each night, and changes nothing.",
  fr: "Acme Bookkeeping y lit vos factures chaque nuit et ne change rien.",
  ar: "تقرأ جهة Acme Bookkeeping فواتيرك هناك كل ليلة، ولا تغيّر شيئًا.",
};

const FRENCH: Readonly<Record<string, string>> = {
  "Email address": "Adresse e-mail",
  Password: "Mot de passe",
};

/** A strategy as its end users read it, in French too. */
function withPurpose(document: string): string {
  const strategy = JSON.parse(document) as { readonly fields: readonly { readonly label: string }[] };
  const fields = strategy.fields.map((field) => ({
    ...field,
    label: { en: field.label, fr: FRENCH[field.label] ?? field.label },
  }));
  return JSON.stringify({ ...strategy, fields, description: PURPOSE });
}

/** A strategy whose end users sign in at the target. */
const signInDocument = (target: string): string =>
  JSON.stringify({
    strategy: "strat_sign_in",
    account: "acme",
    name: "Contoso Accounting",
    description: PURPOSE,
    hosts: [target],
    login: {
      type: "oauth2",
      authorization_url: `${target}/authorize`,
      token_url: `${target}/token`,
      client_id: "latchkey",
    },
  });

/** What the target's login sends the end user back with. */
function answerSignIns(target: Target, answer: Readonly<Record<string, string>>): void {
  target.on("GET /authorize", ({ query }) => {
    const back = new URL(query.get("redirect_uri") ?? "");
    for (const [name, value] of Object.entries({ ...answer, state: query.get("state") ?? "" }))
      back.searchParams.set(name, value);
    return { status: 302, headers: { location: back.href } };
  });
  target.on("POST /token", { json: { access_token: "at", token_type: "Bearer" } });
}

/** A branded account with Blueprints of every kind of field (`every`), of a sign-in at the target (`books`), and the others. */
export async function setUpEmbeddedStates(): Promise<EmbeddedStage> {
  const [app, target] = await Promise.all([startSite("localhost"), openTarget()]);
  const embedded = await setUpEmbedded({
    origins: [app.origin],
    documents: [
      everyFieldDocument,
      oauthDocument,
      signInDocument(target.url),
      blueprint("sign-in", { books: "strat_sign_in" }),
      blueprint("every", { portal: "strat_every" }, { name: "All invoices" }),
      blueprint("books", { books: "strat_oauth" }, { name: "Bookkeeping" }),
    ],
  });
  const branding = {
    name: "Acme Bookkeeping",
    logo_url: drawLogo(),
    accent_color: "#1f6f54",
    support_url: "https://help.acme.example",
  };
  await embedded.installation.apply(
    JSON.stringify({ account: "acme", name: "Acme Inc.", allowed_origins: [app.origin], branding }),
  );
  await embedded.installation.apply(...[portalStrategy, ledgerStrategy].map(withPurpose));
  await serveHostPage(app, embedded.service.url);
  return {
    embedded,
    app,
    target,
    [Symbol.asyncDispose]: async () => {
      await embedded[Symbol.asyncDispose]();
      app.close();
      await target[Symbol.asyncDispose]();
    },
  };
}

type Show = (page: Page, stage: EmbeddedStage, language: string) => Promise<FrameLocator>;

/** The page with the flow in it; nothing is waited for. */
async function begin(
  page: Page,
  { embedded, app }: EmbeddedStage,
  keys: readonly string[],
  locale: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<{ frame: FrameLocator; session: EmbeddedBody }> {
  await page.goto(app.origin);
  const session = await embedded.create({ blueprint_keys: keys, locale, ...more });
  return { frame: await openFlow(page, session, { locale }), session };
}

async function open(...[page, ...rest]: Parameters<typeof begin>): ReturnType<typeof begin> {
  const begun = await begin(page, ...rest);
  await toldOf(page, "opened");
  return begun;
}

const send = async (frame: FrameLocator): Promise<void> =>
  await frame.locator("main form button[type=submit]").first().click();

async function fill(frame: FrameLocator): Promise<void> {
  await frame.locator("input[name=email]").fill(GOOD.email);
  await frame.locator("input[name=password]").fill(GOOD.password);
}

/** While `app_now()` is this. */
async function atTime<T>({ embedded }: EmbeddedStage, expression: string, act: () => Promise<T>): Promise<T> {
  await embedded.setClock(expression);
  try {
    return await act();
  } finally {
    await embedded.setClock();
  }
}

/** A sign-in at the target that ends so; gives the frame when it shows the form again. */
async function signInWith(
  error: string,
  ...[page, stage, language]: Parameters<Show>
): Promise<FrameLocator> {
  answerSignIns(stage.target, { error });
  const { frame } = await open(page, stage, ["sign-in"], language);
  await send(frame);
  await toldOf(page, "error");
  return frame;
}

export const EMBEDDED_STATES: Readonly<Record<string, Show>> = {
  loading: async (page, stage, language) => {
    await page.route("**/view**", () => undefined);
    const { frame } = await begin(page, stage, ["one"], language);
    await toldOf(page, "ready");
    return frame;
  },
  unreachable: async (page, stage, language) => {
    await page.route("**/view**", async (route) => await route.abort());
    const { frame } = await begin(page, stage, ["one"], language);
    await toldOf(page, "error");
    return frame;
  },
  picker: async (page, stage, language) =>
    (await open(page, stage, ["every", "two", "books"], language)).frame,
  slot: async (page, stage, language) => {
    const { frame } = await open(page, stage, ["two", "one"], language);
    await send(frame);
    await toldOf(page, "view_changed");
    return frame;
  },
  mistakes: async (page, stage, language) => {
    const { frame } = await open(page, stage, ["every"], language);
    await frame.locator("input[name=email]").fill("ada at acme");
    await send(frame);
    await toldOf(page, "field_error");
    return frame;
  },
  stale: async (page, stage, language) => {
    const { frame } = await open(page, stage, ["one"], language, { expires_in_seconds: 86_400 });
    await fill(frame);
    await atTime(stage, "statement_timestamp() + interval '13 hours'", async () => {
      await send(frame);
      await frame.getByRole("alert").waitFor();
    });
    return frame;
  },
  offline: async (page, stage, language) => {
    await page.route("**/submit**", async (route) => await route.abort());
    const { frame } = await open(page, stage, ["one"], language);
    await fill(frame);
    await send(frame);
    await toldOf(page, "error");
    return frame;
  },
  window: async (page, stage, language) => {
    const { frame } = await open(page, stage, ["books"], language);
    await send(frame);
    await toldOf(page, "view_changed");
    return frame;
  },
  blocked: async (page, stage, language) => {
    await page.addInitScript("globalThis.open = () => null");
    const { frame } = await open(page, stage, ["books"], language);
    await send(frame);
    await toldOf(page, "popup_blocked");
    return frame;
  },
  refused: async (...asked) => await signInWith("access_denied", ...asked),
  failed: async (...asked) => await signInWith("server_error", ...asked),
  done: async (page, stage, language) => {
    const { frame } = await open(page, stage, ["one"], language);
    await fill(frame);
    await send(frame);
    await toldOf(page, "completed");
    return frame;
  },
  expired: async (page, stage, language) => {
    const { frame, session } = await open(page, stage, ["one"], language);
    await fill(frame);
    await atTime(stage, `timestamptz '${session.expires_at}'`, async () => {
      await send(frame);
      await toldOf(page, "expired");
    });
    return frame;
  },
  used: async (page, stage, language) => {
    await page.goto(stage.app.origin);
    const session = await stage.embedded.create({ locale: language });
    await submitFrame(session);
    const frame = await openFlow(page, session);
    await toldOf(page, "opened");
    return frame;
  },
  limit: async (page, stage, language) => {
    const { frame, session } = await open(page, stage, ["one"], language);
    await stage.embedded.installation.database.db.query(
      "update embedded_credential_session set submits = 60 where id = $1",
      [session.id],
    );
    await send(frame);
    await toldOf(page, "error");
    return frame;
  },
  unknown: async (page, stage, language) => {
    await page.goto(stage.app.origin);
    const session = await stage.embedded.create();
    const frame = await openFlow(page, { ...session, client_token: "x".repeat(43) }, { locale: language });
    await toldOf(page, "opened");
    return frame;
  },
  problem: async (page, stage, language) => {
    await page.goto(stage.app.origin);
    const session = await stage.embedded.create();
    // The frame is there already when the service fails.
    await page.route("**/view**", async (route) => {
      await stage.embedded.setClock(BROKEN_CLOCK);
      await route.continue();
    });
    const frame = await openFlow(page, session, { locale: language });
    try {
      await toldOf(page, "opened");
    } finally {
      await stage.embedded.setClock();
    }
    return frame;
  },
};

type ShowWindow = (page: Page, stage: EmbeddedStage, language: string) => Promise<Page>;

/** The window of a sign-in that ends so, when it is back; it stays open. */
async function backWith(
  answer: Readonly<Record<string, string>>,
  ...[page, stage, language]: Parameters<ShowWindow>
): Promise<Page> {
  answerSignIns(stage.target, answer);
  await page.context().addInitScript("globalThis.close = () => undefined");
  const { frame } = await open(page, stage, ["sign-in"], language);
  const opened = page.context().waitForEvent("page");
  await send(frame);
  const window = await opened;
  await window.waitForURL("**/connect/oauth/**");
  return window;
}

/** What the window of a sign-in shows of ours. */
export const WINDOW_STATES: Readonly<Record<string, ShowWindow>> = {
  "window-opening": async (page, stage, language) => {
    await page.addInitScript("globalThis.opener = globalThis");
    const { embed_url } = await stage.embedded.create();
    await page.goto(`${embed_url}/opening?lang=${language}`);
    return page;
  },
  "window-cut-off": async (page, stage, language) => {
    await page.addInitScript("globalThis.close = () => undefined");
    const { embed_url } = await stage.embedded.create();
    await page.goto(`${embed_url}/opening?lang=${language}`);
    await until(page, "document.querySelectorAll('.until').length === 0");
    return page;
  },
  "window-done": async (...asked) => await backWith({ code: "code" }, ...asked),
  "window-refused": async (...asked) => await backWith({ error: "access_denied" }, ...asked),
  "window-failed": async (...asked) => await backWith({ error: "server_error" }, ...asked),
};
