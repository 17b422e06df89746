/** Every state of the hosted pages, brought about at a real service: for the screenshots, and for what must hold on all of them. */
import { deflateSync, crc32 } from "node:zlib";
import type { Page } from "playwright-core";
import { GOOD, RETURN_ORIGIN, setUpHosted, type Hosted } from "./hosted-setup.ts";
import { PASSWORD, startLoginTarget, STRATEGY, triedDocuments } from "./tried-login-stage.ts";

/** A square with a ring in it, as a PNG: what stands for a customer's logo. */
export function drawLogo(side = 96, color: readonly number[] = [31, 111, 84]): string {
  const rows = Array.from({ length: side }, (_row, y) => {
    const pixels = Array.from({ length: side }, (_pixel, x) => {
      const distance = Math.hypot(x - side / 2 + 0.5, y - side / 2 + 0.5) / side;
      return distance > 0.22 && distance < 0.42 ? [...color, 255] : [255, 255, 255, 0];
    });
    return [0, ...pixels.flat()];
  });
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    check.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, check]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set([8, 6, 0, 0, 0], 8);
  const png = Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(Buffer.from(rows.flat()))),
    chunk("IEND", Buffer.alloc(0)),
  ]);
  return `data:image/png;base64,${png.toString("base64")}`;
}

export const brandedAcme = JSON.stringify({
  account: "acme",
  name: "Acme Inc.",
  allowed_origins: [RETURN_ORIGIN],
  branding: {
    name: "Acme Bookkeeping",
    logo_url: drawLogo(),
    accent_color: "#1f6f54",
    support_url: "https://help.acme.example",
  },
});

/** A strategy with a field of every type, all that a field can have, and translations. */
export const everyFieldDocument = JSON.stringify({
  strategy: "strat_every",
  account: "acme",
  name: "Northwind Supplier Portal",
  description: {
    en: "Acme Bookkeeping reads your invoices there each night, and changes nothing.",
    de: "Acme Bookkeeping liest dort jede Nacht Ihre Rechnungen und ändert nichts.",
    ar: "تقرأ جهة Acme Bookkeeping فواتيرك هناك كل ليلة، ولا تغيّر شيئًا.",
  },
  hosts: ["https://portal.northwind.example", "https://login.northwind.example"],
  fields: [
    {
      key: "email",
      label: { en: "Email address", de: "E-Mail-Adresse", ar: "البريد الإلكتروني" },
      type: "email",
      placeholder: "name@company.example",
      autocomplete: "username",
    },
    {
      key: "password",
      label: { en: "Password", de: "Passwort", ar: "كلمة المرور" },
      type: "password",
      help: {
        en: "The one that you sign in to the portal with.",
        de: "Das, mit dem Sie sich am Portal anmelden.",
        ar: "كلمة المرور التي تدخل بها إلى البوابة.",
      },
    },
    {
      key: "totp",
      label: { en: "Authenticator key", de: "Authenticator-Schlüssel", ar: "مفتاح تطبيق المصادقة" },
      type: "totp_secret",
      required: false,
    },
    {
      key: "shop",
      label: { en: "Shop address", de: "Adresse des Shops", ar: "عنوان المتجر" },
      type: "url",
      placeholder: "https://shop.example",
      required: false,
    },
    {
      key: "region",
      label: { en: "Region", de: "Region", ar: "المنطقة" },
      type: "select",
      options: ["Europe", { value: "us", label: { en: "United States", de: "Vereinigte Staaten" } }],
    },
    { key: "notes", label: { en: "Notes", de: "Notizen", ar: "ملاحظات" }, type: "textarea", required: false },
    {
      key: "phrase",
      label: { en: "Recovery phrase", de: "Wiederherstellungsphrase", ar: "عبارة الاسترداد" },
      help: {
        en: "The portal asks for it when it does not know a device, as with the first sign-in for you.",
        de: "Das Portal fragt danach, wenn es ein Gerät nicht kennt, so bei der ersten Anmeldung für Sie.",
        ar: "تطلبها البوابة عندما لا تعرف الجهاز، كما في أول تسجيل دخول نيابةً عنك.",
      },
      type: "textarea",
      secret: true,
      required: false,
    },
    {
      key: "extra",
      label: { en: "Headers of your gateway", de: "Header Ihres Gateways", ar: "ترويسات بوابتك" },
      type: "headers",
      required: false,
    },
    {
      key: "certificate",
      label: { en: "Client certificate", de: "Client-Zertifikat", ar: "شهادة العميل" },
      type: "file",
      required: false,
    },
    {
      key: "consent",
      label: {
        en: "I may connect this account",
        de: "Ich darf dieses Konto verbinden",
        ar: "يحق لي ربط هذا الحساب",
      },
      type: "checkbox",
    },
  ],
  login: { type: "none" },
});

/** An authorization server that is nowhere: the page before it is shown, and the way back from it. */
export const oauthDocument = JSON.stringify({
  strategy: "strat_oauth",
  account: "acme",
  name: "Contoso Accounting",
  description: {
    en: "Acme Bookkeeping reads your invoices there each night.",
    de: "Acme Bookkeeping liest dort jede Nacht Ihre Rechnungen.",
    ar: "تقرأ جهة Acme Bookkeeping فواتيرك هناك كل ليلة.",
  },
  hosts: ["https://api.contoso.example"],
  login: {
    type: "oauth2",
    client_id: "latchkey",
    authorization_url: "https://login.contoso.example/authorize",
    token_url: "https://login.contoso.example/token",
    scopes: ["invoices.read"],
  },
});

/** A service at which every state can be brought about. */
export async function setUpStates(): Promise<Hosted> {
  const target = await startLoginTarget();
  const hosted = await setUpHosted(everyFieldDocument, oauthDocument, ...triedDocuments(target.origin));
  await hosted.installation.apply(brandedAcme);
  return {
    ...hosted,
    [Symbol.asyncDispose]: async () => {
      target.release();
      await hosted[Symbol.asyncDispose]();
      target.close();
    },
  };
}

type Show = (page: Page, hosted: Hosted, language: string) => Promise<void>;

const open = async (page: Page, url: string, language: string): Promise<void> => {
  await page.goto(`${url}${url.includes("?") ? "&" : "?"}lang=${language}`);
};

/** With script, the form is sent once the service has shown that it can be reached. */
export const submit = async (page: Page): Promise<void> => {
  const next = page.waitForEvent("framenavigated");
  await page.locator("main button[type=submit]").click();
  await next;
  await page.waitForLoadState("load");
};

async function openForm(
  page: Page,
  hosted: Hosted,
  language: string,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { hosted_url, expires_at } = await hosted.session(more);
  await open(page, hosted_url, language);
  return expires_at;
}

async function fillPortal(page: Page): Promise<void> {
  await page.locator("input[name=email]").fill(GOOD.email);
  await page.locator("input[name=password]").fill(GOOD.password);
}

async function tryLogin(page: Page, username: string, password: string): Promise<void> {
  await page.locator("input[name=username]").fill(username);
  await page.locator("input[name=password]").fill(password);
  await submit(page);
}

/** A time that can't be told: every request fails, as with a database that has a fault. */
export const BROKEN_CLOCK = "timestamptz 'epoch' + (1 / 0) * interval '1 second'";
const BODY_BYTES = 70_000;
/** The end user stays on the page, and may go back. */
const WAY_BACK = { cancel_url: `${RETURN_ORIGIN}/` };

/** By name; each leaves the page in its state. */
export const HOSTED_STATES: Readonly<Record<string, Show>> = {
  form: async (page, hosted, language) => {
    const wayBack = { return_url: `${RETURN_ORIGIN}/back`, cancel_url: `${RETURN_ORIGIN}/` };
    await openForm(page, hosted, language, wayBack);
  },
  fields: async (page, hosted, language) => {
    await openForm(page, hosted, language, { strategy_id: "strat_every", ...WAY_BACK });
  },
  "fields-open": async (page, hosted, language) => {
    await openForm(page, hosted, language, { strategy_id: "strat_every", ...WAY_BACK });
    await page.locator("form > details.more > summary").click();
  },
  errors: async (page, hosted, language) => {
    await openForm(page, hosted, language, { strategy_id: "strat_every" });
    await page.locator("input[name=email]").fill("ada at acme");
    await page.locator("input[name=totp]").fill("123 456");
    await page.locator("form > details.more > summary").click();
    await page.locator("input[name='extra.1.name']").fill("X-Api-Key");
    await submit(page);
    await page.getByRole("alert").waitFor();
  },
  oauth: async (page, hosted, language) => {
    await openForm(page, hosted, language, {
      strategy_id: "strat_oauth",
      return_url: `${RETURN_ORIGIN}/back`,
      ...WAY_BACK,
    });
  },
  /** In a second browser: the first one keeps a cookie. */
  elsewhere: async (page, hosted, language) => {
    const { hosted_url } = await hosted.session(WAY_BACK);
    await open(page, hosted_url, language);
    await page.context().clearCookies();
    await open(page, hosted_url, language);
  },
  denied: async (page, hosted, language) => {
    const { hosted_url } = await hosted.session({ strategy_id: "strat_oauth", ...WAY_BACK });
    await open(page, `${hosted_url}?again=refused`, language);
  },
  failed: async (page, hosted, language) => {
    const { hosted_url } = await hosted.session({ strategy_id: "strat_oauth", ...WAY_BACK });
    await open(page, `${hosted_url}?again=failed`, language);
  },
  returned: async (page, hosted, language) => {
    // Back a second time, in the browser that it was begun in.
    await openForm(page, hosted, language, { strategy_id: "strat_oauth", ...WAY_BACK });
    const form = { _csrf: await page.locator("[name=_csrf]").inputValue() };
    const sent = await page.request.post(page.url(), { form, maxRedirects: 0 });
    const left = new URL(sent.headers()["location"] ?? "");
    await hosted.installation.database.db.query("update oauth_attempt set used_at = app_now()");
    const back = `${hosted.service.url}/connect/oauth/acme/strat_oauth?code=y`;
    await open(page, `${back}&state=${left.searchParams.get("state") ?? ""}`, language);
  },
  forbidden: async (page, hosted, language) => {
    await openForm(page, hosted, language, WAY_BACK);
    await page.evaluate("document.querySelector('[name=_csrf]').value = 'x'");
    await submit(page);
  },
  "too-large": async (page, hosted, language) => {
    await openForm(page, hosted, language, WAY_BACK);
    await page.locator("input[name=email]").fill("x".repeat(BODY_BYTES));
    await submit(page);
  },
  problem: async (page, hosted, language) => {
    await openForm(page, hosted, language, WAY_BACK);
    await fillPortal(page);
    const { db } = hosted.installation.database;
    // What it is saved in is away.
    await db.query("alter table credential rename to credential_away");
    try {
      await submit(page);
    } finally {
      await db.query("alter table credential_away rename to credential");
    }
  },
  stale: async (page, hosted, language) => {
    await openForm(page, hosted, language, WAY_BACK);
    await fillPortal(page);
    await hosted.setClock("statement_timestamp() + interval '13 hours'");
    await submit(page);
    await hosted.setClock();
  },
  checking: async (page, hosted, language) => {
    await openForm(page, hosted, language, { strategy_id: STRATEGY, ...WAY_BACK });
    // The page asks for the outcome as soon as it is shown, and would be replaced in time.
    await page.route("**/check*", async (route) => await route.abort("aborted"));
    await tryLogin(page, "slow", PASSWORD);
  },
  rejected: async (page, hosted, language) => {
    await openForm(page, hosted, language, { strategy_id: STRATEGY, ...WAY_BACK });
    await tryLogin(page, "ada", "not the password");
    await page.locator("main [role=alert]").waitFor();
  },
  limited: async (page, hosted, language) => {
    await openForm(page, hosted, language, { strategy_id: STRATEGY, ...WAY_BACK });
    for (let refused = 0; refused < 3; refused++) {
      await tryLogin(page, "grace", "not the password");
      await page.locator("form.check").waitFor({ state: "detached" });
    }
  },
  success: async (page, hosted, language) => {
    await openForm(page, hosted, language, WAY_BACK);
    await fillPortal(page);
    await submit(page);
  },
  accepted: async (page, hosted, language) => {
    await openForm(page, hosted, language, { strategy_id: STRATEGY, ...WAY_BACK });
    await tryLogin(page, "ada", PASSWORD);
    await page.locator("form.check").waitFor({ state: "detached" });
  },
  used: async (page, hosted, language) => {
    await HOSTED_STATES["success"]?.(page, hosted, language);
    await page.goto(page.url());
  },
  expired: async (page, hosted, language) => {
    const expiresAt = await openForm(page, hosted, language, WAY_BACK);
    await fillPortal(page);
    await hosted.setClock(`timestamptz '${expiresAt}'`);
    await submit(page);
    await hosted.setClock();
  },
  unknown: async (page, hosted, language) => {
    await open(page, `${hosted.service.url}/connect/${"x".repeat(43)}`, language);
  },
};
