/**
 * `node scripts/build-dashboard.ts HASH`: builds `ui/` into `ui/built/HASH`, compressed beside, and names it in `ui/built/current`.
 * Called by the set-up (`scripts/setup/dashboard-build.mjs`), which knows when. A half of a build is never named: the folder gets its
 * name when it is complete, and `current` is replaced in one step.
 */
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { build } from "vite";

/** A module that so many files need goes into the one that they share. */
const SHARED_MIN = 6;
/** As well as it goes takes a hundred times as long: not for what is large and loaded by few. */
const LARGE_BYTES = 200_000;
const LARGE_QUALITY = 9;
const root = join(import.meta.dirname, "../ui");
const builds = join(root, "built");
const [hash = ""] = process.argv.slice(2);
if (!/^[0-9a-f]{16,64}$/.test(hash)) throw new Error("The first argument is the hash of the sources.");

const folder = join(builds, `${hash}.${process.pid}`);
await mkdir(folder, { recursive: true });
try {
  await build({
    root,
    configFile: false,
    logLevel: "warn",
    // Relative: the service says by `<base>` where it is reached.
    base: "./",
    publicDir: false,
    html: { cspNonce: "__NONCE__" },
    oxc: { jsx: { runtime: "automatic" } },
    build: {
      outDir: folder,
      assetsInlineLimit: 0,
      target: "es2024",
      rolldownOptions: {
        output: {
          // What most pages need is one file: each costs a request, and small ones compress badly.
          codeSplitting: { groups: [{ name: "shared", minShareCount: SHARED_MIN }] },
        },
      },
      // The editor is large and loaded by those who edit.
      chunkSizeWarningLimit: 1_500,
    },
  });
  await compressAll(join(folder, "assets"));
  await publish();
} finally {
  await rm(folder, { recursive: true, force: true });
}

/** What every page loads, and what is small, as well as it goes. */
async function compressAll(assets: string): Promise<void> {
  const page = await readFile(join(folder, "index.html"), "utf8");
  await Promise.all(
    (await readdir(assets)).map(async (name) => {
      const bytes = await readFile(join(assets, name));
      const isLarge = bytes.length > LARGE_BYTES && !page.includes(name);
      const quality = isLarge ? LARGE_QUALITY : constants.BROTLI_MAX_QUALITY;
      const options = { params: { [constants.BROTLI_PARAM_QUALITY]: quality } };
      await writeFile(join(assets, `${name}.br`), await promisify(brotliCompress)(bytes, options));
      await writeFile(join(assets, `${name}.gz`), await promisify(gzip)(bytes, { level: 9 }));
    }),
  );
}

async function publish(): Promise<void> {
  const finished = join(builds, hash);
  await rm(finished, { recursive: true, force: true });
  await rename(folder, finished);
  const pointer = join(builds, `current.${process.pid}`);
  await writeFile(pointer, `${hash}\n`);
  await rename(pointer, join(builds, "current"));
  for (const name of await readdir(builds)) {
    // Of earlier sources. A service that runs has them in memory.
    if (/^[0-9a-f]+$/.test(name) && name !== hash && existsSync(join(builds, name)))
      await rm(join(builds, name), { recursive: true, force: true });
  }
}
