import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { hostedHeaders } from "#hosted/pages/headers.ts";

suite("headers of hosted pages", () => {
  const COMMON = {
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Strict-Transport-Security": "max-age=63072000",
    "X-Robots-Tag": "noindex",
  };
  const policy = (script: string) =>
    `default-src 'none'; style-src 'self'; script-src ${script}; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'`;

  test("a form has no form-action: Chromium would hold a redirect's every hop to it", () => {
    const { "Permissions-Policy": features, ...rest } = hostedHeaders("form");
    assert.deepEqual(rest, {
      "Content-Security-Policy": `${policy("'self'")}; connect-src 'self'`,
      ...COMMON,
    });
    assert.match(features ?? "", /^([a-z-]+=\(\)(, )?)+$/);
  });
  test("every other page allows no form and no script at all", () => {
    const { "Permissions-Policy": _, ...rest } = hostedHeaders("page");
    assert.deepEqual(rest, {
      "Content-Security-Policy": `${policy("'none'")}; form-action 'none'`,
      ...COMMON,
    });
  });
});
