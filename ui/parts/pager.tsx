import { Button, Group, Text } from "@mantine/core";
import { useSearchParams } from "wouter";

interface Place {
  /** The cursor of the page before; null: the first page. */
  readonly before: string | null;
  readonly page: number;
}

/** By cursor: the pages that this tab has come to with "Next page". A cursor alone does not tell the page before it. */
const places = new Map<string, Place>();

/** Pages by cursor. The cursor is in the URL, so that a page can be shared and the Back button works. */
export function Pager({ next }: { readonly next: string | null }) {
  const [search, setSearch] = useSearchParams();
  const cursor = search.get("cursor");
  if (cursor === null && next === null) return null;
  const place = cursor === null ? { before: null, page: 1 } : places.get(cursor);
  const go = (to: string | null): void => {
    setSearch((params) => {
      const after = new URLSearchParams(params);
      if (to === null) after.delete("cursor");
      else after.set("cursor", to);
      return after;
    });
    window.scrollTo(0, 0);
  };
  const goOn = (): void => {
    if (next === null) return;
    if (place) places.set(next, { before: cursor, page: place.page + 1 });
    go(next);
  };
  return (
    <Group component="nav" aria-label="Pages" justify="space-between" mt="md">
      <Button variant="default" disabled={cursor === null} onClick={() => go(null)}>
        First page
      </Button>
      <Group gap="xs">
        {place && (
          <Text size="sm" c="dimmed" component="output">
            Page {place.page}
          </Text>
        )}
        <Button
          variant="default"
          disabled={cursor === null || place === undefined}
          onClick={() => go(place?.before ?? null)}
        >
          Previous page
        </Button>
        <Button variant="default" disabled={next === null} onClick={goOn}>
          Next page
        </Button>
      </Group>
    </Group>
  );
}
