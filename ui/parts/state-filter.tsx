import { NativeSelect } from "@mantine/core";
import { useSearchParams } from "wouter";

/** A filter by state, stored in the URL. */
export function StateFilter({ options }: { readonly options: readonly (readonly [string, string])[] }) {
  const [search, setSearch] = useSearchParams();
  return (
    <NativeSelect
      label="State"
      value={search.get("state") ?? ""}
      onChange={(event) => {
        const { value } = event.currentTarget;
        setSearch((before) => {
          const after = new URLSearchParams(before);
          after.delete("cursor");
          if (value === "") after.delete("state");
          else after.set("state", value);
          return after;
        });
      }}
      data={[{ value: "", label: "All" }, ...options.map(([value, label]) => ({ value, label }))]}
    />
  );
}
