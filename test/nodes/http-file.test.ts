// RFC 6266: the name of a response that is saved as a file.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileOfResponse } from "#nodes/http/http-file.ts";

const nameOf = (disposition: string | null, url = "https://x.example/download"): string | null =>
  fileOfResponse({
    status: 200,
    url,
    headers: new Map(disposition === null ? [] : [["content-disposition", disposition]]),
    body: new Uint8Array(),
    isRedirected: false,
    kept: null,
    text: () => "",
  }).filename;

test("the name is the target's, without folders; else that of the path; else none", () => {
  for (const [disposition, name] of [
    ["attachment; filename=a.csv", "a.csv"],
    ['attachment; filename="a b.csv"', "a b.csv"],
    ['attachment; filename="a \\"b\\".csv"; size=3', 'a "b".csv'],
    ["attachment; filename=\"e.csv\"; filename*=UTF-8''%C3%A9%20%E2%82%AC.csv", "é €.csv"],
    ["attachment; filename*=iso-8859-1'en'%E9.csv; filename=e.csv", "é.csv"],
    ["attachment; FileName = a.csv", "a.csv"],
    ['attachment; filename="../../etc/passwd"', "passwd"],
    ['attachment; filename="C:\\\\x\\\\a.csv"', "a.csv"],
    ['attachment; filename=""', null],
    ["inline", null],
    ["attachment; filename*=UTF-8''%", "%"],
  ] as const)
    assert.equal(nameOf(disposition), name, disposition);
  assert.equal(nameOf(null, "https://x.example/a/report%20%C3%A9.pdf?x=1"), "report é.pdf");
  assert.equal(nameOf("inline", "https://x.example/a/b.tar.gz"), "b.tar.gz");
  assert.equal(nameOf(null, "https://x.example/"), null);
  assert.equal(nameOf(null, "https://x.example/v1.2/report"), null);
});
