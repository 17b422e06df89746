import { Button, ColorSwatch, FileInput, Group, SimpleGrid, TextInput } from "@mantine/core";
import type { readAccount } from "../api/operations.ts";
import type { AnswerOf } from "../api/request.ts";

type Brand = AnswerOf<typeof readAccount>["branding"];

/** How the account appears on the hosted pages. */
export function BrandFields({
  given,
  set,
  wrong,
}: {
  readonly given: Brand;
  readonly set: (brand: Brand) => void;
  readonly wrong: (field: string) => string | undefined;
}) {
  const textOf = (event: { readonly currentTarget: { readonly value: string } }): string | null =>
    event.currentTarget.value || null;
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      <TextInput
        label="Name that end users see"
        placeholder="The account's name"
        value={given.name ?? ""}
        error={wrong("branding.name")}
        onChange={(event) => set({ ...given, name: textOf(event) })}
      />
      <TextInput
        label="Colour of buttons and links"
        placeholder="#3355ff"
        leftSection={<Swatch of={given.accent_color} />}
        value={given.accent_color ?? ""}
        error={wrong("branding.accent_color")}
        onChange={(event) => set({ ...given, accent_color: textOf(event) })}
      />
      <TextInput
        label="Support URL for end users"
        placeholder="https://help.example.com"
        value={given.support_url ?? ""}
        error={wrong("branding.support_url")}
        onChange={(event) => set({ ...given, support_url: textOf(event) })}
      />
      <Logo
        url={given.logo_url}
        problem={wrong("branding.logo_url")}
        onChange={(url) => set({ ...given, logo_url: url })}
      />
    </SimpleGrid>
  );
}

/** The colour itself; what is no colour shows none. */
const Swatch = ({ of }: { readonly of: string | null }) => (
  <ColorSwatch color={of !== null && /^#[0-9a-f]{6}$/i.test(of) ? of : "transparent"} size={18} />
);

function Logo(props: {
  readonly url: string | null;
  readonly problem: string | undefined;
  readonly onChange: (url: string | null) => void;
}) {
  const read = (file: File | null): void => {
    if (file === null) return;
    const reader = new FileReader();
    reader.addEventListener("load", () =>
      props.onChange(typeof reader.result === "string" ? reader.result : null),
    );
    reader.readAsDataURL(file);
  };
  return (
    <Group align="flex-end" wrap="nowrap">
      {props.url !== null && <img src={props.url} alt="The logo" width={36} height={36} />}
      <FileInput
        flex={1}
        label="Logo"
        description="PNG, JPEG or WebP, at most 32 KiB"
        placeholder={props.url === null ? "Choose a file" : "Replace the logo"}
        accept="image/png,image/jpeg,image/webp"
        error={props.problem}
        onChange={read}
      />
      {props.url !== null && (
        <Button variant="default" onClick={() => props.onChange(null)}>
          Remove the logo
        </Button>
      )}
    </Group>
  );
}
