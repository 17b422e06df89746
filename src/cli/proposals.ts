import type { Command } from "commander";
import type { getProposal, listProposals } from "#actions/config/list-proposals.ts";
import { PROPOSAL_STATE_NAMES } from "#domain/labels/states.ts";
import type { Composition } from "./composition.ts";
import { paint, print, table } from "./output.ts";
import { openOwnSigning } from "./own-signing.ts";
import { addPageOptions, minute, printMore, type PageOptions } from "./pages.ts";

type Listed = Awaited<ReturnType<typeof listProposals>>["items"][number];
type Shown = Awaited<ReturnType<typeof getProposal>>;

/** Changes that await confirmation. Only the dashboard confirms them, because it knows who the admin is. */
export function addProposals(program: Command, composition: Composition): void {
  const proposals = program
    .command("proposals")
    .description("list, show and discard changes that need a second admin")
    .addHelpText(
      "after",
      "\nAdmins confirm them in the dashboard, which knows who confirms.\n\nExamples:\n  latchkey proposals list\n" +
        "  latchkey proposals show prop_0VrJ…",
    );
  addPageOptions(
    proposals
      .command("list")
      .description("list proposals that await confirmation, newest first")
      .option("--account <name>", "only those of one account")
      .option("--all", "include closed ones"),
  )
    .addHelpText("after", "\nExample:\n  latchkey proposals list --account acme --all")
    .action(async (options: PageOptions & { all?: boolean }) => await list(composition, options));
  proposals
    .command("show")
    .description("show what a proposal would change, and why it needs two admins")
    .argument("<id>", "its id (prop_…)")
    .option("--json", "print it as JSON, as the operator API returns it")
    .addHelpText("after", "\nExample:\n  latchkey proposals show prop_0VrJ…")
    .action(
      async (id: string, options: { json?: boolean }) => await show(composition, id, options.json === true),
    );
  proposals
    .command("discard")
    .description("discard a proposal: it can no longer be confirmed or applied")
    .argument("<id>", "its id (prop_…)")
    .option("--json", "print {id, status} as JSON")
    .addHelpText("after", "\nExample:\n  latchkey proposals discard prop_0VrJ…")
    .action(
      async (id: string, options: { json?: boolean }) =>
        await discard(composition, id, options.json === true),
    );
}

async function list(composition: Composition, options: PageOptions & { all?: boolean }): Promise<void> {
  const { listProposals } = await import("#actions/config/list-proposals.ts");
  const { json, all, ...query } = options;
  const page = await composition.withDatabase(
    async (db) => await listProposals(db, { ...query, waiting: all !== true }, null),
  );
  if (json === true) return print(JSON.stringify(page));
  if (page.items.length === 0) return print("No change awaits confirmation.");
  print(
    table(
      ["ID", "ACCOUNT", "KIND", "STATE", "BY", "CONFIRMATIONS NEEDED", "EXPIRES"],
      page.items.map((each) => [
        each.id,
        each.account,
        each.kind,
        PROPOSAL_STATE_NAMES[each.status],
        proposerOf(each),
        String(each.confirmations_wanted),
        minute(each.expires_at),
      ]),
    ),
  );
  printMore(page.next_cursor);
}

async function show(composition: Composition, id: string, json: boolean): Promise<void> {
  const { getProposal } = await import("#actions/config/list-proposals.ts");
  const proposal = await composition.withDatabase(async (db) => await getProposal(db, id));
  print(json ? JSON.stringify(proposal) : describe(proposal));
}

async function discard(composition: Composition, id: string, json: boolean): Promise<void> {
  const { discardProposal } = await import("#actions/config/end-proposal.ts");
  const signing = openOwnSigning(composition);
  await composition.withDatabase(async (db) => await discardProposal({ db, signing }, { kind: "cli" }, id));
  print(json ? JSON.stringify({ id, status: "discarded" }) : `Discarded ${id}.`);
}

const proposerOf = ({ proposed_by: by }: Listed): string => by ?? "command line";

function describe(proposal: Shown): string {
  const { confirmations_wanted: wanted, confirmed_by: confirmed, documents, rebindings } = proposal;
  return [
    `${proposal.id}  ${PROPOSAL_STATE_NAMES[proposal.status]}, account ${proposal.account}, proposed by ${proposerOf(proposal)} at ${minute(proposal.created_at)}`,
    ...(wanted === 0 ? [] : [`${wanted} of 2 confirmations needed before ${minute(proposal.expires_at)}`]),
    ...(confirmed.length === 0 ? [] : [`confirmed by ${confirmed.join(", ")}`]),
    "",
    ...proposal.reasons,
    ...documents.flatMap(({ kind, account, id, differences }) => [
      `\n${kind} ${kind === "account" ? id : `${account}/${id}`}`,
      ...differences.flatMap(({ path, before, after }) => [
        ...(before === null ? [] : [paint("red", `      - ${path}: ${before}`)]),
        ...(after === null ? [] : [paint("green", `      + ${path}: ${after}`)]),
      ]),
    ]),
    ...rebindings.flatMap(({ credential, strategy, before, after }) => [
      `\n${credential}  ${strategy}`,
      ...(before ?? []).map((origin) => paint("red", `      - ${origin}`)),
      ...after.map((origin) => paint("green", `      + ${origin}`)),
    ]),
  ].join("\n");
}
