import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openMisused, type Misused } from "./misuse-setup.ts";
import { assertEnvelope, exchange, openConnection, waitFor, type RawAnswer } from "./raw-socket.ts";

let misused: Misused;
let head: string;

before(async () => {
  misused = await openMisused();
  head = `POST /api/v1/blueprints/echo/trigger HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${misused.key}\r\n`;
});
after(async () => await misused[Symbol.asyncDispose]());

const BOUNDARY = "latchkey-boundary";

interface PartText {
  readonly name: string;
  readonly content: string;
  readonly filename?: string;
  readonly headers?: string;
}

function multipart(parts: readonly PartText[], boundary = BOUNDARY): string {
  const texts = parts.map(({ name, content, filename, headers = "" }) => {
    const file = filename === undefined ? "" : `; filename="${filename}"`;
    return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n${headers}\r\n${content}\r\n`;
  });
  return `${texts.join("")}--${boundary}--\r\n`;
}

async function post(
  body: string,
  contentType = `multipart/form-data; boundary=${BOUNDARY}`,
): Promise<RawAnswer | undefined> {
  const bytes = Buffer.from(body, "utf8");
  const lines = `${head}Content-Type: ${contentType}\r\nContent-Length: ${bytes.length}\r\n\r\n`;
  return (
    await exchange(misused.service.url, Buffer.concat([Buffer.from(lines, "latin1"), bytes]), {
      timeoutMs: 60_000,
    })
  ).answers[0];
}

/** Every file in the object store, half-written ones too. */
function storedFiles(): readonly string[] {
  const folder = join(misused.installation.dataFolder, "objects");
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [entry.name] : [],
  );
}

async function countRuns(): Promise<number> {
  const [row] = await misused.installation.database.db.query<{ count: string }>("select count(*) from run");
  return Number(row?.count);
}

test("An upload that is cut, wherever, leaves no file and no run", async () => {
  const body = multipart([
    { name: "text_0", content: "inline" },
    { name: "text_1", content: "a".repeat(300_000), filename: "one.txt" },
    { name: "text_2", content: "b".repeat(300_000), filename: "two.txt" },
    { name: "text_3", content: "last" },
  ]);
  const [files, runs] = [storedFiles().length, await countRuns()];
  let seen = 0;
  for (let step = 0; step < 10; step++) {
    const offset = step === 9 ? body.length - 3 : Math.floor((body.length * step) / 9);
    const connection = await openConnection(misused.service.url);
    const lines = `${head}Content-Type: multipart/form-data; boundary=${BOUNDARY}\r\nContent-Length: ${body.length}\r\n\r\n`;
    connection.socket.write(lines + body.slice(0, offset));
    // Until the service is storing what it has been sent: the cut must find something to remove.
    await waitFor(() => storedFiles().length > files, offset > 100_000 ? 600 : 50);
    seen = Math.max(seen, storedFiles().length - files);
    if (step % 2 === 0) connection.socket.resetAndDestroy();
    else connection.socket.destroy();
    assert.ok(
      await waitFor(() => storedFiles().length === files, 60_000),
      `cut at ${offset}: ${storedFiles().join(", ")}`,
    );
  }
  assert.ok(seen > 0, "files were on their way when the upload was cut");
  assert.equal(await countRuns(), runs);
});

test("A body that ends too early or is no multipart is 422, and leaves nothing", async () => {
  const body = multipart([
    { name: "text_0", content: "x".repeat(1_000), filename: "a.txt" },
    { name: "text_1", content: "y" },
  ]);
  const [files, runs] = [storedFiles().length, await countRuns()];
  const bad = [
    "",
    "{}",
    "no boundary at all",
    `--${BOUNDARY}`,
    `--${BOUNDARY}\r\n`,
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="a"`,
    body.slice(0, 20),
    body.slice(0, 90),
    body.slice(0, 600),
    body.slice(0, -BOUNDARY.length - 10),
    body.slice(0, -5),
    `--${BOUNDARY}\r\nContent-Disposition: form-data\r\n\r\nno name\r\n--${BOUNDARY}--\r\n`,
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="text_0\r\n\r\nx\r\n`,
    // Parts that can't be named, between good ones.
    ...["Content-Type: text/plain\r\n", "", 'Content-Disposition: attachment; name="text_1"\r\n'].map(
      (headers) => body.replace(`--${BOUNDARY}--`, `--${BOUNDARY}\r\n${headers}\r\nx\r\n--${BOUNDARY}--`),
    ),
  ];
  for (const text of bad) assertEnvelope(await post(text), 422);
  assert.equal(storedFiles().length, files);
  assert.equal(await countRuns(), runs);
});

test("A boundary that is absent, empty or over 70 characters is 415; one of 70 is read", async () => {
  for (const parameter of [
    "",
    "; boundary=",
    '; boundary=""',
    `; boundary=${"b".repeat(71)}`,
    "; charset=utf-8",
  ]) {
    assertEnvelope(
      await post(multipart([{ name: "text_0", content: "x" }]), `multipart/form-data${parameter}`),
      415,
    );
  }
  for (const boundary of ["b".repeat(70), "b"]) {
    for (const parameter of [
      `boundary=${boundary}`,
      `boundary="${boundary}"`,
      `charset=utf-8; Boundary=${boundary}`,
    ]) {
      const answer = await post(
        multipart([{ name: "text_0", content: "x" }], boundary),
        `multipart/form-data; ${parameter}`,
      );
      assert.equal(answer?.status, 202, `${parameter}: ${answer?.text}`);
    }
  }
});

test("Over 20 files, 200 parts or 1 MiB of an inline part is 413 and leaves nothing; at the limit it is read", async () => {
  const [files, runs] = [storedFiles().length, await countRuns()];
  const many = (count: number, filename?: string): string =>
    multipart(
      Array.from({ length: count }, (_, index) => ({
        name: `p${index}`,
        content: "x",
        ...(filename === undefined ? {} : { filename }),
      })),
    );
  assertEnvelope(await post(many(21, "f.txt")), 413);
  assertEnvelope(await post(many(201)), 413);
  assertEnvelope(await post(multipart([{ name: "text_0", content: "x".repeat(1_048_577) }])), 413);
  assertEnvelope(
    await post(
      multipart(
        Array.from({ length: 6 }, (_, index) => ({ name: `text_${index}`, content: "x".repeat(1_000_000) })),
      ),
    ),
    413,
  );
  assert.equal(storedFiles().length, files);
  assert.equal(await countRuns(), runs);
  for (const body of [
    many(20, "f.txt"),
    many(200),
    multipart([{ name: "text_0", content: "x".repeat(1_048_576) }]),
  ]) {
    const answer = await post(body);
    assert.equal(answer?.status, 202, answer?.text);
  }
});

test("A part's name is limited to 1 KiB", async () => {
  for (const length of [1_025, 9_000])
    assertEnvelope(
      await post(multipart([{ name: "n".repeat(length), content: "x" }])),
      length > 8_192 ? undefined : 413,
    );
  const answer = await post(multipart([{ name: "n".repeat(1_024), content: "x" }]));
  assert.equal(answer?.status, 202, answer?.text);
});

test("A repeated part name is 422; __proto__ and its kind are names like any other", async () => {
  for (const filename of [undefined, "a.txt"]) {
    const part = { name: "text_0", content: "x", ...(filename === undefined ? {} : { filename }) };
    const answer = await post(multipart([part, part]));
    assertEnvelope(answer, 422);
    assert.match(answer?.text ?? "", /"field":"text_0"/);
  }
  const names = ["__proto__", "constructor", "toString", "hasOwnProperty", "prototype", "valueOf"];
  for (const name of names) {
    for (const filename of ["", 'f"', "../../etc/passwd", "__proto__"]) {
      const plain = await post(
        multipart([
          { name, content: "x" },
          { name: "text_0", content: "kept", filename: filename.replaceAll('"', "") },
        ]),
      );
      assert.equal(plain?.status, 202, plain?.text);
    }
    assertEnvelope(
      await post(
        multipart([
          { name, content: "x" },
          { name, content: "y" },
        ]),
      ),
      422,
    );
  }
});
