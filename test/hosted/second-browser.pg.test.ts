// A link that its receiver passes on would connect another person's login: a second browser is told.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { load } from "cheerio";
import { csrfOf, send, submit, type WireAnswer } from "./form-visitor.ts";
import { GOOD, setUpHosted, type Hosted } from "./hosted-setup.ts";

const NOTICE = /This link was opened in another browser before/;

let hosted: Hosted;
before(async () => {
  hosted = await setUpHosted();
});
after(async () => await hosted[Symbol.asyncDispose]());

/** A browser that keeps our cookie, and says where it goes as browsers do. */
class Visitor {
  cookie = "";

  async open(url: string, more: Readonly<Record<string, string>> = {}): Promise<WireAnswer> {
    const answer = await send(url, { headers: { ...this.#headers(), ...more } });
    for (const each of answer.headers["set-cookie"] ?? []) this.cookie = each.split(";", 1)[0] ?? "";
    return answer;
  }

  async submit(url: string, csrf: string, values: Readonly<Record<string, string>>): Promise<WireAnswer> {
    return await submit(url, values, { csrf, headers: this.#headers() });
  }

  #headers(): Record<string, string> {
    return { "sec-fetch-dest": "document", ...(this.cookie === "" ? {} : { cookie: this.cookie }) };
  }
}

test("a second browser is told, with who asks; the first one is not, however often it comes back", async () => {
  const { hosted_url: link, id } = await hosted.session();
  const [first, second] = [new Visitor(), new Visitor()];
  assert.doesNotMatch((await first.open(link)).text, NOTICE);
  assert.match(first.cookie, /^latchkey-browser=[0-9A-Za-z]{43}$/);
  const { text } = await second.open(link);
  assert.match(text, NOTICE);
  const note = load(text)("[role=note]").text();
  assert.match(note, /Acme Inc\. made the link for one person/);
  assert.equal(second.cookie, "", "it does not become the first");
  assert.match((await new Visitor().open(link)).text, NOTICE);
  assert.doesNotMatch((await first.open(link)).text, NOTICE);

  // Also when the form is shown again; and who has changed browsers goes on.
  const again = await second.submit(link, csrfOf(text), { ...GOOD, email: "nobody" });
  assert.equal(again.status, 422);
  assert.match(again.text, NOTICE);
  assert.equal((await second.submit(link, csrfOf(again.text), GOOD)).status, 200);
  assert.equal((await hosted.read(id)).status, "completed");
});

test("a browser keeps its name for other links, and the rows of two sessions do not tell that it is one", async () => {
  const [one, other] = [await hosted.session(), await hosted.session()];
  const visitor = new Visitor();
  await visitor.open(one.hosted_url);
  const { cookie } = visitor;
  const opened = await visitor.open(other.hosted_url);
  assert.deepEqual([opened.headers["set-cookie"], visitor.cookie], [undefined, cookie]);
  assert.match((await new Visitor().open(other.hosted_url)).text, NOTICE);
  const rows = await hosted.installation.database.db.query<{ browsers: number }>(
    "select count(distinct first_browser)::int as browsers from credential_session where id = any($1)",
    [[one.id, other.id]],
  );
  assert.equal(rows[0]?.browsers, 2);
});

test("who only looks at a link is no browser that has opened it", async () => {
  const { hosted_url: link } = await hosted.session();
  const looks: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
    ["GET", {}],
    ["HEAD", { "sec-fetch-dest": "document" }],
    ["GET", { "sec-fetch-dest": "document", "sec-purpose": "prefetch" }],
    ["GET", { "sec-fetch-dest": "document", purpose: "prefetch" }],
    ["GET", { "sec-fetch-dest": "empty" }],
  ];
  for (const [method, headers] of looks) {
    const answer = await send(link, { method, headers });
    assert.deepEqual([answer.status, answer.headers["set-cookie"]], [200, undefined]);
    assert.doesNotMatch(answer.text, NOTICE);
  }
  assert.doesNotMatch((await new Visitor().open(link)).text, NOTICE);
  assert.match((await send(link)).text, NOTICE, "one without a name is another one");
});

test("a name that is none of ours is no name", async () => {
  const { hosted_url: link } = await hosted.session();
  const visitor = new Visitor();
  visitor.cookie = "latchkey-browser=x";
  await visitor.open(link);
  assert.match(visitor.cookie, /^latchkey-browser=[0-9A-Za-z]{43}$/);
});
