import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, createReadStream, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";

/** Of npm's Node what only serves to build native modules. */
const UNUSED_OF_NODE = ["include", "share", "CHANGELOG.md", "README.md"];
const FOR_DEVELOPERS = /\.(?:d\.[cm]?ts|map)$/;

/**
 * One file with everything for machines without a network: the program, its packages, Node, the embedded PostgreSQL, and the list of all
 * of them. Of this machine's platform, as npm chooses packages by it. Beside it the checksums of all files of the folder.
 */
export async function makeBundle(packed: string, folder: string, version: string): Promise<string> {
  const name = `latchkey-${version}-${process.platform}-${process.arch}`;
  const content = join(folder, name);
  rmSync(content, { recursive: true, force: true });
  cpSync(packed, content, { recursive: true });
  const npm = (...given: readonly string[]): string =>
    execFileSync("npm", [...given, "--loglevel=error"], {
      cwd: content,
      encoding: "utf8",
      maxBuffer: 64 * 1_048_576,
      stdio: ["ignore", "pipe", "inherit"],
    });
  npm("ci", "--ignore-scripts", "--include=optional", "--no-audit", "--no-fund");
  writeFileSync(join(content, "sbom.cdx.json"), npm("sbom", "--sbom-format=cyclonedx"));
  removeUnused(join(content, "node_modules"));
  const file = join(folder, `${name}.tar.gz`);
  execFileSync("tar", ["-czf", file, "--sort=name", "--owner=0", "--group=0", "-C", folder, name]);
  rmSync(content, { recursive: true });
  const files = [file, join(folder, `latchkey-${version}.tgz`)];
  const sums = await Promise.all(files.map(async (each) => `${await sha256(each)}  ${basename(each)}\n`));
  writeFileSync(join(folder, "SHA256SUMS"), sums.join(""));
  return file;
}

function removeUnused(modules: string): void {
  const node = join(modules, `node-${process.platform}-${process.arch}`);
  for (const name of UNUSED_OF_NODE) rmSync(join(node, name), { recursive: true, force: true });
  for (const entry of readdirSync(modules, { recursive: true, withFileTypes: true }))
    if (entry.isFile() && FOR_DEVELOPERS.test(entry.name)) rmSync(join(entry.parentPath, entry.name));
}

async function sha256(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}
