/** Every state of the embedded flow, brought about at a real service: for the screenshots, and for what must hold on all. */
import { createHash } from "node:crypto";
import type { FrameLocator, Page } from "playwright-core";
import { hostPage, openFlow, startSite, toldOf, type Site } from "./embed-stage.ts";
import { blueprint, GOOD, setUpEmbedded, type Embedded, type EmbeddedBody } from "./embedded-setup.ts";
import { drawLogo, everyFieldDocument, oauthDocument } from "./hosted-states.ts";

export interface EmbeddedStage extends AsyncDisposable {
  readonly embedded: Embedded;
  readonly app: Site;
}

/** A branded account with Blueprints of every kind of field (`every`), of a sign-in at the target (`books`), and the others. */
export async function setUpEmbeddedStates(): Promise<EmbeddedStage> {
  const app = await startSite("localhost");
  const embedded = await setUpEmbedded({
    origins: [app.origin],
    documents: [
      everyFieldDocument,
      oauthDocument,
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
  const widget = await (await fetch(`${embedded.service.url}/embed/v1/latchkey.js`)).text();
  const integrity = `sha384-${createHash("sha384").update(widget).digest("base64")}`;
  app.pages.set("/", hostPage(embedded.service.url, integrity));
  return {
    embedded,
    app,
    [Symbol.asyncDispose]: async () => {
      await embedded[Symbol.asyncDispose]();
      app.close();
    },
  };
}

type Show = (page: Page, stage: EmbeddedStage, language: string) => Promise<FrameLocator>;

async function open(
  page: Page,
  { embedded, app }: EmbeddedStage,
  keys: readonly string[],
  locale: string,
): Promise<{ frame: FrameLocator; session: EmbeddedBody }> {
  await page.goto(app.origin);
  const session = await embedded.create({ blueprint_keys: keys, locale });
  const frame = await openFlow(page, session);
  await toldOf(page, "opened");
  return { frame, session };
}

const send = async (frame: FrameLocator): Promise<void> =>
  await frame.locator("main form button[type=submit]").first().click();

async function fill(frame: FrameLocator): Promise<void> {
  await frame.locator("input[name=email]").fill(GOOD.email);
  await frame.locator("input[name=password]").fill(GOOD.password);
}

export const EMBEDDED_STATES: Readonly<Record<string, Show>> = {
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
    await stage.embedded.moveClock(`timestamptz '${session.expires_at}'`);
    await send(frame);
    await toldOf(page, "expired");
    await stage.embedded.moveClock();
    return frame;
  },
};
