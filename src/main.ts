import { fileURLToPath } from "node:url";
import { prepareVault } from "#actions/prepare-vault.ts";
import type { Composition } from "#cli/composition.ts";
import { withProgress } from "#cli/output.ts";
import { runProgram } from "#cli/program.ts";
import { openLog, type Log } from "#lib/log.ts";
import { readMasterKey } from "#vault/master-key.ts";
import { openDatabase, requireKey, startService } from "./assemble.ts";
import { readConfig, type Config } from "./config.ts";

// Read anew at each use: `init` makes the files that the settings name.
const config = (): Config => readConfig();

let opened: Log | null = null;
function log(): Log {
  const { logLevel, logFormat } = config();
  return (opened ??= openLog({ level: logLevel, format: logFormat }));
}

const composition: Composition = {
  config,
  withDatabase: async (work) => {
    const database = await withProgress("Opening the database", openDatabase(config(), log()));
    try {
      return await work(database.db);
    } finally {
      await database.close();
    }
  },
  openVault: async (db) => await prepareVault(db, readMasterKey(requireKey(config(), "master").reveal())),
  serve: async (roles) => await startService(config(), log(), roles),
  drainMs: () => config().drainMs,
  log,
  root: fileURLToPath(new URL("..", import.meta.url)),
};

process.exitCode = await runProgram(composition, process.argv.slice(2));
