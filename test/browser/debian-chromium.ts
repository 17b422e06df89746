import { existsSync, mkdirSync, readdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { unpackDebian, whyNoDebian } from "../debian-packages.ts";
import type { Program } from "../hosted/chromium.ts";

/** Debian's packages with a Chromium. Servers have the first one. */
export const DEBIAN_CHROMIUMS = ["chromium-headless-shell", "chromium"] as const;
export type DebianChromium = (typeof DEBIAN_CHROMIUMS)[number];

/** Why they can't be fetched here; false: they can. */
export const skipDebian = whyNoDebian() ?? false;

/** Of the machine: mixed with those of another build, they don't start. */
const C_LIBRARY =
  /^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|nsl|nss_.*|BrokenLocale|thread_db|mvec)\.so.*)$/;

/** The Chromium of this machine's release of Debian, unpacked and not installed, with the libraries that it needs. */
export async function findDebianChromium(name: DebianChromium): Promise<Program> {
  const root = await unpackDebian({
    name: `debian-${name}`,
    what: `Debian's ${name}`,
    from: [{ suite: "own", packages: [name], withDependencies: true }],
    instead: "Is a Debian mirror reachable?",
  });
  return {
    path: join(root, "usr/lib/chromium", name),
    environment: { LD_LIBRARY_PATH: linkLibraries(root), FONTCONFIG_PATH: join(root, "etc/fonts") },
    remove: () => undefined,
  };
}

/** A folder with links to all libraries but those of the C library. */
function linkLibraries(root: string): string {
  const links = join(root, "libraries");
  if (existsSync(links)) return links;
  const made = `${links}-${process.pid}`;
  mkdirSync(made);
  // A release before the merge of `/lib` and `/usr/lib` has them in two places; one package has them in a folder of its own.
  const folders = ["lib", "usr/lib"].flatMap((each) =>
    readdirSync(join(root, each))
      .filter((triple) => triple.endsWith("-linux-gnu"))
      .flatMap((triple) => [join(root, each, triple), join(root, each, triple, "pulseaudio")]),
  );
  for (const folder of folders.filter((each) => existsSync(each)))
    for (const file of readdirSync(folder))
      if (file.includes(".so") && !C_LIBRARY.test(file) && !existsSync(join(made, file)))
        symlinkSync(join(folder, file), join(made, file));
  renameSync(made, links);
  return links;
}
