import { existsSync } from "node:fs";
import { openEnvironmentSource, openFileSource, type KeySource } from "#vault/key-source.ts";
import { openKmsSource } from "#vault/kms-source.ts";
import type { Config } from "./settings/settings.ts";

/** Opens the source of the master key that the settings name, whether or not the key exists yet. */
export function openKeySource(config: Config): KeySource {
  const { masterKey, masterKeyFile, masterKeyKms } = config;
  if (masterKey) return openEnvironmentSource("LATCHKEY_MASTER_KEY", masterKey);
  return masterKeyKms === null ? openFileSource(masterKeyFile) : openKmsSource(masterKeyFile, masterKeyKms);
}

export function hasMasterKey(config: Config): boolean {
  return config.masterKey !== null || existsSync(config.masterKeyFile);
}
