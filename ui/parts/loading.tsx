import { Loader } from "@mantine/core";

/** Something is on its way; `what` is said to who does not see it turn. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <output aria-label={what}>
      <Loader aria-hidden="true" />
    </output>
  );
}
