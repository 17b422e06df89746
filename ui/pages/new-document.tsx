import { useLocation } from "wouter";
import { listAccounts } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { DocumentEditor } from "../parts/document-editor.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { FormPreview } from "../parts/form-preview.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Section } from "../parts/section.tsx";
import { Drawing } from "./blueprint.tsx";

const blueprintOf = (account: string): string => `blueprint: my-blueprint
account: ${account}
name: My Blueprint
nodes:
  - id: data
    type: input
    refKey: data
  - id: rows
    type: parse
    from: data
    format: json
  - id: out
    type: output
    refKey: rows
    from: rows
`;

const strategyOf = (account: string): string => `strategy: strat_my_portal
account: ${account}
name: My portal
hosts: [https://portal.example.com]
fields:
  - { key: username, label: User name, type: text }
  - { key: password, label: Password, type: password }
login:
  type: basic
  username: username
  password: password
`;

/** The editor for a new document, which starts with a valid example. */
function NewDocument(props: {
  readonly kind: "strategy" | "blueprint";
  readonly title: string;
  readonly about: string;
  readonly begin: (account: string) => string;
}) {
  const [, go] = useLocation();
  const accounts = useRead(listAccounts, {});
  return (
    <>
      <PageHead title={props.title} about={props.about} />
      <Reading of={accounts}>
        {({ items: [first] }) =>
          first === undefined ? (
            <EmptyState
              title="Create an account first"
              command={'echo "account: acme" > acme.yaml\nlatchkey apply -f acme.yaml'}
            >
              Every document belongs to an account.
            </EmptyState>
          ) : (
            <DocumentEditor
              label="The new document"
              key={props.kind}
              of={{ kind: props.kind, account: null, id: null, version: 0 }}
              initial={props.begin(first.account)}
              onPublished={({ kind, account, id }) =>
                go(
                  kind === "account"
                    ? `/accounts/${id}`
                    : `/${kind === "strategy" ? "strategies" : "blueprints"}/${account}/${id}`,
                )
              }
            >
              {({ graph, form }, text) => (
                <>
                  {graph && (
                    <Section title="Preview">
                      <Drawing graph={graph} />
                    </Section>
                  )}
                  {form && (
                    <Section title="Form preview" isBare>
                      <FormPreview document={text} />
                    </Section>
                  )}
                </>
              )}
            </DocumentEditor>
          )
        }
      </Reading>
    </>
  );
}

export const NewBlueprintPage = () => (
  <NewDocument
    kind="blueprint"
    title="New Blueprint"
    about="Edit this template. Ctrl+Space shows suggestions."
    begin={blueprintOf}
  />
);

export const NewStrategyPage = () => (
  <NewDocument
    kind="strategy"
    title="New strategy"
    about="Edit this template. Ctrl+Space shows suggestions."
    begin={strategyOf}
  />
);
