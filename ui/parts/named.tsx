import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Copyable } from "./copyable.tsx";
import { shortId } from "./short-id.ts";

/** A cell with a name, and below it further identifying details, or an id, shortened and to be copied. */
export function Named(
  props: { readonly name: ReactNode } & (
    | { readonly below: ReactNode }
    | { readonly id: string; readonly of: string }
  ),
) {
  return (
    <>
      <Text size="sm" fw={600}>
        {props.name}
      </Text>
      <Text size="xs" c="dimmed" component="div">
        {"id" in props ? (
          <Copyable text={props.id} shown={shortId(props.id)} name={`the ID of ${props.of}`} />
        ) : (
          props.below
        )}
      </Text>
    </>
  );
}
