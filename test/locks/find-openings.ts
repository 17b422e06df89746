import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const OPENS = /\.(?:transaction|transact|transactAll)(?:<[^(]*>)?\(/;
const DECLARES =
  /^(?:export )?(?:async )?function (\w+)|^(?:export )?const (\w+) =|^ {2}(?:async )?(#?\w+)\(.*\{$/;

/** What opens a transaction in these folders of `src/`, as `file#function`: the innermost function of a file's top level, or a method. */
export function findOpenings(root: string, folders: readonly string[]): readonly string[] {
  const found = new Set<string>();
  for (const folder of folders) {
    for (const file of globSync(`src/${folder}/**/*.ts`, { cwd: root }).toSorted()) {
      let name = "";
      for (const line of readFileSync(join(root, file), "utf8").split("\n")) {
        const declared = DECLARES.exec(line);
        if (declared) name = declared[1] ?? declared[2] ?? declared[3] ?? name;
        if (OPENS.test(line) && !line.trimStart().startsWith("*")) found.add(`${file}#${name}`);
      }
    }
  }
  return [...found];
}
