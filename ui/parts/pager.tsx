import { Button, Group } from "@mantine/core";
import { useSearchParams } from "wouter";

/** Pages by cursor. The cursor is in the URL, so that a page can be shared and the Back button works. */
export function Pager({ next }: { readonly next: string | null }) {
  const [search, setSearch] = useSearchParams();
  const isFirst = !search.has("cursor");
  if (isFirst && next === null) return null;
  const go = (cursor: string | null): void => {
    setSearch((before) => {
      const after = new URLSearchParams(before);
      if (cursor === null) after.delete("cursor");
      else after.set("cursor", cursor);
      return after;
    });
    window.scrollTo(0, 0);
  };
  return (
    <Group component="nav" aria-label="Pages" justify="space-between" mt="md">
      <Button variant="default" disabled={isFirst} onClick={() => go(null)}>
        First page
      </Button>
      <Button variant="default" disabled={next === null} onClick={() => go(next)}>
        Next page
      </Button>
    </Group>
  );
}
