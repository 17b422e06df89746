import { Combobox, Modal, Text, TextInput, useCombobox } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { runStateName } from "#domain/labels/states.ts";
import { search } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import styles from "./search.module.css";

type Found = AnswerOf<typeof search>;

interface Result {
  readonly to: string;
  readonly name: string;
  readonly kind: string;
  readonly about: string;
}

const PAUSE_MS = 150;
/** A run can be found at most two seconds after its trigger: a search that came before is repeated. */
const AGAIN_MS = 2_000;

/** Searches everything while one types. Arrows choose, Enter opens. */
export function SearchDialog({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState("");
  const [, go] = useLocation();
  const [asked] = useDebouncedValue(text.trim(), PAUSE_MS);
  const found = useRead(search, { query: { q: asked } }, { enabled: asked !== "", everyMs: AGAIN_MS });
  const results = asked === "" || asked !== text.trim() ? [] : resultsOf(asked, found.data);
  const combobox = useCombobox({ opened: true });
  const { selectFirstOption } = combobox;
  // Enter opens the first result.
  useEffect(() => void selectFirstOption(), [selectFirstOption, found.data, asked]);
  const open = (to: string): void => {
    onClose();
    go(to);
  };
  return (
    <Modal opened onClose={onClose} title="Search" size="lg" closeButtonProps={{ "aria-label": "Close" }}>
      <Combobox store={combobox} onOptionSubmit={open}>
        <Combobox.EventsTarget>
          <TextInput
            data-autofocus
            aria-label="Search"
            placeholder="A customer, a run, a credential, a Blueprint, an ID"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
        </Combobox.EventsTarget>
        {found.error && <FailureNote error={found.error} />}
        <Combobox.Options aria-label="Results" className={styles["results"] ?? ""}>
          {results.map(({ to, name, kind, about }) => (
            <Combobox.Option key={`${kind} ${to}`} value={to} className={styles["result"] ?? ""}>
              <span className={styles["name"]}>{name}</span>
              <span className={styles["kind"]}>{kind}</span>
              <span className={styles["about"]}>{about}</span>
            </Combobox.Option>
          ))}
        </Combobox.Options>
      </Combobox>
      <Text size="sm" c="dimmed" component="output" display="block">
        {asked !== "" && found.data && isEmpty(found.data) ? "Nothing contains this text." : ""}
      </Text>
    </Modal>
  );
}

const isEmpty = ({ runs, others }: Found): boolean => runs.length === 0 && others.length === 0;

function resultsOf(text: string, found: Found | undefined): readonly Result[] {
  if (found === undefined) return [];
  const runs = found.runs.map((run) => ({
    to: `/runs/${run.id}`,
    name: run.name ?? run.id,
    kind: runStateName(run.status, run.progress_step),
    about: [...Object.values(run.metadata), run.blueprint ?? "Test login", run.failure_detail ?? ""]
      .filter((each) => each !== "")
      .join(" · "),
  }));
  const all = {
    to: `/runs?${new URLSearchParams({ q: text })}`,
    name: `All runs with “${text}”`,
    kind: "Runs",
    about: "The newest 500, with filters",
  };
  return [...runs, ...(runs.length > 1 ? [all] : []), ...found.others.map(otherOf)];
}

function otherOf({ kind, id, account, name, strategy }: Found["others"][number]): Result {
  const about = [name === null ? "" : id, strategy ?? "", account].filter((each) => each !== "").join(" · ");
  const to = {
    credential: `/credentials/${id}`,
    session: `/sessions/${id}`,
    blueprint: `/blueprints/${account}/${id}`,
    strategy: `/strategies/${account}/${id}`,
    account: `/accounts/${account}`,
  }[kind];
  const kinds = {
    credential: "Credential",
    session: "Session",
    blueprint: "Blueprint",
    strategy: "Strategy",
    account: "Account",
  };
  return { to, name: name ?? id, kind: kinds[kind], about };
}
