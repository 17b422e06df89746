import { NativeSelect } from "@mantine/core";
import { useSearchParams } from "wouter";
import { listAccounts } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";

/** A filter by account, stored in the URL. Hidden if there is only one account. */
export function AccountFilter() {
  const [search, setSearch] = useSearchParams();
  const { may } = useSignedIn();
  const accounts = useRead(listAccounts, {}, { enabled: may("config.read") });
  const items = accounts.data?.items ?? [];
  if (items.length < 2) return null;
  return (
    <NativeSelect
      label="Account"
      value={search.get("account") ?? ""}
      onChange={(event) => {
        const { value } = event.currentTarget;
        setSearch(value === "" ? new URLSearchParams() : new URLSearchParams({ account: value }));
      }}
      data={[
        { value: "", label: "All" },
        ...items.map(({ account, name }) => ({ value: account, label: name })),
      ]}
      mb="md"
      maw={320}
    />
  );
}

/** The parameters of a list in the URL. */
export function useListQuery(): {
  readonly account: string | undefined;
  readonly cursor: string | undefined;
} {
  const [search] = useSearchParams();
  return { account: search.get("account") ?? undefined, cursor: search.get("cursor") ?? undefined };
}
