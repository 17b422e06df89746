import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const root = dirname(import.meta.dirname);

export interface Finding {
  readonly file: string;
  readonly line: number;
  readonly rule: string;
}

type Diagnostic = { filename: string; code?: string; message: string; labels: { span: { line: number } }[] };

/** A tree of files that are linted with the project's configuration. */
export interface Scratch extends AsyncDisposable {
  /** Writes files, given as path and lines, and lints them. */
  lint(
    files: Readonly<Record<string, readonly string[]>>,
    options?: readonly string[],
  ): Promise<readonly Finding[]>;
}

export async function openScratch(): Promise<Scratch> {
  const folder = await mkdtemp(join(tmpdir(), "latchkey-lint-"));
  for (const name of ["package.json", "tsconfig.json"]) await copyFile(join(root, name), join(folder, name));
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  await writeFile(
    join(folder, "oxlint.config.ts"),
    `export { default } from ${JSON.stringify(join(root, "oxlint.config.ts"))};\n`,
  );
  return {
    lint: async (files, options = []) => {
      for (const [path, lines] of Object.entries(files)) {
        await mkdir(dirname(join(folder, path)), { recursive: true });
        await writeFile(join(folder, path), `${lines.join("\n")}\n`);
      }
      const report = JSON.parse(await runLinter(folder, [...options, ...Object.keys(files)])) as {
        diagnostics: Diagnostic[];
        number_of_files: number;
      };
      assert.equal(report.number_of_files, Object.keys(files).length, "the linter saw every file");
      return report.diagnostics.map(({ filename, code, message, labels }) => {
        assert.ok(code, `${filename}: ${message}`); // only what could not be parsed has no rule
        return { file: filename, line: labels[0]?.span.line ?? 0, rule: code };
      });
    },
    [Symbol.asyncDispose]: async () => await rm(folder, { recursive: true, force: true }),
  };
}

async function runLinter(folder: string, parameters: readonly string[]): Promise<string> {
  const program = join(root, "node_modules/oxlint/bin/oxlint");
  return await new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [program, "--format", "json", ...parameters],
      { cwd: folder, maxBuffer: 64 * 2 ** 20 },
      (error, stdout, stderr) => {
        if (error !== null && stdout === "") reject(new Error(stderr, { cause: error }));
        else resolve(stdout);
      },
    );
  });
}
