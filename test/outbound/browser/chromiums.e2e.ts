// docs/browser.md: a login and its pages, in each Chromium that is supported, by root and by an ordinary user.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { DEBIAN_CHROMIUMS, findDebianChromium, skipDebian } from "../../browser/debian-chromium.ts";
import { prepareProgram } from "./stage.ts";

const isRoot = process.getuid?.() === 0;
const ORDINARY = { uid: 65_533, gid: 65_533 };
const PROCESS = join(import.meta.dirname, "../../browser/login-process.ts");

for (const name of ["the Chromium of the tests", ...DEBIAN_CHROMIUMS] as const)
  for (const isOrdinary of [false, true])
    test(
      `${name} logs in and reads three pages, ${isOrdinary ? "started by an ordinary user" : "started by the user of the tests"}`,
      {
        skip:
          isOrdinary && !isRoot
            ? "only root can be another user"
            : name !== "the Chromium of the tests" && skipDebian,
      },
      async (t) => {
        const chromium = name === "the Chromium of the tests" ? null : await findDebianChromium(name);
        const program = await prepareProgram(t, undefined, chromium);
        const { stdout } = await promisify(execFile)(
          process.execPath,
          ["--disable-warning=ExperimentalWarning", PROCESS],
          {
            env: {
              PATH: process.env["PATH"],
              HOME: tmpdir(),
              LATCHKEY_TEST_BROWSER: JSON.stringify({ path: program, environment: {} }),
            },
            ...(isOrdinary && ORDINARY),
          },
        );
        const { rows, uids } = JSON.parse(stdout) as {
          readonly rows: readonly string[];
          readonly uids: readonly string[];
        };
        assert.deepEqual(
          rows,
          [1, 2, 3].flatMap((page) => [1, 2, 3].map((row) => `INV-${page}${row}`)),
        );
        assert.equal(uids.length, 1);
        // As root a browser has a user of its own, of a range that other tests use, too; otherwise it has ours.
        if (isRoot && !isOrdinary) assert.ok(Number(uids[0]) >= 61_184, uids[0]);
        else assert.equal(uids[0], String(isOrdinary ? ORDINARY.uid : process.getuid?.()));
      },
    );
