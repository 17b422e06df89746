// Servers of WebDAV that nobody here wrote, connected as the documentation says: login, list, write, and the same write once more.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { dataOf, openBench, type Bench } from "../documents/bench.ts";
import { startProgram } from "./program.ts";
import { connectApplication, connected, ITEMS, PASSWORD, skip, strategy, USER } from "./stage.ts";

let bench: Bench;
before(async () => {
  if (skip === false) bench = await openBench([]);
});
after(async () => await bench?.[Symbol.asyncDispose]());

test("lighttpd: files by WebDAV, with a digest login", { skip }, async () => {
  await using server = await startProgram({
    name: "lighttpd",
    packages: ["lighttpd", "lighttpd-mod-webdav"],
    program: "usr/sbin/lighttpd",
    configure: ({ root, folder, port }) => {
      mkdirSync(join(folder, "dav"));
      const proof = createHash("sha256").update(`${USER}:files:${PASSWORD}`).digest("hex");
      writeFileSync(join(folder, "users"), `${USER}:files:${proof}\n`);
      writeFileSync(
        join(folder, "lighttpd.conf"),
        `server.document-root = "${folder}"
server.bind = "127.0.0.1"
server.port = ${port}
server.modules = ("mod_auth", "mod_authn_file", "mod_webdav")
auth.backend = "htdigest"
auth.backend.htdigest.userfile = "${folder}/users"
auth.require = ("/" => ("method" => "digest", "realm" => "files", "require" => "valid-user", "algorithm" => "SHA-256|MD5"))
$HTTP["url"] =~ "^/dav(/|$)" {
  webdav.activate = "enable"
  webdav.sqlite-db-name = "${folder}/locks"
}
`,
      );
      return { arguments: ["-D", "-f", join(folder, "lighttpd.conf"), "-m", join(root, "usr/lib/lighttpd")] };
    },
  });
  await bench.apply(
    strategy(
      "files",
      server.url,
      `{ type: digest, username: user, password: pass, cache: 10m,
  check: { request: { method: PROPFIND, url: /dav/, headers: { Depth: "0" } }, expect: { status: [207] } } }`,
    ),
    connected(
      "files-list",
      "files",
      `- id: it
  type: http
  credential: app
  request: { method: PROPFIND, url: /dav/, headers: { Depth: "1" } }
  parse: { format: xml, rows: 'D\\:response', columns: { href: 'D\\:href', size: 'D\\:getcontentlength' } }`,
    ),
    connected(
      "files-box",
      "files",
      `- { id: made, type: http, credential: app, request: { method: MKCOL, url: /dav/box/ } }
- { id: it, type: parse, from: made, format: text }`,
    ),
    connected(
      "files-write",
      "files",
      `${ITEMS}
- id: it
  type: http
  credential: app
  for_each: rows
  request: { method: PUT, url: "/dav/box/{{ name }}", headers: { If-None-Match: "*" }, text: "{{ text }}" }
  verify:
    request: { method: PROPFIND, url: "/dav/box/{{ name }}", headers: { Depth: "0" } }
    text: "HTTP/1.1 200"
    expect: { status: [207] }`,
    ),
    connected(
      "files-move",
      "files",
      `${ITEMS}
- id: it
  type: http
  credential: app
  for_each: rows
  request: { method: MOVE, url: "/dav/box/{{ name }}", headers: { Destination: "${server.url}/dav/{{ to }}", Overwrite: F } }`,
    ),
    connected(
      "files-read",
      "files",
      `- { id: it, type: http, credential: app, request: { url: /dav/three.txt }, parse: { format: text, charset: utf-8, field: text } }`,
    ),
  );
  const run = await connectApplication(
    bench,
    "files",
    /login check \(PROPFIND \/dav\/\): expected status 207, got 401/,
  );
  assert.deepEqual((await run("files-box")).status.status, "completed");
  assert.match((await run("files-box")).detail ?? "", /MKCOL \/dav\/box\/ returned 405/);
  const items = [
    { name: "one.txt", text: "eins ä" },
    { name: "two words.txt", text: "zwei" },
  ];
  assert.deepEqual(
    dataOf(await run("files-write", items)).map(({ status }) => status),
    [201, 201],
  );
  // The target refuses to write over them, and they are there.
  assert.deepEqual(
    dataOf(await run("files-write", items)).map(({ status }) => status),
    ["found", "found"],
  );
  const moved = [{ name: "one.txt", to: "three.txt" }];
  assert.deepEqual(
    dataOf(await run("files-move", moved)).map(({ status }) => status),
    [201],
  );
  assert.match((await run("files-move", moved)).detail ?? "", /returned 404; expected 200 to 299/);
  assert.deepEqual(
    dataOf(await run("files-list"))
      .map(({ href }) => String(href))
      .toSorted((one, other) => one.localeCompare(other)),
    ["/dav/", "/dav/box/", "/dav/three.txt"],
  );
  assert.deepEqual(dataOf(await run("files-read")), [{ text: "eins ä" }]);
});

test("Radicale: a calendar by CalDAV, read as iCalendar and grouped", { skip }, async () => {
  await using server = await startProgram({
    name: "radicale",
    packages: ["radicale"],
    program: "usr/bin/python3.13",
    configure: ({ root, folder, port }) => {
      writeFileSync(join(folder, "users"), `${USER}:${PASSWORD}\n`);
      writeFileSync(
        join(folder, "config"),
        `[server]\nhosts = 127.0.0.1:${port}\n[auth]\ntype = htpasswd\nhtpasswd_filename = ${folder}/users\nhtpasswd_encryption = plain\n[storage]\nfilesystem_folder = ${folder}/data\n`,
      );
      return {
        arguments: ["-m", "radicale", "--config", join(folder, "config")],
        environment: {
          PYTHONHOME: join(root, "usr"),
          PYTHONPATH: join(root, "usr/lib/python3/dist-packages"),
          PYTHONUTF8: "1",
        },
      };
    },
  });
  await bench.apply(
    strategy(
      "calendar",
      server.url,
      `{ type: basic, username: user, password: pass, check: { request: { method: PROPFIND, url: /dana/, headers: { Depth: "0" } }, expect: { status: [207] } } }`,
    ),
    connected(
      "calendar-make",
      "calendar",
      `- id: made
  type: http
  credential: app
  request:
    method: MKCOL
    url: /dana/work/
    headers: { Content-Type: application/xml }
    text: '<create xmlns="DAV:"><set><prop><resourcetype><collection/><C:calendar xmlns:C="urn:ietf:params:xml:ns:caldav"/></resourcetype></prop></set></create>'
- { id: it, type: parse, from: made, format: text }`,
    ),
    connected(
      "calendar-write",
      "calendar",
      `${ITEMS}
- id: it
  type: http
  credential: app
  for_each: rows
  request:
    method: PUT
    url: "/dana/work/{{ uid }}.ics"
    headers: { If-None-Match: "*", Content-Type: text/calendar; charset=utf-8 }
    text: |
      BEGIN:VCALENDAR
      VERSION:2.0
      PRODID:-//acme
      BEGIN:VEVENT
      UID:{{ uid }}
      DTSTAMP:20261123T100000Z
      DTSTART:{{ start }}
      SUMMARY:{{ title }}
      END:VEVENT
      END:VCALENDAR`,
    ),
    connected(
      "calendar-list",
      "calendar",
      `- id: found
  type: http
  credential: app
  request:
    method: REPORT
    url: /dana/work/
    headers: { Depth: "1", Content-Type: application/xml }
    text: '<C:calendar-query xmlns:C="urn:ietf:params:xml:ns:caldav" xmlns="DAV:"><prop><getetag/></prop><C:filter><C:comp-filter name="VCALENDAR"/></C:filter></C:calendar-query>'
  parse: { format: xml, rows: response, within: multistatus, columns: { href: href } }
- { id: it, type: filter, from: found, where: $exists(href) }`,
    ),
    connected(
      "calendar-days",
      "calendar",
      `- { id: events, type: http, credential: app, request: { url: /dana/work/ }, parse: { format: icalendar, component: VEVENT } }
- { id: it, type: group, from: events, by: { day: "$substring(dtstart, 0, 10)" }, fields: { events: { count: true }, titles: { collect: summary } } }`,
    ),
  );
  const run = await connectApplication(
    bench,
    "calendar",
    /login check \(PROPFIND \/dana\/\): expected status 207, got 401/,
  );
  assert.equal((await run("calendar-make")).status.status, "completed");
  assert.deepEqual(dataOf(await run("calendar-list")), []);
  const items = [
    { uid: "a", start: "20261123T100000Z", title: "Übergabe" },
    { uid: "b", start: "20261124T100000Z", title: "Two" },
    { uid: "c", start: "20261123T110000Z", title: "Three" },
  ];
  assert.equal((await run("calendar-write", items)).status.status, "completed");
  assert.match(
    (await run("calendar-write", items)).detail ?? "",
    /record 0 returned 412; expected 200 to 299/,
  );
  assert.deepEqual(
    dataOf(await run("calendar-list"))
      .map(({ href }) => String(href))
      .toSorted((one, other) => one.localeCompare(other)),
    ["/dana/work/a.ics", "/dana/work/b.ics", "/dana/work/c.ics"],
  );
  const days = dataOf(await run("calendar-days")).toSorted((one, other) => one.day.localeCompare(other.day));
  assert.deepEqual(
    days.map(({ day, events, titles }) => [day, events, titles.toSorted()]),
    [
      ["2026-11-23", 2, ["Three", "Übergabe"]],
      ["2026-11-24", 1, ["Two"]],
    ],
  );
});
