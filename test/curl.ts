import { execFileSync } from "node:child_process";

/** Options of a test whose commands call `curl`: skipped, with the reason, where there is none. */
export const needsCurl: { readonly skip?: string } = hasCurl() ? {} : { skip: "curl is not installed" };

function hasCurl(): boolean {
  try {
    execFileSync("curl", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
