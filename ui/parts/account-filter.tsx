import { NativeSelect } from "@mantine/core";
import { useSearchParams } from "wouter";
import { listAccounts } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";

/** A filter by account, stored in the URL. Hidden if there is only one account. `mb`: 0 beside other filters. */
export function AccountFilter({ mb = "md" }: { readonly mb?: "md" | 0 }) {
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
        setSearch((before) => {
          const after = new URLSearchParams(before);
          after.delete("cursor");
          if (value === "") after.delete("account");
          else after.set("account", value);
          return after;
        });
      }}
      data={[
        { value: "", label: "All" },
        ...items.map(({ account, name }) => ({ value: account, label: name })),
      ]}
      mb={mb}
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
