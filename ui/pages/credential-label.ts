import { shortId } from "../parts/short-id.ts";

interface Labelled {
  readonly id: string;
  readonly name: string | null;
}

/** Credentials with the same label are told apart by their ids. */
export function credentialLabel({ id, name }: Labelled, all: readonly Pick<Labelled, "name">[]): string {
  if (name === null) return id;
  return all.filter((each) => each.name === name).length > 1 ? `${name} (${shortId(id)})` : name;
}
