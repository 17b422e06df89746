import { prepareVault } from "#actions/vault/prepare-vault.ts";
import { setAccountSecret } from "#actions/secrets/set-account-secret.ts";
import { signingOf } from "./invariants.ts";
import type { Installation } from "./service.ts";

/** Keeps a secret of the account `acme`, as `latchkey secrets set` does. */
export async function keepSecret(
  installation: Pick<Installation, "database" | "dataFolder">,
  name: string,
  value: string,
  ...origins: string[]
): Promise<void> {
  const { db } = installation.database;
  const vault = await prepareVault(db, null);
  const signing = signingOf(installation);
  await setAccountSecret({ db, vault, signing }, { account: "acme", name, value, origins });
}
