import { Anchor, Group } from "@mantine/core";
import { Link } from "wouter";

/** Lists that can be filtered by an account. */
const VIEWS = [
  ["/runs", "Runs"],
  ["/blueprints", "Blueprints"],
  ["/credentials", "Credentials"],
  ["/keys", "API keys"],
] as const;

/** Links to what an account has. */
export const AccountViews = ({ account, name }: { readonly account: string; readonly name: string }) => (
  <Group gap="md">
    {VIEWS.map(([path, label]) => (
      <Anchor
        key={path}
        component={Link}
        href={`${path}?${new URLSearchParams({ account })}`}
        size="sm"
        aria-label={`${label} of ${name}`}
      >
        {label}
      </Anchor>
    ))}
  </Group>
);
