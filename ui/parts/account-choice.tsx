import { Checkbox, Stack } from "@mantine/core";
import { listAccounts } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";

/** The accounts that an operator or a token is limited to; none is ticked: all, also later ones. */
export function AccountChoice(props: {
  readonly value: readonly string[];
  readonly onChange: (accounts: string[]) => void;
}) {
  const accounts = useRead(listAccounts, {});
  const items = accounts.data?.items ?? [];
  if (items.length === 0) return null;
  return (
    <Checkbox.Group
      label="Only these accounts"
      description="None ticked: all accounts, also later ones."
      value={[...props.value]}
      onChange={props.onChange}
    >
      <Stack gap="xs" mt="xs">
        {items.map(({ account, name }) => (
          <Checkbox
            key={account}
            value={account}
            label={name === account ? account : `${name} (${account})`}
          />
        ))}
      </Stack>
    </Checkbox.Group>
  );
}
