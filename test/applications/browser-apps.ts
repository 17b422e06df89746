import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { startPackage, type Program } from "./program.ts";
import { PASSWORD, USER } from "./stage.ts";

/** Packages of the registry, and how many versions each has. */
export const PACKAGES = { ledger: 10_000, parcels: 1 } as const;

/** Verdaccio, a registry of npm packages: its pages are drawn by script, and only users see a package. */
export async function startRegistry(): Promise<Program> {
  return await startPackage({
    name: "verdaccio",
    packages: { verdaccio: "6.10.4" },
    // It asks for a tag, which some registries do not have.
    overrides: { "node-fetch": "2.6.7" },
    program: "verdaccio/bin/verdaccio",
    configure: ({ folder, port }) => {
      const [storage, users] = [join(folder, "storage"), join(folder, "users")];
      const proof = createHash("sha1").update(PASSWORD).digest("base64");
      writeFileSync(users, `${USER}:{SHA}${proof}\n`);
      const settings = join(folder, "config.yaml");
      writeFileSync(
        settings,
        `storage: ${storage}
auth: { htpasswd: { file: ${users}, max_users: -1 } }
security: { api: { jwt: { sign: { expiresIn: 1h } } } }
packages: { "**": { access: $authenticated, publish: $authenticated } }
log: { type: stdout, format: json, level: warn }
`,
      );
      for (const [name, count] of Object.entries(PACKAGES)) plantPackage(storage, name, count);
      const list = { list: Object.keys(PACKAGES), secret: "0123456789abcdef0123456789abcdef" };
      writeFileSync(join(storage, ".verdaccio-db.json"), JSON.stringify(list));
      return { arguments: ["--config", settings, "--listen", `127.0.0.1:${port}`] };
    },
  });
}

/** In the form in which Verdaccio keeps what was published. */
function plantPackage(storage: string, name: string, count: number): void {
  const names = Array.from({ length: count }, (_, index) => `1.0.${index}`);
  const versionOf = (version: string): object => ({
    name,
    version,
    description: `The ${name} of today`,
    dist: {
      shasum: "0".repeat(40),
      tarball: `http://127.0.0.1/${name}/-/${name}-${version}.tgz`,
    },
  });
  mkdirSync(join(storage, name), { recursive: true });
  writeFileSync(
    join(storage, name, "package.json"),
    JSON.stringify({
      _id: name,
      _rev: "1-0",
      name,
      versions: Object.fromEntries(names.map((version) => [version, versionOf(version)])),
      time: Object.fromEntries(names.map((version) => [version, "2026-11-01T10:00:00.000Z"])),
      "dist-tags": { latest: names.at(-1) },
      users: {},
      readme: "",
      _uplinks: {},
      _distfiles: {},
      _attachments: {},
    }),
  );
}

/** The tabs of the editor of flows. */
export const FLOWS = ["Invoices", "Reminders", "Parcels"];

/** Node-RED, an editor and runtime of flows, with users of its own. */
export async function startFlowEditor(): Promise<Program> {
  return await startPackage({
    name: "node-red",
    packages: { "node-red": "5.0.7" },
    program: "node-red/red.js",
    configure: ({ root, folder, port }) => {
      const load = createRequire(join(root, "node_modules/node-red/package.json"));
      const bcrypt = load("bcryptjs") as { hashSync(text: string, rounds: number): string };
      const settings = {
        uiHost: "127.0.0.1",
        uiPort: port,
        flowFile: "flows.json",
        credentialSecret: false,
        telemetry: { enabled: false, updateNotification: false },
        editorTheme: { tours: false },
        externalModules: { autoInstall: false, palette: { allowInstall: false } },
        adminAuth: {
          type: "credentials",
          users: [{ username: USER, password: bcrypt.hashSync(PASSWORD, 8), permissions: "*" }],
        },
      };
      writeFileSync(join(folder, "settings.cjs"), `module.exports = ${JSON.stringify(settings)};\n`);
      const flows = FLOWS.map((label, index) => ({ id: `flow${index}`, type: "tab", label }));
      writeFileSync(join(folder, "flows.json"), JSON.stringify(flows));
      return { arguments: ["--settings", join(folder, "settings.cjs"), "--userDir", folder] };
    },
  });
}
