/** What a customer and an operator decide about the pages: branding and languages, over real HTTP; and what a page weighs. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { load } from "cheerio";
import { acmeDocument, GOOD, RETURN_ORIGIN, type Hosted } from "./hosted-setup.ts";
import { BROKEN_CLOCK, brandedAcme, drawLogo, setUpStates } from "./hosted-states.ts";
import { csrfOf, send, submit } from "./form-visitor.ts";
import { PASSWORD, STRATEGY } from "./tried-login-stage.ts";

let hosted: Hosted;
before(async () => {
  hosted = await setUpStates();
});
after(async () => await hosted?.[Symbol.asyncDispose]());

const pageOf = async (more: Readonly<Record<string, string>> = {}, headers: Record<string, string> = {}) => {
  const { hosted_url } = await hosted.session(more);
  return { hosted_url, $: load((await send(hosted_url, { headers })).text) };
};

test("the form has the customer's name, picture, colour and help, all of it from our own address", async () => {
  const { hosted_url, $ } = await pageOf();
  assert.match($("main").text(), /Acme Bookkeeping\s+would like to connect/);
  assert.doesNotMatch($("body").text(), /Acme Inc\./);
  const help = $(".foot a");
  assert.equal(help.attr("href"), "https://help.acme.example");
  assert.equal(help.attr("rel"), "noopener noreferrer");
  const logo = await send(hosted_url, { path: String($(".tile img").attr("src")) });
  assert.equal(logo.status, 200);
  assert.equal(logo.headers["content-type"], "image/png");
  assert.equal(logo.headers["content-security-policy"], "default-src 'none'; sandbox");
  assert.equal(logo.headers["cache-control"], "public, max-age=31536000, immutable");
  assert.equal(
    Number(logo.headers["content-length"]),
    Buffer.from(drawLogo().split(",")[1] ?? "", "base64").length,
  );
  assert.equal($("link[rel=icon]").attr("href"), $(".tile img").attr("src"), "and in the browser's tab");
  const accent = await send(hosted_url, { path: String($("link[rel=stylesheet]").last().attr("href")) });
  assert.match(accent.text, /--fill:#1f6f54/);
  // Pages that may be anybody's show nobody's.
  const unknown = load((await send(`${hosted.service.url}/connect/${"x".repeat(43)}`)).text);
  assert.equal(unknown("img").length + unknown("a[href^=http]").length, 0);
  assert.match(String(unknown("link[rel=icon]").attr("href")), /\/icon\.svg$/);
});

test("a picture that is no account's any more, or never was, is unknown; branding can be taken back", async () => {
  const { hosted_url, $ } = await pageOf();
  const path = String($(".tile img").attr("src"));
  for (const other of [path.replace(/[0-9a-f]/, "g"), path.replace(/\.png$/, ".svg"), `${path}/x`])
    assert.equal((await send(hosted_url, { path: other })).status, 404);
  try {
    await hosted.installation.apply(acmeDocument());
    const plain = load((await send(hosted_url)).text);
    assert.equal(plain("img").length, 0);
    assert.match(String(plain("link[rel=icon]").attr("href")), /\/icon\.svg$/);
    assert.match(plain("main").text(), /Acme Inc\./);
    assert.equal((await send(hosted_url, { path })).status, 404);
  } finally {
    await hosted.installation.apply(brandedAcme);
  }
  assert.equal((await send(hosted_url, { path })).status, 200);
});

test("a page is in the browser's language, or in the one that was chosen on it, and so is what follows", async () => {
  const { hosted_url, $ } = await pageOf({}, { "accept-language": "de-AT,de;q=0.9,en;q=0.8" });
  assert.equal($("html").attr("lang"), "de");
  assert.match($("button[type=submit]").text(), /Verbinden/);
  // The link on the page.
  const href = String($("nav a[lang=fr]").attr("href"));
  const address = new URL(href, hosted_url).href;
  const french = await send(address, { headers: { "accept-language": "de" } });
  const page = load(french.text);
  assert.equal(page("html").attr("lang"), "fr");
  assert.equal(french.headers["set-cookie"], undefined);
  // The form is sent to an address that still says so: its mistakes and its success are in French too.
  const action = new URL(String(page("form").attr("action")), hosted_url).href;
  const wrong = await submit(action, { email: "ada", password: "short" }, { csrf: csrfOf(french.text) });
  const said = load(wrong.text)("[role=alert]").text();
  assert.match(said, /indiquez une adresse e-mail/);
  assert.match(said, /il faut au moins 12 caractères/);
  const done = await submit(action, GOOD, { csrf: csrfOf(wrong.text) });
  assert.match(load(done.text)("h1").text(), /Vos identifiants sont enregistrés/);
  assert.match((await send(address)).text, /Ce lien a déjà été utilisé/);
});

test("a strategy's own texts are in the page's language where it has it, in errors too", async () => {
  const { hosted_url } = await pageOf({ strategy_id: "strat_every" });
  const german = load((await send(`${hosted_url}?lang=de`)).text);
  assert.match(german("label[for=field-email]").text(), /^E-Mail-Adresse/);
  assert.match(german("#field-password-help").text(), /Das, mit dem Sie sich/);
  assert.match(german("main").text(), /liest dort jede Nacht/);
  assert.match(german("option[value=us]").text(), /Vereinigte Staaten/);
  // What has no German is in English.
  const dutch = load((await send(`${hosted_url}?lang=nl`)).text);
  assert.match(dutch("label[for=field-email]").text(), /^Email address/);
  const form = new FormData();
  form.set("_csrf", csrfOf(german.html()));
  const { headers, body } = new Response(form) as unknown as { headers: Headers; body: ReadableStream };
  const wrong = await send(`${hosted_url}?lang=de`, {
    method: "POST",
    headers: { "content-type": headers.get("content-type") ?? "" },
    body: Buffer.from(await new Response(body).arrayBuffer()),
  });
  const said = load(wrong.text);
  assert.match(said("#field-email-error").text(), /E-Mail-Adresse: Diese Angabe fehlt\./);
  assert.match(said("[role=alert] a[href='#field-email']").text(), /^E-Mail-Adresse: Diese Angabe fehlt\.$/);
});

test("a strategy's logo is shown beside the customer's, from our own address, as it was in the session's version", async () => {
  const document = (logo: object) =>
    JSON.stringify({
      strategy: "strat_logo",
      account: "acme",
      name: "Northwind",
      fields: [{ key: "token", type: "password" }],
      login: { type: "none" },
      ...logo,
    });
  await hosted.installation.apply(document({ logo_url: drawLogo(48) }));
  const { hosted_url, $ } = await pageOf({ strategy_id: "strat_logo" });
  const path = String($(".tile img").last().attr("src"));
  assert.match(path, /^\/connect\/logos\/acme\/strat_logo\/1\/[0-9a-f]{64}\.png$/);
  await hosted.installation.apply(document({}));
  const logo = await send(hosted_url, { path });
  assert.deepEqual([logo.status, logo.headers["content-type"]], [200, "image/png"]);
  assert.equal(logo.headers["content-security-policy"], "default-src 'none'; sandbox");
  // Neither another version, nor another image, nor anything that is no version.
  const others = [
    path.replace("/1/", "/2/"),
    path.replace(/[0-9a-f]{64}/, "0".repeat(64)),
    path.replace("/1/", "/x/"),
  ];
  for (const other of [...others, path.replace("/acme/", "/other/"), path.replace("strat_logo", "strat_x")])
    assert.equal((await send(hosted_url, { path: other })).status, 404, other);
  const { $: later } = await pageOf({ strategy_id: "strat_logo" });
  assert.equal(later(".tile img").length, 1, "the customer's alone");
});

test("every end of a session has the customer's name, and the way back to the page that it came from", async () => {
  const back = `${RETURN_ORIGIN}/back`;
  /** `first`: where its button leads. */
  const endsOf = async (status: number, answer: { status: number; text: string }, first = back) => {
    assert.equal(answer.status, status);
    const $ = load(answer.text);
    assert.match($("main .pair").text(), /Acme Bookkeeping/, $("h1").text());
    assert.equal($("main a.button").attr("href"), first, $("h1").text());
    assert.equal($("main a").last().attr("href"), back, $("h1").text());
  };
  const { hosted_url } = await hosted.session({ return_url: back });
  // What asks to open the link again has a button that does.
  const link = new URL(hosted_url).pathname;
  await endsOf(403, await submit(hosted_url, GOOD, { csrf: "x" }), link);
  await endsOf(403, await submit(`${hosted_url}?lang=de`, GOOD, { csrf: "x" }), `${link}?lang=de`);
  await endsOf(413, await submit(hosted_url, { ...GOOD, email: "x".repeat(70_000) }), link);
  const json = { method: "POST", headers: { "content-type": "text/plain" }, body: "x" } as const;
  await endsOf(415, await send(hosted_url, json), link);
  assert.equal((await submit(hosted_url, GOOD)).status, 303);
  await endsOf(410, await send(hosted_url));
  const stays = await hosted.session({ cancel_url: back });
  await endsOf(200, await submit(stays.hosted_url, GOOD));
  const late = await hosted.session({ cancel_url: back });
  await hosted.setClock(`timestamptz '${late.expires_at}'`);
  try {
    await endsOf(410, await send(late.hosted_url));
  } finally {
    await hosted.setClock();
  }
});

test("a fault says whether the login was saved, as far as it is known", async () => {
  const { db } = hosted.installation.database;
  const saidOf = async (strategy_id: string, values: Record<string, string>): Promise<string> => {
    const { hosted_url } = await hosted.session({ strategy_id });
    const csrf = csrfOf((await send(hosted_url)).text);
    await db.query("alter table credential rename to credential_away");
    try {
      const answer = await submit(hosted_url, values, { csrf });
      assert.equal(answer.status, 500);
      return load(answer.text)("main").text();
    } finally {
      await db.query("alter table credential_away rename to credential");
    }
  };
  // The session is still pending: the submit that would have completed it has failed.
  assert.match(await saidOf("strat_portal", GOOD), /Acme Bookkeeping.*Nothing was saved\./s);
  // One that is tried first may be on its way.
  const tried = await saidOf(STRATEGY, { username: "ada", password: PASSWORD });
  assert.match(tried, /If the link then says that it has already been used, your login was saved/);
  // Nothing had been begun.
  const { hosted_url } = await hosted.session();
  await hosted.setClock(BROKEN_CLOCK);
  try {
    const answer = await submit(hosted_url, GOOD, { csrf: "x" });
    assert.match(load(answer.text)("main").text(), /Nothing was saved\./);
  } finally {
    await hosted.setClock();
  }
});

const BYTES_MAX = 30_720;

for (const strategy of ["strat_portal", "strat_every"]) {
  test(`a hosted page weighs at most 30 KB in all, as sent to a browser that unpacks nothing (${strategy})`, async () => {
    const { hosted_url } = await hosted.session({ strategy_id: strategy });
    const { text, headers } = await send(hosted_url);
    const $ = load(text);
    const names = $("link[rel=stylesheet], script[src]")
      .map((_, element) => element.attribs["href"] ?? element.attribs["src"])
      .get();
    assert.equal(names.length, 3);
    const sizes = [Buffer.byteLength(text)];
    assert.equal(Number(headers["content-length"]), sizes[0]);
    for (const path of names) sizes.push(Buffer.byteLength((await send(hosted_url, { path })).text));
    const total = sizes.reduce((sum, size) => sum + size, 0);
    assert.ok(total <= BYTES_MAX, `${strategy}: ${sizes.join(" + ")} = ${total}`);
    // The decoder of QR codes is named by the script alone, and loaded when a picture is given.
    assert.doesNotMatch(text, /qr-decode/);
  });
}
