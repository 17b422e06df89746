import type { Command } from "commander";
import { SESSION_STATE_NAMES } from "#domain/labels/states.ts";
import type { Composition } from "./composition.ts";
import { plain, print, table, tell } from "./output.ts";
import { addPageOptions, minute, printMore, type PageOptions } from "./pages.ts";

export function addSessions(program: Command, composition: Composition): void {
  const sessions = program
    .command("sessions")
    .description("list credential sessions: hosted forms for end users")
    .addHelpText("after", "\nExample:\n  latchkey sessions list --account acme");
  addPageOptions(
    sessions
      .command("list")
      .description("list credential sessions, newest first")
      .option("--account <name>", "only those of one account"),
  )
    .addHelpText("after", "\nExample:\n  latchkey sessions list --account acme")
    .action(async (options: PageOptions) => await list(composition, options));
}

async function list(composition: Composition, { json, ...query }: PageOptions): Promise<void> {
  const { listCredentialSessions } = await import("#actions/operators/list-credentials.ts");
  const found = await composition.withDatabase(async (db) => await listCredentialSessions(db, query, null));
  if (json === true) return print(JSON.stringify(found));
  if (found.items.length === 0) {
    print("There are no credential sessions.");
    return tell("A customer's backend creates one with POST /api/v1/credential-sessions (docs/api.md).");
  }
  print(
    table(
      ["ID", "ACCOUNT", "STRATEGY", "NAME", "CREATED", "STATE", "CREDENTIAL", "LAST FAILED SIGN-IN"],
      found.items.map((each) => [
        each.id,
        each.account,
        each.strategy,
        plain(each.name ?? ""),
        minute(each.created_at),
        (SESSION_STATE_NAMES[each.status] ?? each.status) +
          (each.status === "pending" ? ` until ${minute(each.expires_at)}` : ""),
        each.credential_id ?? "",
        each.sign_in_failed_at === null
          ? ""
          : `${minute(each.sign_in_failed_at)} ${plain(each.sign_in_failure ?? "")}`,
      ]),
    ),
  );
  printMore(found.next_cursor);
}
