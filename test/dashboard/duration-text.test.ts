// A duration in a form is what a document would say, and means the same.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDuration } from "#domain/duration.ts";
import { durationText } from "../../ui/parts/duration-text.ts";

test("a duration is written in the largest unit that keeps it whole", () => {
  for (const text of ["7d", "36h", "90s", "10m", "1500ms", "0"])
    assert.equal(durationText(parseDuration(text) ?? Number.NaN), text);
  assert.equal(durationText(parseDuration("48h") ?? 0), "2d");
});
