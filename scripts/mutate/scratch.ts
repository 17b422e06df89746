import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A copy of the repository's files, in which one may be changed at a time. */
export interface Scratch extends Disposable {
  readonly folder: string;
  /** Writes the file, and gives the way to put it back. */
  change(file: string, text: string): Disposable;
}

/** What belongs to the repository, also what is not committed yet; packages are shared with it. */
export function openScratch(root: string): Scratch {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-mutations-"));
  const listed = execFileSync("git", ["ls-files", "-z", "-co", "--exclude-standard"], {
    cwd: root,
    maxBuffer: 2 ** 26,
  });
  for (const file of listed.toString("utf8").split("\0")) {
    if (file === "") continue;
    mkdirSync(join(folder, dirname(file)), { recursive: true });
    cpSync(join(root, file), join(folder, file), { dereference: false });
  }
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  cpSync(join(root, "ui/built"), join(folder, "ui/built"), { recursive: true });
  return {
    folder,
    change: (file, text) => {
      const path = join(folder, file);
      const before = readFileSync(path, "utf8");
      writeFileSync(path, text);
      return { [Symbol.dispose]: () => writeFileSync(path, before) };
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
