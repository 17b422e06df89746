/** The files of deploy/ for Compose, Kubernetes and systemd: docs/deploy.md. The images are built by test/images. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { SETTINGS } from "#service/settings/settings.ts";

const PROJECT = resolve(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(PROJECT, "deploy", path), "utf8");
const has = (program: string): boolean => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
const targets = new Set([...read("Containerfile").matchAll(/^FROM \S+ AS (\w+)$/gm)].map(([, name]) => name));
const known = new Set(SETTINGS.map(({ name }) => name));

function assertSettings(names: readonly string[]): void {
  assert.deepEqual(
    names.filter((name) => !known.has(name)),
    [],
  );
}

interface ComposeService {
  readonly image: string;
  readonly build?: { readonly target: string };
  readonly command?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly mem_limit?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly volumes: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
}

test("Compose: settings, images, volumes and services exist; the owner's password is given to `init` alone", () => {
  const file = parse(read("compose/compose.yaml"), { merge: true }) as {
    readonly services: Readonly<Record<string, ComposeService>>;
    readonly volumes: Readonly<Record<string, null>>;
  };
  const own = Object.entries(file.services).filter(([name]) => name !== "postgres");
  assert.deepEqual(
    own.map(([name]) => name),
    ["init", "latchkey"],
  );
  for (const [name, service] of own) {
    assertSettings(Object.keys(service.environment));
    assert.ok(targets.has(service.build?.target), name);
    assert.ok(service.read_only, name);
    assert.deepEqual(service.cap_drop, ["ALL"], name);
    assert.equal("DATABASE_OWNER_URL" in service.environment, name === "init");
    for (const needed of Object.keys(service.depends_on ?? {})) assert.ok(needed in file.services, needed);
    for (const volume of service.volumes) assert.ok((volume.split(":")[0] ?? "") in file.volumes, volume);
  }
  const { mem_limit: limit = "", environment } = must(file.services["latchkey"], "the service");
  const browsers = Number(/:-(\d+)/.exec(environment["LATCHKEY_BROWSERS"] ?? "")?.[1]);
  assertRoom(limit, browsers);
  execFileSync("sh", ["-n", join(PROJECT, "deploy/compose/roles.sh")]);
});

/** docs/deploy.md#memory: what a container with a worker needs. */
function assertRoom(limit: string, browsers: number): void {
  const [, size, unit = ""] = /^(\d+)(\w+)$/.exec(limit) ?? [];
  const bytes = Number(size) * 2 ** (/^gi?$/i.test(unit) ? 30 : 20);
  assert.ok(bytes >= 2 ** 30 + browsers * limits.browserMemoryBytes, `${limit} for ${browsers} browsers`);
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface PodTemplate {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: {
    readonly serviceAccountName: string;
    readonly securityContext: { readonly runAsNonRoot: boolean; readonly runAsUser: number };
    readonly containers: readonly {
      readonly image: string;
      readonly args: readonly string[];
      readonly envFrom: readonly { readonly configMapRef: { readonly name: string } }[];
      readonly env: readonly { readonly name: string; readonly value: string }[];
      readonly ports?: readonly { readonly name: string }[];
      readonly resources: { readonly limits: { readonly memory: string } };
      readonly securityContext: object;
      readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
      readonly readinessProbe?: Probe;
      readonly livenessProbe?: Probe;
    }[];
    readonly volumes: readonly { readonly name: string }[];
  };
}

interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly selector?: Readonly<Record<string, string>> & {
      readonly matchLabels?: Readonly<Record<string, string>>;
    };
    readonly serviceName?: string;
    readonly template?: PodTemplate;
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
  };
}

function build(overlay: string): readonly Resource[] {
  const text = execFileSync("kubectl", ["kustomize", join(PROJECT, "deploy/kubernetes", overlay)], {
    encoding: "utf8",
  });
  return parseAllDocuments(text).map((document) => document.toJS() as Resource);
}

/** What a pod refers to exists: its account, its settings, its volumes and ports. */
function assertPod(resources: readonly Resource[], { metadata, spec }: Resource): void {
  const has = (kind: string, name: string): boolean =>
    resources.some((each) => each.kind === kind && each.metadata.name === name);
  const pod = spec.template?.spec;
  assert.ok(pod);
  assert.ok(has("ServiceAccount", pod.serviceAccountName), metadata.name);
  assert.deepEqual([pod.securityContext.runAsNonRoot, pod.securityContext.runAsUser], [true, 10_001]);
  const volumes = [...pod.volumes, ...(spec.volumeClaimTemplates ?? []).map((claim) => claim.metadata)];
  for (const container of pod.containers) {
    assert.match(container.image, /^registry\.example\.com\/latchkey-(server|worker):0\.1\.0$/);
    for (const { configMapRef } of container.envFrom) assert.ok(has("ConfigMap", configMapRef.name));
    assertSettings(container.env.map(({ name }) => name));
    for (const { value } of container.env)
      assert.ok(
        container.volumeMounts.some(({ mountPath }) => value.startsWith(`${mountPath}/`)),
        value,
      );
    const [map] = resources.filter(({ kind }) => kind === "ConfigMap");
    // A Job and the api role have no browsers.
    const isWorker = container.args[0] === "serve" && !container.args.includes("api");
    if (isWorker)
      assertRoom(container.resources.limits.memory, Number(map?.data?.["LATCHKEY_BROWSERS"] ?? Number.NaN));
    else assert.match(container.resources.limits.memory, /^\d+[MG]i$/);
    for (const { name } of container.volumeMounts)
      assert.ok(
        volumes.some((volume) => volume.name === name),
        name,
      );
    for (const probe of [container.readinessProbe, container.livenessProbe])
      assert.ok(probe === undefined || container.ports?.some(({ name }) => name === probe.httpGet.port));
    assert.deepEqual(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
  }
}

for (const [overlay, pods] of [
  ["single", ["latchkey-migrate: [migrate]", "latchkey: [serve]"]],
  [
    "ha",
    [
      "latchkey-api: [serve,--roles,api]",
      "latchkey-migrate: [migrate]",
      "latchkey-worker: [serve,--roles,worker]",
    ],
  ],
] as const)
  test(`Kubernetes, ${overlay}: what refers to something finds it`, { skip: !has("kubectl") }, () => {
    const resources = build(overlay);
    const withPods = resources.filter(({ spec }) => spec?.template !== undefined);
    const commandOf = ({ metadata, spec }: Resource): string =>
      `${metadata.name}: [${spec.template?.spec.containers[0]?.args.join()}]`;
    assert.deepEqual(withPods.map(commandOf).toSorted(), [...pods]);
    for (const each of withPods) assertPod(resources, each);
    for (const { kind, data = {} } of resources) if (kind === "ConfigMap") assertSettings(Object.keys(data));
    for (const { kind, metadata, spec } of resources) {
      if (spec?.serviceName !== undefined)
        assert.ok(
          resources.some((each) => each.kind === "Service" && each.metadata.name === spec.serviceName),
        );
      const wanted = kind === "Service" ? spec.selector : spec?.selector?.matchLabels;
      if (wanted === undefined) continue;
      const selected = withPods.filter((pod) =>
        Object.entries(wanted).every(([label, value]) => pod.spec.template?.metadata.labels[label] === value),
      );
      assert.equal(selected.length, 1, metadata.name);
    }
  });

test("systemd finds nothing wrong with the unit", { skip: !has("systemd-analyze") }, () => {
  const unit = read("systemd/latchkey.service");
  const names = [...unit.matchAll(/^Environment=(\w+)=/gm)].map(([, name = ""]) => name);
  assert.equal(names.length, 4);
  assertSettings(names);
  const folder = mkdtempSync(join(tmpdir(), "latchkey-unit-"));
  const file = join(folder, "latchkey.service");
  writeFileSync(
    file,
    unit.replace(/^ExecStart=\S+/m, `ExecStart=${join(PROJECT, "latchkey")}`).replaceAll("%d", "/run"),
  );
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", file], { encoding: "utf8" });
  rmSync(folder, { recursive: true });
  assert.deepEqual([status, stderr], [0, ""]);
});
