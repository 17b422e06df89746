// docs/metrics.md#alerts: the rules are ones that Prometheus takes, and rules and dashboard name only metrics that there are.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { unpackDebian, whyNoDebian } from "../debian-packages.ts";
import { testInAll } from "../tiers.ts";
import { PROMETHEUS } from "./real-prometheus.ts";
import { parse } from "yaml";

const at = (path: string): string => join(import.meta.dirname, "../..", path);
const page = readFileSync(at("docs/metrics.md"), "utf8");
const rules = parse(readFileSync(at("deploy/prometheus/rules.yaml"), "utf8")) as {
  groups: { rules: { alert: string; expr: string }[] }[];
};
const dashboard = JSON.parse(readFileSync(at("deploy/grafana/latchkey.json"), "utf8")) as {
  panels: { title: string; targets: { expr: string }[] }[];
};
const alerts = rules.groups.flatMap((group) => group.rules);

test("the alert rules and the dashboard use documented metrics and labels, and together every one that indicates a problem", () => {
  const listed = new Map(
    [...page.matchAll(/^\| `(latchkey_[a-z_]+)` \| ([^|]*)\|/gm)].map(([, name = "", labels = ""]) => [
      name,
      labels,
    ]),
  );
  const expressions = [
    ...alerts.map(({ expr }) => expr),
    ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ];
  for (const expr of expressions) {
    const names = [...expr.matchAll(/latchkey_[a-z_]+/g)].map(([name]) =>
      name.replace(/_(bucket|count|sum)$/, ""),
    );
    for (const name of names) assert.ok(listed.has(name), `${name} in ${expr}`);
    for (const [, name = "", inner = ""] of expr.matchAll(
      /(latchkey_[a-z_]+?)(?:_count|_bucket)?\{([^}]*)\}/g,
    ))
      for (const [, label = ""] of inner.matchAll(/([a-z_]+)=/g))
        assert.ok(listed.get(name)?.includes(`\`${label}\``), `${label} of ${name}`);
  }
  assert.ok(dashboard.panels.length >= 15);
});

test("the page says for each alert what to do", () => {
  const told = [...page.matchAll(/^\| `(Latchkey[A-Za-z]+)` \| \S/gm)].map(([, name]) => name);
  assert.deepEqual(new Set(alerts.map(({ alert }) => alert)), new Set(told));
});

testInAll(
  "the names and labels of the rules and of the dashboard are those of the page",
  "promtool takes the rules, and the expressions of the dashboard",
  { skip: whyNoDebian() ?? false },
  async () => {
    const root = await unpackDebian(PROMETHEUS);
    const promtool = join(root, "usr/bin/promtool");
    const said = execFileSync(promtool, ["check", "rules", at("deploy/prometheus/rules.yaml")], {
      encoding: "utf8",
    });
    assert.match(said, new RegExp(`SUCCESS: ${alerts.length} rules found`));
    const asRules = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    const input = JSON.stringify({
      groups: [
        { name: "dashboard", rules: asRules.map((expr, index) => ({ record: `panel:${index}`, expr })) },
      ],
    });
    const folder = mkdtempSync(join(tmpdir(), "latchkey-rules-"));
    const file = join(folder, "dashboard.json");
    writeFileSync(file, input);
    const taken = execFileSync(promtool, ["check", "rules", "--lint=none", file], { encoding: "utf8" });
    rmSync(folder, { recursive: true });
    assert.match(taken, /SUCCESS/);
  },
);
