import { statSync } from "node:fs";
import type { Command } from "commander";
import { listUnopenable } from "#actions/check-vault.ts";
import { assertDurable, type Database } from "#db/pool.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, paint, print } from "./output.ts";

interface Finding {
  readonly ok: boolean;
  readonly text: string;
}

export function addDoctor(program: Command, composition: Composition): void {
  program
    .command("doctor")
    .description("check settings, keys, database and vault, and say what to do")
    .addHelpText("after", "\nExample:\n  latchkey doctor")
    .action(async () => {
      let failed = 0;
      const show = ({ ok, text }: Finding): void => {
        if (!ok) failed++;
        print(`${ok ? paint("green", "ok   ") : paint("red", "wrong")} ${text}`);
      };
      show({ ok: true, text: "the settings are in order" });
      for (const finding of checkKeyFiles(composition)) show(finding);
      try {
        await composition.withDatabase(async (db) => {
          for (const finding of await checkDatabase(composition, db)) show(finding);
        });
      } catch (error) {
        show({ ok: false, text: `database: ${(error as Error).message}` });
      }
      print("Not checked: backups. The embedded PostgreSQL comes without pg_dump and psql; install Debian's postgresql-client for them.");
      if (failed > 0) throw new CommandFailed(failed === 1 ? "One thing is wrong." : `${failed} things are wrong.`);
    });
}

function checkKeyFiles(composition: Composition): readonly Finding[] {
  const config = composition.config();
  const keys = [
    ["signing key", config.signingKey, config.signingKeyFile],
    ["master key", config.masterKey, config.masterKeyFile],
  ] as const;
  return keys.map(([what, key, file]) => {
    if (!key) return { ok: false, text: `${what}: ${file} does not exist. Run \`latchkey init\`, or restore it from your backup` };
    const mode = statSync(file, { throwIfNoEntry: false })?.mode;
    if (mode !== undefined && (mode & 0o077) !== 0) {
      return { ok: false, text: `${what}: others may read ${file}. Run chmod 600 on it` };
    }
    return { ok: true, text: `${what} is there and private` };
  });
}

async function checkDatabase(composition: Composition, db: Database): Promise<readonly Finding[]> {
  await assertDurable(db);
  const findings: Finding[] = [{ ok: true, text: "the database answers, is up to date and durable" }];
  const vault = await composition.openVault(db);
  const { checked, broken } = await listUnopenable(db, vault);
  findings.push(
    broken.length === 0
      ? { ok: true, text: `the master key opens all ${checked} credentials` }
      : { ok: false, text: `these credentials can't be opened, their rows were damaged: ${broken.join(", ")}` },
  );
  return findings;
}
