import { existsSync, readdirSync } from "node:fs";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join, posix } from "node:path";

/** Folders of the program, and what is only read as text: the hosted pages send their scripts without types themselves. */
const PROGRAM = ["src", "examples", "sdk/typescript/src"] as const;
const SENT_TO_BROWSERS = "src/hosted/browser/";
/** A specifier or a path of a module, in quotation marks: relative, or by the package's imports. */
const MODULE = /(["'])((?:\.{1,2}\/|#)[^"'\n]*)\.ts\1/g;

/**
 * Copies the program as JavaScript: Node strips types from no file below `node_modules`, and there an installed package is. Types
 * become spaces, so lines and columns in stack traces remain those of the sources.
 */
export async function compileProgram(root: string, target: string): Promise<number> {
  const files = PROGRAM.flatMap((folder) => listFiles(root, folder));
  const modules = new Set(files.filter(isModule));
  for (const file of files) {
    const made = join(target, modules.has(file) ? asScript(file) : file);
    await mkdir(dirname(made), { recursive: true });
    if (!modules.has(file) && !file.endsWith(".mjs")) await cp(join(root, file), made);
    else {
      const source = await readFile(join(root, file), "utf8");
      const text = modules.has(file) ? stripTypeScriptTypes(source) : source;
      await writeFile(made, pointToScripts(text, file, modules));
    }
  }
  return modules.size;
}

function listFiles(root: string, folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => posix.join(entry.parentPath.slice(root.length + 1), entry.name));
}

/** Operators' own node types stay what people write: an example of TypeScript. */
const isModule = (file: string): boolean =>
  file.endsWith(".ts") && !file.startsWith(SENT_TO_BROWSERS) && !file.startsWith("examples/nodes/");

const asScript = (file: string): string => file.replace(/\.ts$/, ".js");

/** Specifiers of modules of the program get the new ending; other strings that look like one stay. */
function pointToScripts(text: string, file: string, modules: ReadonlySet<string>): string {
  return text.replaceAll(MODULE, (whole, mark: string, path: string) =>
    modules.has(`${resolveModule(path, file)}.ts`) ? `${mark}${path}.js${mark}` : whole,
  );
}

function resolveModule(path: string, file: string): string {
  if (!path.startsWith("#")) return posix.join(posix.dirname(file), path);
  return path.startsWith("#examples/") ? path.slice(1) : posix.join("src", path.slice(1));
}

/** What the program reads besides its own modules, and what says who may use it. */
const BESIDE = ["latchkey", "openapi", "ui/built", "ui/icon.svg", "LICENSE", "README.md", "CHANGELOG.md"];

export async function copyBeside(root: string, target: string): Promise<void> {
  for (const path of BESIDE) {
    if (!existsSync(join(root, path)))
      throw new Error(`${path} is missing. The dashboard is built by: npm run build:ui`);
    await cp(join(root, path), join(target, path), { recursive: true });
  }
}
