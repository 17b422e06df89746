import { Anchor, Text } from "@mantine/core";
import { Link } from "wouter";

/** A link to a page that the operator may see; false: they may not, and it is text. */
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
