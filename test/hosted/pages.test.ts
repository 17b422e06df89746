import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { load } from "cheerio";
import type { StrategyField } from "#domain/strategy.ts";
import { renderForm, type FormPage } from "#hosted/pages/form-page.ts";
import { hostedHeaders } from "#hosted/pages/headers.ts";
import * as messages from "#hosted/pages/message-pages.ts";

const field = (more: Partial<StrategyField>): StrategyField => ({
  key: "username",
  label: "Username",
  type: "text",
  required: true,
  pattern: null,
  minLength: null,
  maxLength: null,
  placeholder: null,
  help: null,
  autocomplete: null,
  options: [],
  secret: false,
  ...more,
});
const FIELDS = [
  field({ autocomplete: "username", placeholder: "amelia" }),
  field({ key: "mail", label: "Email", type: "email" }),
  field({ key: "password", label: "Password", type: "password", secret: true, minLength: 8, maxLength: 64 }),
  field({ key: "token", label: "API token", secret: true }),
  field({
    key: "totp",
    label: "Authenticator secret",
    type: "totp_secret",
    secret: true,
    required: false,
    help: "Only if your login asks for a code.",
  }),
];
const PAGE: FormPage = {
  accountName: "Acme Inc.",
  strategyName: "Northwind Supplier Portal",
  description: "Your supplier login at Northwind",
  targetHosts: ["portal.northwind.example", "login.northwind.example"],
  returnHost: "app.acme.example",
  fields: FIELDS,
  values: new Map(),
  encoding: "application/x-www-form-urlencoded",
  errors: new Map(),
  signInHost: null,
  notice: null,
  csrf: "csrf-value",
  action: "token",
};
const form = (more: Partial<FormPage> = {}) => load(String(renderForm({ ...PAGE, ...more })));
const ALL_PAGES = {
  form: String(renderForm(PAGE)),
  errors: String(renderForm({ ...PAGE, errors: new Map([["mail", "Email is required."]]) })),
  signIn: String(
    renderForm({ ...PAGE, fields: [], signInHost: "login.northwind.example", notice: "refused" }),
  ),
  signInUnknown: String(messages.renderSignInUnknown()),
  success: String(messages.renderSuccess(PAGE)),
  used: String(messages.renderUsed()),
  expired: String(messages.renderExpired()),
  unknown: String(messages.renderUnknown()),
  forbidden: String(messages.renderForbidden()),
  tooLarge: String(messages.renderTooLarge()),
  problem: String(messages.renderProblem()),
};

suite("every page", () => {
  for (const [name, page] of Object.entries(ALL_PAGES)) {
    test(`${name}: works without script, takes nothing from elsewhere, is a whole document`, () => {
      const $ = load(page);
      assert.ok(page.startsWith("<!doctype html>"));
      assert.equal($("script, iframe, img, object, embed, style, base, [style]").length, 0);
      $("*").each((_, element) => {
        const names = Object.keys("attribs" in element ? element.attribs : {});
        assert.deepEqual(
          names.filter((attribute) => attribute.startsWith("on")),
          [],
        );
      });
      assert.deepEqual(
        $("link")
          .map((_, link) => $(link).attr("href"))
          .get(),
        ["style.css"],
      );
      assert.doesNotMatch(page, /https?:/);
      assert.equal($("html").attr("lang"), "en");
      assert.equal($("main h1").length, 1);
      assert.ok($("title").text().endsWith($("h1").text()));
      const ids = $("[id]")
        .map((_, element) => $(element).attr("id"))
        .get();
      assert.equal(new Set(ids).size, ids.length);
      assert.equal($("form").length, ["form", "errors", "signIn"].includes(name) ? 1 : 0);
    });
  }
});

suite("the form", () => {
  test("says who asks, for which system, what for and where next", () => {
    const text = form()("main").text().replace(/\s+/g, " ");
    for (const said of [
      "Acme Inc. would like to connect to your Northwind Supplier Portal account",
      "Your supplier login at Northwind",
      "portal.northwind.example",
      "login.northwind.example",
      "You go back to app.acme.example",
    ]) {
      assert.ok(text.includes(said), said);
    }
    const without = form({ description: null, targetHosts: [], returnHost: null })("main").text();
    assert.match(without, /You can close this page/);
    assert.doesNotMatch(without, /Used only at|You go back to|null/);
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
    const plain = load(String(renderForm({ ...PAGE, fields: [field({})] })));
    assert.equal(plain("[name=username]").attr("autocomplete"), undefined);
  });

  test("every control has its label, help and requirement", () => {
    const $ = form();
    for (const { key, label, required } of FIELDS) {
      const input = $(`[name=${key}]`);
      assert.ok(
        $(`label[for=${input.attr("id")}]`)
          .text()
          .startsWith(label),
      );
      assert.equal(input.attr("aria-required"), required ? "true" : undefined);
      assert.equal(input.attr("aria-invalid"), undefined);
    }
    assert.match($("label[for=field-totp]").text(), /\(optional\)/);
    assert.equal($("[name=totp]").attr("aria-describedby"), "field-totp-help");
    assert.equal($("#field-totp-help").text(), "Only if your login asks for a code.");
    assert.equal($("[name=username]").attr("aria-describedby"), undefined);
    assert.equal($("[role=alert]").length, 0);
  });
});

suite("the form again, with errors", () => {
  const errors = new Map([
    ["totp", "The secret key is too short."],
    ["mail", "Email is required."],
    ["", "Please try once more."],
  ]);
  const $ = form({ errors });

  test("says so in its title and in one summary that links to the controls, in their order", () => {
    assert.equal($("title").text(), "Error: Connect Northwind Supplier Portal");
    assert.equal($("[role=alert]").length, 1);
    const items = $("[role=alert] li")
      .map((_, item) => $(item).text())
      .get();
    assert.deepEqual(items, ["Please try once more.", "Email is required.", "The secret key is too short."]);
    const links = $("[role=alert] a")
      .map((_, link) => $(link).attr("href"))
      .get();
    assert.deepEqual(links, ["#field-mail", "#field-totp"]);
    for (const link of links) assert.equal($(link).length, 1);
  });

  test("ties each message to its control", () => {
    assert.deepEqual(
      $("[aria-invalid=true]")
        .map((_, input) => $(input).attr("name"))
        .get(),
      ["mail", "totp"],
    );
    assert.equal($("[name=totp]").attr("aria-describedby"), "field-totp-help field-totp-error");
    assert.equal($("#field-totp-error").text(), "Error: The secret key is too short.");
    assert.equal($("#field-mail-error").text(), "Error: Email is required.");
  });

  test("keeps what was typed, but never a secret, whatever it is given", () => {
    const canary = "canary-4711";
    const values = new Map(FIELDS.map(({ key }) => [key, `${key}-${canary}`]));
    const careless = FIELDS.map((one) => ({ ...one, secret: one.key === "token" }));
    for (const fields of [FIELDS, careless]) {
      const page = String(renderForm({ ...PAGE, fields, values, errors }));
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
      accountName: HOSTILE,
      strategyName: HOSTILE,
      description: HOSTILE,
      targetHosts: [HOSTILE],
      returnHost: HOSTILE,
      fields: [field({ label: HOSTILE, help: HOSTILE, placeholder: HOSTILE, autocomplete: HOSTILE })],
      values: new Map([["username", HOSTILE]]),
      errors: new Map([
        ["username", HOSTILE],
        ["other", HOSTILE],
      ]),
      csrf: HOSTILE,
      action: HOSTILE,
    });
    assert.equal(hostile("script, img, textarea, [onerror]").length, 0);
    assert.equal(hostile("main").length, 1);
    const value = hostile("[name=username]").attr("value");
    assert.equal(value?.replaceAll("\ufffd", "\u0000"), HOSTILE);
    assert.equal(hostile("title").length, 1);
  });
  test("of the success page", () => {
    const $ = load(String(messages.renderSuccess({ accountName: HOSTILE, strategyName: HOSTILE })));
    assert.equal($("script, img").length, 0);
    assert.match($("main").text(), /<script>/);
  });
});

suite("headers", () => {
  const COMMON = {
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Strict-Transport-Security": "max-age=63072000",
    "X-Robots-Tag": "noindex",
  };
  const POLICY =
    "default-src 'none'; style-src 'self'; script-src 'none'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

  test("a form has no form-action: Chromium would hold a redirect's every hop to it", () => {
    const { "Permissions-Policy": features, ...rest } = hostedHeaders("form");
    assert.deepEqual(rest, { "Content-Security-Policy": POLICY, ...COMMON });
    assert.match(features ?? "", /^([a-z-]+=\(\)(, )?)+$/);
  });
  test("every other page allows no form at all", () => {
    const { "Permissions-Policy": _, ...rest } = hostedHeaders("page");
    assert.deepEqual(rest, { "Content-Security-Policy": `${POLICY}; form-action 'none'`, ...COMMON });
  });
});

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
    for (const name of classes) {
      assert.match(css, new RegExp(`\\.${name}\\b`), name);
    }
  });

  for (const scheme of ["light", "dark"] as const) {
    test(`text on its ground has a contrast of 4.5:1 or more, a control's edge 3:1 (${scheme})`, () => {
      const color = readColors(css, scheme);
      for (const ground of ["ground", "card"]) {
        for (const text of ["text", "quiet"])
          assertContrast(color(text), color(ground), 4.5, `${text} on ${ground}`);
      }
      assertContrast(color("on-accent"), color("accent"), 4.5, "button");
      assertContrast(color("on-accent"), color("accent-strong"), 4.5, "button under the pointer");
      assertContrast(color("wrong"), color("card"), 4.5, "error");
      assertContrast(color("wrong"), color("wrong-soft"), 4.5, "error in the summary");
      assertContrast(color("text"), color("wrong-soft"), 4.5, "summary");
      assertContrast(color("accent"), color("accent-soft"), 4.5, "tile");
      assertContrast(color("done"), color("done-soft"), 4.5, "sign");
      assertContrast(color("control-line"), color("card"), 3, "control");
      assertContrast(color("accent"), color("card"), 3, "focus");
    });
  }
});

function readColors(css: string, scheme: "light" | "dark"): (name: string) => string {
  const [light = "", dark = ""] = css.split("@media (prefers-color-scheme: dark)");
  const block = (scheme === "light" ? light : dark).split(":root {")[1]?.split("}")[0] ?? "";
  const colors = new Map(
    [...block.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map(([, name = "", value = ""]) => [name, value]),
  );
  return (name) => colors.get(name) ?? assert.fail(`no color ${name}`);
}

/** WCAG 2.2, 1.4.3. */
function assertContrast(a: string, b: string, least: number, what: string): void {
  const luminance = (color: string): number => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(color.slice(at, at + 2), 16) / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [darker = 0, lighter = 0] = [luminance(a), luminance(b)].toSorted((x, y) => x - y);
  const contrast = (lighter + 0.05) / (darker + 0.05);
  assert.ok(contrast >= least, `${what}: ${contrast.toFixed(2)}`);
}
