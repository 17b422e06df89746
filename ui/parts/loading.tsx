import { Loader } from "@mantine/core";

/** A spinner; `what` is its text for screen readers. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <output aria-label={what}>
      <Loader aria-hidden="true" />
    </output>
  );
}
