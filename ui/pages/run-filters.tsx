import { Button, NativeSelect, Paper, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { useSearchParams } from "wouter";
import type { RunStatus } from "#domain/run.ts";
import { RUN_STATUS_NAMES } from "#domain/labels/states.ts";

/** Filters in the URL, with the names of the API's parameters. */
const TEXTS = ["account", "blueprint", "run_name", "metadata"] as const;
const TIMES = ["since", "until"] as const;

type Filters = Partial<Record<(typeof TEXTS)[number] | (typeof TIMES)[number], string>> & {
  status?: RunStatus;
};

const isStatus = (text: string): text is RunStatus => Object.hasOwn(RUN_STATUS_NAMES, text);

export function readRunFilters(search: URLSearchParams): Filters {
  const filters: Filters = {};
  const status = search.get("status") ?? "";
  if (isStatus(status)) filters.status = status;
  for (const name of TEXTS) {
    const value = search.get(name);
    if (value) filters[name] = value;
  }
  for (const name of TIMES) {
    const at = new Date(search.get(name) ?? "");
    if (!Number.isNaN(at.getTime())) filters[name] = at.toISOString();
  }
  return filters;
}

const LABELS: Readonly<Record<(typeof TEXTS)[number], readonly [label: string, placeholder: string]>> = {
  blueprint: ["Blueprint", "key"],
  account: ["Account", "name"],
  run_name: ["Name starts with", ""],
  metadata: ["Metadata", "name=value"],
};

/** The URL contains the filters, so that a filtered list can be shared. */
export function RunFilters() {
  const [search, setSearch] = useSearchParams();
  const ask = (form: HTMLFormElement): void => {
    const next = new URLSearchParams();
    for (const [name, value] of new FormData(form))
      if (typeof value === "string" && value.trim() !== "") next.set(name, value.trim());
    setSearch(next);
  };
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    ask(event.currentTarget);
  };
  // Only relevant on phones.
  const [isOpen, setIsOpen] = useState(false);
  const isAny = [...search.keys()].some((name) => name !== "cursor");
  return (
    <Paper withBorder radius="lg" p="md" mb="md">
      <Button
        className="filters-toggle"
        variant="subtle"
        aria-expanded={isOpen}
        aria-controls="filters"
        onClick={() => setIsOpen(!isOpen)}
      >
        {isOpen ? "Hide filters" : "Filters"}
      </Button>
      {/* Recreated when the URL changes, so that its fields show the current filter. */}
      <form key={search.toString()} onSubmit={submit} aria-label="Filters">
        <div className="filters" id="filters" data-open={isOpen}>
          <FilterFields search={search} onStatus={ask} />
          <Button type="submit" variant="default">
            Filter
          </Button>
          {isAny && (
            <Button variant="subtle" onClick={() => setSearch(new URLSearchParams())}>
              Clear
            </Button>
          )}
        </div>
      </form>
    </Paper>
  );
}

function FilterFields(props: {
  readonly search: URLSearchParams;
  /** Called when a status is chosen, which takes effect at once. */
  readonly onStatus: (form: HTMLFormElement) => void;
}) {
  const valueOf = (name: string): string => props.search.get(name) ?? "";
  return (
    <>
      <NativeSelect
        label="Status"
        name="status"
        defaultValue={valueOf("status")}
        onChange={(event) => event.currentTarget.form && props.onStatus(event.currentTarget.form)}
        data={[
          { value: "", label: "All" },
          ...Object.entries(RUN_STATUS_NAMES).map(([value, label]) => ({ value, label })),
        ]}
      />
      {(["blueprint", "account", "run_name", "metadata"] as const).map((name) => (
        <TextInput
          key={name}
          label={LABELS[name][0]}
          placeholder={LABELS[name][1]}
          name={name}
          defaultValue={valueOf(name)}
        />
      ))}
      {(["since", "until"] as const).map((name) => (
        <TextInput
          key={name}
          label={name === "since" ? "From" : "Until"}
          type="datetime-local"
          name={name}
          defaultValue={valueOf(name)}
        />
      ))}
    </>
  );
}
