import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "#domain/json.ts";
import { CANARY, startTarget } from "../outbound/targets.ts";
import { assertLoginFails, findings, logIn } from "./login-context.ts";

const PAGE = `<!doctype html><base href="/app/"><form id=search action=/search><input name=q></form>
<form id="login" method="POST" action="session?v=1">
  <input type=hidden name=_csrf value="tok&amp;1"><input type=hidden name=empty>
  <input name=username value=nobody><input type=password name=password>
  <input type=checkbox name=keep value=yes checked><input type=checkbox name=spam checked disabled>
  <input type=checkbox name=off><input type=radio name=kind value=a><input type=radio name=kind value=b checked>
  <select name=lang><option value=de>Deutsch<option value=en selected>English</select>
  <select name=first><option disabled>x<option>one<option>two</select>
  <textarea name=note>
a
b</textarea><input type=file name=upload><input name=""><input value=unnamed>
  <button type=button name=help value=1>?</button><button name=go value=in>Log in</button><button name=other>x</button>
  <fieldset disabled><input name=never value=1></fieldset>
</form><input form=login name=outside value=o>`;

const fields = { username: "{{ $credential.username }}", password: "{{ $credential.password }}" };
const steps = (submit: JsonObject, more: JsonObject = {}): JsonObject => ({
  steps: [
    { request: { url: "/start" }, follow: true, expect: { status: [200, 404] } },
    { submit, ...more },
  ],
});

test("a form is sent as a browser sends it: action, hidden inputs, defaults, the default button; the given fields filled in", async (t) => {
  const target = await startTarget(t, ({ url, method }, response) => {
    if (url === "/start") response.writeHead(302, { location: "/app/login" }).end();
    else if (method === "GET") response.setHeader("content-type", "text/html").end(PAGE);
    else response.writeHead(302, { location: "/home", "set-cookie": "sid=1; Path=/" }).end();
  });
  const config = steps(
    { form: "#login", fields: { ...fields, left_out: "{{ $credential.totp }}" }, add: { extra: "e" } },
    { expect: { status: [302], url: "/home" } },
  );
  await logIn(t, "http", config, {
    hosts: [target.origin],
    credential: { username: "zoë", password: "p&=" },
  });
  const sent = target.seen.at(-1);
  assert.equal(`${sent?.method} ${sent?.url}`, "POST /app/session?v=1");
  assert.equal(sent?.headers["content-type"], "application/x-www-form-urlencoded");
  assert.deepEqual(
    [...new URLSearchParams(sent?.body)],
    [
      ["_csrf", "tok&1"],
      ["empty", ""],
      ["keep", "yes"],
      ["kind", "b"],
      ["lang", "en"],
      ["first", "one"],
      ["note", "a\nb"],
      ["go", "in"],
      ["outside", "o"],
      ["username", "zoë"],
      ["password", "p&="],
      ["extra", "e"],
    ],
  );
});

test("a control that the form does not have, or a value that is no option, fails the login and names what there is", async (t) => {
  let page = PAGE;
  const target = await startTarget(t, ({ method }, response) =>
    response.setHeader("content-type", "text/html").end(method === "GET" ? page : "welcome"),
  );
  const attempt = (submit: JsonObject, edition?: 1) =>
    logIn(t, "http", steps({ form: "#login", ...submit }), {
      hosts: [target.origin],
      credential: { username: "dana", password: CANARY },
      edition,
    });
  const typo = { user: "{{ $credential.username }}", password: "{{ $credential.password }}" };
  await assertLoginFails(
    attempt({ fields: typo }),
    /^login step 2 \(submit #login\): the form `#login` has no control `user`; it has `_csrf`, `empty`, `username`, .*`outside`\. Values that a script of the page adds belong in `submit\.add`$/,
  );
  assert.equal(
    target.seen.some(({ method }) => method === "POST"),
    false,
    "nothing was sent",
  );
  // What was filled in may be the end user's own: only the page's side is shown.
  await assertLoginFails(
    attempt({ fields: { ...fields, lang: "{{ $credential.password }}" } }),
    /: the value is not an option of the control `lang`; it has `de`, `en`$/,
  );
  await assertLoginFails(
    attempt({ fields: { ...fields, kind: "c" } }),
    /not an option of the control `kind`; it has `a`, `b`$/,
  );
  page = `<form id=login method=post><input name=short><input name="${"n".repeat(41)}"></form>`;
  await assertLoginFails(attempt({ fields: typo }), /it has `short`, …\./);
  page = `<form id=login method=post>${Array.from({ length: 21 }, (_, index) => `<input name=n${index}>`).join("")}</form>`;
  await assertLoginFails(attempt({ fields: typo }), /it has `n0`, .*`n19`, …\./);
  page = PAGE;
  await attempt({ fields: { ...fields, kind: "a", lang: "de", help: "2", never: "3" } });
  await attempt({ fields, add: typo });
  assert.match(target.seen.at(-1)?.body ?? "", /user=dana/);
  // In force since before: it is sent as before.
  await attempt({ fields: typo }, 1);
  assert.match(target.seen.at(-1)?.body ?? "", /user=dana/);
});

test("a button that is filled in is the one that is pressed, and the page is named as browsers name it; versions in force send what they sent", async (t) => {
  const target = await startTarget(t, ({ method }, response) =>
    response.setHeader("content-type", "text/html").end(method === "GET" ? PAGE : "welcome"),
  );
  const sent = async (edition?: 1) => {
    await logIn(t, "http", steps({ form: "#login", fields: { ...fields, other: "x" } }), {
      hosts: [target.origin],
      credential: { username: "u", password: "w" },
      edition,
    });
    const { body = "", headers } = target.seen.at(-1) ?? {};
    const names = [...new URLSearchParams(body).keys()].filter((name) => ["go", "other"].includes(name));
    return [names, headers?.referer];
  };
  assert.deepEqual(await sent(), [["other"], `${target.origin}/start`]);
  assert.deepEqual(await sent(1), [["go", "other"], undefined]);
});

test("two pages: the user name on the first, the password on the next, whose hidden inputs are picked up anew", async (t) => {
  const page = (token: string, name: string) =>
    `<form method=post action=""><input type=hidden name=t value=${token}><input name=${name}></form>`;
  const target = await startTarget(t, ({ method, url, body }, response) => {
    response.setHeader("content-type", "text/html");
    if (method === "GET") response.end(url === "/password" ? page("two", "word") : page("one", "user"));
    else if (body.includes("user=")) response.writeHead(302, { location: "/password" }).end();
    else response.end(body === "t=two&word=w" && url === "/password" ? "welcome" : "no");
  });
  const config = {
    steps: [
      { request: { url: "/user" } },
      {
        submit: { form: "form", fields: { user: "{{ $credential.username }}" } },
        follow: true,
        expect: { url: "/password" },
      },
      {
        when: "$exists($credential.password)",
        submit: { form: "form", fields: { word: "{{ $credential.password }}" } },
        expect: { text: "welcome" },
      },
    ],
  };
  await logIn(t, "http", config, { hosts: [target.origin], credential: { username: "u", password: "w" } });
  assert.deepEqual(
    target.seen.map(({ method, url }) => `${method} ${url}`),
    ["GET /user", "POST /user", "GET /password", "POST /password"],
  );
});

test("a form leads nowhere but into the hosts, and what can't be sent says so", async (t) => {
  let page = "";
  const target = await startTarget(t, (_seen, response) => response.end(page));
  const trap = await startTarget(t, (_seen, response) => response.end());
  const attempt = (html: string, form = "form") => {
    page = `${html}<input name=username><input name=password>`;
    return logIn(t, "http", steps({ form, fields }), { hosts: [target.origin] });
  };
  for (const action of [`${trap.origin}/x`, "javascript:alert(1)", "//127.0.0.1:1/x", "file:///etc/passwd"])
    await assert.rejects(
      attempt(`<form method=post action="${action}">`),
      /refused|not one of the allowed hosts/,
    );
  assert.equal(trap.seen.length, 0);
  await assertLoginFails(
    attempt("<p>no form</p>"),
    /^login step 2 \(submit form\): the previous page has no form `form`; it has no form at all$/,
  );
  await assertLoginFails(attempt("<form method=post action='http://['>"), /the form's action is not a URL/);
  await assertLoginFails(
    attempt("<form method=post enctype=multipart/form-data>"),
    /sent as multipart\/form-data, which is not supported yet/,
  );
  await attempt("<form action=/get><input type=hidden name=h value=1>");
  assert.equal(target.seen.at(-1)?.url, `/get?h=1&username=dana&password=${CANARY}`);
});

test("expect.url is the address after redirects, or where one leads, and is not shown", async (t) => {
  const target = await startTarget(t, ({ url }, response) =>
    url === "/login"
      ? response.writeHead(302, { location: "/login?failed=secret-token" }).end()
      : response.end(),
  );
  const login = (step: JsonObject) =>
    logIn(t, "http", { steps: [{ request: { url: "/login" }, ...step }] }, { hosts: [target.origin] });
  await login({ expect: { status: [302], url: "failed" } });
  await login({ follow: true, expect: { url: "failed" } });
  await assertLoginFails(
    login({ expect: { status: [302], url: "/home" } }),
    /^login step 1 \(GET \/login\): expected an address with `\/home`$/,
  );
});

test("the target's no counts as a rejection only once it got something of the credential, and looked at it", async (t) => {
  const target = await startTarget(t, ({ url }, response) =>
    response.writeHead(Number(url.slice(1))).end("x"),
  );
  const rejected = async (...all: JsonObject[]) => {
    const error: unknown = await logIn(t, "http", { steps: all }, { hosts: [target.origin] }).catch(
      (reason: unknown) => reason,
    );
    return (error as { rejected?: boolean }).rejected;
  };
  const send = (status: number, more: JsonObject = {}): JsonObject => ({
    request: { method: "POST", url: `/${status}`, form: fields },
    ...more,
  });
  assert.equal(await rejected({ request: { url: "/403" } }), false);
  for (const status of [400, 401, 403, 404, 302])
    assert.equal(await rejected(send(status)), true, `${status}`);
  for (const status of [500, 503, 429, 408]) assert.equal(await rejected(send(status)), false, `${status}`);
  assert.equal(await rejected(send(200, { expect: { not_text: "x" } })), true);
  assert.equal(await rejected(send(200, { extract: { a: { css: "b" } } })), true);
  assert.equal(await rejected({ request: { url: "/200" }, extract: { a: { css: "b" } } }), false);
  assert.equal(await rejected(send(200), { request: { url: "/403" } }), true);
  const check = { steps: [send(200)], check: { request: { url: "/401" } } };
  const error: unknown = await logIn(t, "http", check, { hosts: [target.origin] }).catch(
    (reason: unknown) => reason,
  );
  assert.equal((error as { rejected?: boolean }).rejected, true);
});

test("apply wants a request or a submit, a page before it, and a selector", () => {
  const first = { request: { url: "/" } };
  assert.deepEqual(findings("http", { steps: [first, { submit: { form: "form", fields } }] }), []);
  for (const [all, says] of [
    [[{}], /^steps\.0: a step needs a `request` or a `submit`/],
    [[{ submit: { form: "form", fields } }], /^steps\.0\.submit: the first step has no previous page/],
    [
      [first, { ...first, submit: { form: "form", fields } }],
      /^steps\.1\.submit: a step can't have both a `request` and a `submit`/,
    ],
    [[first, { submit: { form: "f[", fields } }], /^steps\.1\.submit\.form: `f\[` is not a CSS selector/],
    [[first, { submit: { form: "form", feilds: {} } }], /schema/],
  ] as const)
    assert.match(findings("http", { steps: [...all] })[0] ?? "", says);
});
