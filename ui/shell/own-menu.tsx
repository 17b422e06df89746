import { Button, Group, Menu, Text, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import { Link } from "wouter";
import { isTestMode, switchMode } from "../api/mode.ts";
import { endSession, useSignedIn } from "../api/queries.ts";

export function OwnMenu() {
  const { email, role } = useSignedIn();
  const { setColorScheme } = useMantineColorScheme();
  const isDark = useComputedColorScheme("light") === "dark";
  return (
    <Menu position="top-start" width="target" withinPortal>
      <Menu.Target>
        <Button variant="default" h="auto" py="xs" fullWidth justify="flex-start">
          <Group gap={0} wrap="nowrap" miw={0}>
            <div className="own-name">
              <Text size="sm" fw={600} truncate ta="left">
                {email}
              </Text>
              <Text size="xs" c="dimmed" ta="left">
                {role}
              </Text>
            </div>
          </Group>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item component={Link} href="/me">
          Your account
        </Menu.Item>
        <Menu.Item onClick={() => setColorScheme(isDark ? "light" : "dark")}>
          {isDark ? "Light theme" : "Dark theme"}
        </Menu.Item>
        <Menu.Item onClick={switchMode}>{isTestMode ? "Leave test mode" : "Test mode"}</Menu.Item>
        <Menu.Divider />
        <Menu.Item onClick={() => void endSession()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
