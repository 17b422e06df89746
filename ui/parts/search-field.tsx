import { TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useState } from "react";
import { useSearchParams } from "wouter";

const PAUSE_MS = 250;

/** A text that a list's entries contain, in the URL as `q`: it takes effect while one types. */
export function SearchField(props: {
  readonly label: string;
  readonly placeholder: string;
  readonly className?: string;
}) {
  const [search, setSearch] = useSearchParams();
  const value = search.get("q") ?? "";
  const [typed, setTyped] = useState(value);
  const [last, setLast] = useState(value);
  const ask = useDebouncedCallback(
    (text: string) =>
      setSearch((before) => {
        const after = new URLSearchParams(before);
        after.delete("cursor");
        if (text.trim() === "") after.delete("q");
        else after.set("q", text.trim());
        return after;
      }),
    PAUSE_MS,
  );
  // It was changed elsewhere: by the browser's Back button, or by "Clear filters".
  if (value !== last) {
    setLast(value);
    if (value !== typed.trim()) setTyped(value);
  }
  return (
    <TextInput
      {...props}
      value={typed}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        ask(event.currentTarget.value);
      }}
    />
  );
}
