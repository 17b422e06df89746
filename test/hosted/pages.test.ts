import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { load } from "cheerio";
import { issue } from "#domain/form-issue.ts";
import { LANGUAGES, type Language } from "#domain/language.ts";
import type { Brand } from "#domain/branding.ts";
import { renderChecking } from "#hosted/pages/checking-page.ts";
import { renderForm, type FormPage } from "#hosted/pages/form-page.ts";
import { renderOpening, renderWindow } from "#hosted/pages/window-pages.ts";
import * as messages from "#hosted/pages/message-pages.ts";
import { TEST_VALUES } from "#domain/test-mode.ts";
import { wordingOf } from "#hosted/texts/wordings.ts";
import { BRAND, field, FIELDS, form, PAGE, shell } from "./form-pages.ts";

const SUCCESS = { account: "Acme Inc.", system: "Northwind Supplier Portal", how: "stored" } as const;
const allPages = (language: Language): Readonly<Record<string, string>> => {
  const around = shell(language);
  const pages = {
    form: renderForm(around, PAGE),
    errors: renderForm(around, { ...PAGE, errors: new Map([["mail", issue("required")]]) }),
    signIn: renderForm(around, {
      ...PAGE,
      fields: [],
      signInHost: "login.northwind.example",
      notice: "refused",
    }),
    stale: renderForm(around, { ...PAGE, notice: "stale" }),
    elsewhere: renderForm(around, { ...PAGE, isElsewhere: true }),
    signInUnknown: messages.renderSignInUnknown(around),
    success: messages.renderSuccess(around, SUCCESS),
    connected: messages.renderSuccess(around, { ...SUCCESS, how: "signed_in" }),
    accepted: messages.renderSuccess(around, { ...SUCCESS, how: "accepted" }),
    unanswered: messages.renderSuccess(around, { ...SUCCESS, how: "unanswered" }),
    rejected: renderForm(around, { ...PAGE, notice: "rejected" }),
    checking: renderChecking(
      around,
      { brand: PAGE.brand, strategyName: PAGE.strategyName, targetLogo: null },
      { action: "token/check", csrf: "csrf-value", values: new Map([["mail", "ada@acme.example"]]) },
    ),
    limited: messages.renderLimited(around, SUCCESS.system, 15 * 60_000, {}),
    used: messages.renderUsed(around),
    expired: messages.renderExpired(around),
    expiredLate: messages.renderExpired(around, { typed: [{ label: "Email", value: "ada@acme.example" }] }),
    unknown: messages.renderUnknown({ ...around, brand: null }),
    forbidden: messages.renderForbidden(around),
    signInSpent: messages.renderSignInSpent(around),
    tooLarge: messages.renderTooLarge(around, null),
    tooLargeField: messages.renderTooLarge(around, "Email"),
    tooMany: messages.renderTooMany(around, 20_000),
    problem: messages.renderProblem(around, "unknown"),
    problemNothing: messages.renderProblem(around, "nothing"),
    problemSaved: messages.renderProblem(around, "saved"),
  };
  return Object.fromEntries(Object.entries(pages).map(([name, page]) => [name, String(page)]));
};
const ALL_PAGES = allPages("en");
const FORMS = ["form", "errors", "signIn", "stale", "elsewhere", "rejected", "checking"];

suite("every page", () => {
  for (const language of LANGUAGES) {
    test(`is a whole document in ${language}, complete without script, and takes nothing from elsewhere`, () => {
      for (const [name, page] of Object.entries(allPages(language))) {
        const $ = load(page);
        assert.ok(page.startsWith("<!doctype html>"));
        assert.equal($("iframe, object, embed, style, base, [style]").length, 0, name);
        $("*").each((_, element) => {
          const names = Object.keys("attribs" in element ? element.attribs : {});
          assert.ok(!names.some((attribute) => attribute.startsWith("on")), name);
        });
        const isForm = FORMS.includes(name);
        const taken = $("link, script, img")
          .map((_, link) => $(link).attr("href") ?? $(link).attr("src"))
          .get();
        assert.equal(taken.length, (isForm ? 3 : 2) + (name === "unknown" ? 0 : 1), name);
        for (const path of taken) assert.match(path, /^\/connect\/assets\/[\w-]{16}\/[\w-]+\.(css|js|svg)$/);
        assert.match(String($("link[rel=icon]").attr("href")), /\/icon\.svg$/, name);
        assert.equal($("script").text(), "");
        assert.doesNotMatch(page.replaceAll("otpauth://", ""), /https?:|\/\//);
        assert.equal($("html").attr("lang"), language);
        assert.equal($("html").attr("dir"), language === "ar" ? "rtl" : "ltr");
        assert.equal($("main h1").length, 1);
        const bare = (text: string): string => text.replace(/[\u2068\u2069]/g, "");
        assert.ok(bare($("title").text()).endsWith(bare($("h1").text())), name);
        const ids = $("[id]")
          .map((_, element) => $(element).attr("id"))
          .get();
        assert.equal(new Set(ids).size, ids.length);
        assert.equal($("main form").length, isForm ? 1 : 0);
        assert.doesNotMatch($.text(), /\{\w+\}|\bundefined\b|\bnull\b|\bNaN\b|\[object/);
      }
    });
  }

  test("has the customer's logo for its icon, where there is one; so have the windows that a frame opens", () => {
    const logo = `${"0f".repeat(32)}.png`;
    const branded = shell("en", { brand: { ...BRAND, logo } });
    const iconOf = (page: unknown): string => String(load(String(page))("link[rel=icon]").attr("href"));
    for (const page of [renderForm(branded, PAGE), renderWindow(branded, "done", "Northwind")])
      assert.equal(iconOf(page), `/connect/logos/${logo}`);
    for (const page of [renderOpening(shell("en", { brand: null })), renderWindow(shell(), "refused", "No")])
      assert.match(iconOf(page), /^\/connect\/assets\/[\w-]{16}\/icon\.svg$/);
  });

  test("leads to every other language, by links that need no script; not where the address gives another page", () => {
    const links = load(String(renderForm(shell("de"), PAGE)))("nav.languages a");
    const languages = links.map((_, link) => link.attribs["href"]).get();
    assert.deepEqual(
      languages,
      LANGUAGES.filter((language) => language !== "de").map((language) => `?lang=${language}`),
    );
    const once = load(String(messages.renderProblem(shell("de", { isRepeatable: false }), "nothing")));
    assert.equal(once("nav.languages").length, 0);
  });
});

suite("the form", () => {
  test("says who asks, for which system, what for and where next", () => {
    const text = form()("main").text().replace(/\s+/g, " ");
    for (const said of [
      "Acme Inc. would like to connect to your Northwind Supplier Portal account",
      "Your supplier login at Northwind",
      "portal.northwind.example",
      "login.northwind.example",
      "Afterwards you go back to app.acme.example",
    ]) {
      assert.ok(text.includes(said), said);
    }
    const without = form({ description: null, targetHosts: [], returnHost: null })("main").text();
    assert.doesNotMatch(without, /Used only at|you go back to|null/);
  });

  test("says where the login may go before it is asked for, and on a page that comes again behind a fold", () => {
    const places = (page: ReturnType<typeof form>): readonly string[] =>
      page("main > *, main form button[type=submit]")
        .map((_, part) => page(part).attr("class") ?? part.tagName)
        .get();
    assert.deepEqual(places(form()), ["ask", "facts", "connect", "button", "caution", "caution"]);
    const again = form({ notice: "stale" });
    assert.deepEqual(places(again), ["summary heed", "ask", "again", "connect", "button", "caution"]);
    assert.match(
      again("details.again .facts").text(),
      /portal\.northwind\.example.*login\.northwind\.example/,
    );
    // What a forwarded link may do is said first, and once.
    const passed = form({ isElsewhere: true });
    assert.deepEqual(places(passed), ["summary heed", "ask", "facts", "connect", "button", "caution"]);
    assert.match(
      passed(".summary p").first().text(),
      /^If someone passed the link on to you, close this page/,
    );
  });

  test("is one POST whose controls are named by the fields' keys; our own begin with `_`", () => {
    const $ = form();
    assert.equal($("form").attr("method"), "post");
    assert.equal($("form").attr("action"), "token");
    assert.deepEqual(
      $("form [name]")
        .map((_, input) => $(input).attr("name"))
        .get(),
      ["_csrf", ...FIELDS.map(({ key }) => key)],
    );
    assert.equal($("[name=_csrf]").attr("type"), "hidden");
    assert.equal($("[name=_csrf]").attr("value"), "csrf-value");
    assert.equal($("form button[type=submit]").length, 1);
  });

  test("leaves the browser nothing to refuse, cut off, capitalise or spell-check", () => {
    const $ = form();
    assert.notEqual($("form").attr("novalidate"), undefined);
    assert.equal($("[maxlength], [minlength], [pattern], [required]").length, 0);
    for (const input of $("form input:not([type=hidden])").get()) {
      assert.equal($(input).attr("autocapitalize"), "none");
      assert.equal($(input).attr("spellcheck"), "false");
    }
  });

  test("types and autocomplete help password managers and keep secrets hidden", () => {
    const $ = form();
    const shown = (key: string) => [$(`[name=${key}]`).attr("type"), $(`[name=${key}]`).attr("autocomplete")];
    assert.deepEqual(shown("username"), ["text", "username"]);
    assert.deepEqual(shown("mail"), ["email", "email"]);
    assert.deepEqual(shown("password"), ["password", "current-password"]);
    assert.deepEqual(shown("token"), ["password", "off"]);
    assert.deepEqual(shown("totp"), ["password", "off"]);
    const plain = load(String(renderForm(shell(), { ...PAGE, fields: [field({})] })));
    assert.equal(plain("[name=username]").attr("autocomplete"), undefined);
  });

  test("every control has its label, help and requirement", () => {
    const $ = form();
    for (const { key, label, required } of FIELDS) {
      const input = $(`[name=${key}]`);
      assert.ok(
        $(`label[for=${input.attr("id")}]`)
          .text()
          .startsWith(String(label)),
      );
      assert.equal(input.attr("aria-required"), required ? "true" : undefined);
      assert.equal(input.attr("aria-invalid"), undefined);
    }
    assert.match($("label[for=field-totp]").text(), /\(optional\)/);
    assert.equal($("[name=totp]").attr("aria-describedby"), "field-totp-help");
    assert.equal($("#field-totp-help").text(), "Only if your login asks for a code.");
    assert.match(
      $(".totp details").text(),
      /Where do I find it\?\s+In the security settings of your account/,
    );
    const unexplained = form({ fields: [field({ key: "totp", type: "totp_secret", secret: true })] });
    assert.match(unexplained("#field-totp-help").text(), /6-digit codes from an app.* not one of the codes/);
    assert.equal($("[name=username]").attr("aria-describedby"), undefined);
    assert.equal($("[role=alert]").length, 0);
  });
});

suite("the form again, with errors", () => {
  const errors = new Map([
    ["totp", issue("totp_short")],
    ["mail", issue("required")],
    ["", issue("key_other")],
  ]);
  const SHORT =
    "The secret key is too short to be complete. Copy the key shown beside the QR code, or the whole otpauth:// link.";
  const $ = form({ errors });

  test("says so in its title and in one summary that links to the controls, in their order", () => {
    assert.equal($("title").text(), "Error: Connect Northwind Supplier Portal");
    assert.equal($("[role=alert]").length, 1);
    const items = $("[role=alert] li")
      .map((_, item) => $(item).text())
      .get();
    assert.deepEqual(items, ["This key does not belong to the certificate.", "Email is required.", SHORT]);
    const links = $("[role=alert] a")
      .map((_, link) => $(link).attr("href"))
      .get();
    assert.deepEqual(links, ["#field-mail", "#field-totp"]);
    // Before all else on the page.
    assert.ok($("main > *").first().is("[role=alert]"));
    for (const link of links) assert.equal($(link).length, 1);
  });

  test("repeats in the summary what stands at each field, however many are wrong", () => {
    const keys = FIELDS.map(({ key }) => key);
    const many = form({ errors: new Map(keys.map((key) => [key, issue("required")])) });
    const items = many("[role=alert] li").toArray();
    assert.equal(items.length, keys.length);
    const atFields = many(".field .error").toArray();
    assert.equal(atFields.length, keys.length);
    for (const [at, item] of items.entries()) {
      const [said, text] = [many(item).text(), many(atFields[at]).text().replace(/\s+/g, " ")];
      assert.ok(said.endsWith(".") && text.includes(said), `${said} in ${text}`);
    }
  });

  test("a sign-in that failed is told from one that was refused, and blames nobody", () => {
    const said = (notice: FormPage["notice"]) => form({ notice })("[role=alert]").text().replace(/\s+/g, " ");
    assert.match(said("refused"), /Northwind Supplier Portal is not connected.*cancelled or refused/);
    assert.match(said("failed"), /could not be finished.*technical problem, not a mistake of yours/);
    assert.doesNotMatch(said("failed"), /refused|cancelled/);
  });

  test("a form that was open too long says that secrets must be entered again, where it has any", () => {
    const said = (fields: typeof FIELDS) => form({ notice: "stale", fields })("[role=alert]").text();
    assert.match(said(FIELDS), /Passwords and other secret values are not filled in again/);
    assert.doesNotMatch(said(FIELDS.filter(({ key }) => key === "username")), /secret/);
  });

  test("ties each message to its control", () => {
    assert.deepEqual(
      $("[aria-invalid=true]")
        .map((_, input) => $(input).attr("name"))
        .get(),
      ["mail", "totp"],
    );
    assert.equal($("[name=totp]").attr("aria-describedby"), "field-totp-help field-totp-error");
    assert.equal($("#field-totp-error").text(), `Error: ${SHORT}`);
    assert.equal($("#field-mail-error").text(), "Error: Email is required.");
  });

  test("keeps what was typed, but never a secret, whatever it is given", () => {
    const canary = "canary-4711";
    const values = new Map(FIELDS.map(({ key }) => [key, `${key}-${canary}`]));
    const careless = FIELDS.map((one) => ({ ...one, secret: one.key === "token" }));
    for (const fields of [FIELDS, careless]) {
      const page = String(renderForm(shell(), { ...PAGE, fields, values, errors }));
      const again = load(page);
      assert.equal(again("[name=username]").attr("value"), `username-${canary}`);
      assert.equal(again("[name=mail]").attr("value"), `mail-${canary}`);
      assert.equal(page.split(canary).length - 1, 2);
    }
  });
});

suite("whatever stands in a name, a label or a value is text", () => {
  const HOSTILE = `"><script>alert(1)</script><img src=x onerror=alert(1)>'&lt;{{7*7}}\u0000</title></textarea>`;
  test("of the form", () => {
    const hostile = form({
      brand: { ...BRAND, name: HOSTILE, supportUrl: HOSTILE },
      strategyName: HOSTILE,
      description: HOSTILE,
      targetHosts: [HOSTILE],
      returnHost: HOSTILE,
      fields: [field({ label: HOSTILE, help: HOSTILE, placeholder: HOSTILE, autocomplete: HOSTILE })],
      values: new Map([["username", HOSTILE]]),
      errors: new Map([
        ["username", issue("required")],
        ["other", issue("key_other")],
      ]),
      csrf: HOSTILE,
      action: HOSTILE,
    });
    assert.equal(hostile("script:not([src]), img, textarea, [onerror]").length, 0);
    assert.equal(hostile("main").length, 1);
    const value = hostile("[name=username]").attr("value");
    assert.equal(value?.replaceAll("\ufffd", "\u0000"), HOSTILE);
    assert.equal(hostile("title").length, 1);
  });
  test("of the success page", () => {
    for (const how of ["stored", "signed_in", "accepted", "unanswered"] as const) {
      const names = { account: HOSTILE, system: HOSTILE };
      const $ = load(String(messages.renderSuccess(shell(), { ...names, how })));
      assert.equal($("script, img").length, 0);
      assert.match($("main").text(), /<script>/);
    }
  });
});

/** What script finds its places by. */
const SCRIPT_HOOKS = ["connect", "check", "sending", "rows", "totp"];

suite("the style sheet", () => {
  const css = readFileSync(new URL("../../src/hosted/pages/style.css", import.meta.url), "utf8");

  test("takes nothing from elsewhere", () => {
    assert.doesNotMatch(css, /url\(|@import|@font-face/);
  });

  test("every class on a page is styled", () => {
    const classes = new Set(
      Object.values(ALL_PAGES).flatMap((page) =>
        load(page)("[class]")
          .map((_, element) => ("attribs" in element ? (element.attribs["class"] ?? "").split(" ") : []))
          .get(),
      ),
    );
    for (const hook of ["", ...SCRIPT_HOOKS]) classes.delete(hook);
    for (const name of classes) {
      assert.match(css, new RegExp(`\\.${name}\\b`), name);
    }
  });
});

test("of many fields, those that may be left out are behind a fold, which is open where one was typed or is wrong", () => {
  const optional = ["notes", "shop", "proxy"].map((key) => field({ key, label: key, required: false }));
  const tick = field({ key: "consent", label: "I may", type: "checkbox" });
  const many = { fields: [...FIELDS.slice(0, 3), ...optional, tick] };
  const namesIn = (page: ReturnType<typeof form>, place: string): readonly string[] =>
    page(`${place} :is(input, textarea)[id]`)
      .map((_, element) => page(element).attr("name"))
      .get();
  const folded = form(many);
  assert.deepEqual(namesIn(folded, "form > details"), ["notes", "shop", "proxy"]);
  assert.deepEqual(namesIn(folded, "form"), [
    "username",
    "mail",
    "password",
    "notes",
    "shop",
    "proxy",
    "consent",
  ]);
  assert.equal(folded("form > details > summary").text(), "Optional detailsnotes, shop, and proxy");
  assert.equal(folded("form > details").attr("open"), undefined);
  assert.notEqual(
    form({ ...many, values: new Map([["shop", "x"]]) })("form > details").attr("open"),
    undefined,
  );
  const wrong = new Map([["proxy", issue("required")]]);
  assert.notEqual(form({ ...many, errors: wrong })("form > details").attr("open"), undefined);
  // A second factor is wanted by many, and a short form has all its fields.
  assert.equal(form({ fields: [...FIELDS, ...optional.slice(0, 2)] })("form > details").length, 0);
  assert.equal(form({ fields: [...FIELDS.slice(0, 2), ...optional] })("form > details").length, 0);
});

test("docs/test-mode.md: a form of test mode says so in every language, and lists every test value; no other form does", () => {
  for (const language of LANGUAGES) {
    const brand: Brand = { ...BRAND, isTest: true };
    const page = String(renderForm(shell(language, { brand }), { ...PAGE, brand }));
    const { test_mode: mode, test_note: note } = wordingOf(language).texts;
    assert.ok(page.includes(`<strong>TEST · ${mode}</strong> ${note}`), language);
    for (const value of Object.keys(TEST_VALUES)) assert.ok(page.includes(`<code>${value}</code>`), value);
  }
  assert.doesNotMatch(String(renderForm(shell(), PAGE)), /TEST|test-note|test-values|wrong_password/);
});
