/**
 * `npm run package` writes what is installed elsewhere: `.cache/package/latchkey`, the program as JavaScript with the dashboard, and
 * beside it the same as `latchkey-VERSION.tgz`. Images and bundles are made of the folder, `npx` takes the file. With `--bundle` also
 * `latchkey-VERSION-PLATFORM.tar.gz`, which a machine without a network can run.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { makeBundle } from "./package/bundle.ts";
import { compileProgram, copyBeside } from "./package/compile.ts";
import { packedLock, packedManifest, type LockFile, type Manifest } from "./package/manifest.ts";

const root = dirname(import.meta.dirname);
const { values } = parseArgs({
  options: {
    to: { type: "string", default: join(root, ".cache/package") },
    bundle: { type: "boolean", default: false },
  },
});
const read = <T>(file: string): T => JSON.parse(readFileSync(join(root, file), "utf8")) as T;

const folder = join(values.to, "latchkey");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const modules = await compileProgram(root, folder);
await copyBeside(root, folder);
const manifest = packedManifest(read<Manifest>("package.json"));
const lock = packedLock(read<LockFile>("package-lock.json"), manifest);
const write = (file: string, value: unknown): void =>
  writeFileSync(join(folder, file), `${JSON.stringify(value, null, 2)}\n`);
write("package.json", manifest);
write("npm-shrinkwrap.json", lock);
execFileSync("npm", ["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", values.to], {
  cwd: folder,
  stdio: ["ignore", "ignore", "inherit"],
});
console.log(`${modules} modules: ${join(values.to, `latchkey-${manifest.version}.tgz`)}`);
if (values.bundle) console.log(await makeBundle(folder, values.to, manifest.version));
