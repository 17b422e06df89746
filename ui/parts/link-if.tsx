import { Anchor, Text } from "@mantine/core";
import { Link } from "wouter";

/** A link if the operator may see the page, otherwise text. */
export const LinkIf = ({ to, children }: { readonly to: string | false; readonly children: string }) =>
  to === false ? (
    <Text size="sm" component="span">
      {children}
    </Text>
  ) : (
    <Anchor component={Link} href={to} size="sm">
      {children}
    </Anchor>
  );
