/**
 * Images without a daemon: Debian's mmdebstrap makes a base, buildah builds, and crun runs, all as root. They are unpacked below
 * `node_modules/.cache`, not installed: buildah starts itself again without its environment, so in a mount namespace of their own
 * the loader finds their libraries by its cache.
 */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { unpackDebian, whyNoDebian } from "../debian-packages.ts";
import { until } from "../eventually.ts";

const execute = promisify(execFile);
const PROJECT = resolve(import.meta.dirname, "../..");
const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt";
const OUTPUT_BYTES_MAX = 64 * 1_048_576;
/** As in Debian's own images. */
const UNWANTED = ["doc", "info", "locale", "man"];

/** Why images can't be built here; null: they can. */
export function whyNoImages(): string | null {
  if (process.getuid?.() !== 0) return "only root can build and run images without a daemon";
  return whyNoDebian();
}

export interface ContainerOptions {
  readonly image: string;
  /** In place of the image's command. */
  readonly command?: readonly string[];
  /** In place of the image's own program. */
  readonly entrypoint?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Of the machine, by where the container has them. */
  readonly mounts?: Readonly<Record<string, string>>;
}

/** As an image's configuration has it. */
interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
}

export interface Container {
  readonly child: ChildProcess;
  readonly startedAtMs: number;
  /** What it has written so far. */
  output(): string;
  /** Runs a program in it, as its user. */
  execute(...command: readonly string[]): Promise<string>;
  /** Ends it by SIGTERM; its exit code. */
  end(): Promise<number | null>;
}

/** A store of images and the programs for it; the disposer removes all of it. */
export class Containers implements AsyncDisposable {
  readonly #tools: string;
  readonly #folder = mkdtempSync(join(tmpdir(), "latchkey-images-"));
  readonly #running = new Map<string, Container>();
  #count = 0;

  private constructor(tools: string) {
    this.#tools = tools;
  }

  static async open(): Promise<Containers> {
    const tools = await unpackDebian({
      name: "container-tools",
      what: "Debian's tools for images",
      from: [{ suite: "own", packages: ["buildah", "crun", "mmdebstrap"], withDependencies: true }],
      instead: "Is a Debian mirror reachable?",
    });
    const containers = new Containers(tools);
    await containers.#listLibraries();
    return containers;
  }

  /** `localhost/base`, a minimal Debian, and `localhost/build`, the same with Node and npm. */
  async makeBases(): Promise<void> {
    await this.#buildah("from", "--name", "base", "scratch");
    await this.#buildah("add", "base", await this.#debian(), "/");
    await this.#commit("base", "base");
    await this.#buildah("add", "base", await this.#node(), "/");
    const install = "apt-get update && apt-get install --yes --no-install-recommends libatomic1 libstdc++6";
    await this.#buildah("run", "--isolation", "chroot", "base", "--", "sh", "-c", install);
    await this.#commit("base", "build");
    await this.#buildah("rm", "base");
  }

  /** Builds a target of deploy/Containerfile as `localhost/<target>`. */
  async build(target: string): Promise<void> {
    await this.#buildah(
      "build",
      ...["--isolation", "chroot", "--layers=false", "--pull-never", "--signature-policy", this.#policy],
      ...(existsSync(CERTIFICATES) ? ["--secret", `id=ca,src=${CERTIFICATES}`] : []),
      ...["--build-arg", "BUILD_IMAGE=localhost/build", "--build-arg", "BASE_IMAGE=localhost/base"],
      ...["--file", join(PROJECT, "deploy/Containerfile"), "--target", target, "--tag", target, PROJECT],
    );
  }

  async bytesOf(image: string): Promise<number> {
    const listed = await this.#buildah("images", "--json", `localhost/${image}`);
    // As people read it: "341 MB".
    const [, size = "", unit = ""] = /^([\d.]+) ([kMG])B$/.exec(JSON.parse(listed)[0].size) ?? [];
    return Number(size) * { k: 1e3, M: 1e6, G: 1e9 }[unit as "k" | "M" | "G"];
  }

  /** Starts a container with a read-only root, no capabilities and the machine's network, as the image's own user. */
  async run({ image, ...options }: ContainerOptions): Promise<Container> {
    const name = `c${process.pid}-${this.#count++}`;
    await this.#buildah(
      ...["from", "--name", name, "--pull-never", "--signature-policy", this.#policy, `localhost/${image}`],
    );
    const root = (await this.#buildah("mount", name)).trim();
    const { OCIv1 } = JSON.parse(await this.#buildah("inspect", "--type", "image", image)) as {
      readonly OCIv1: { readonly config: ImageConfig };
    };
    const bundle = join(this.#folder, name);
    mkdirSync(bundle);
    writeFileSync(
      join(bundle, "config.json"),
      JSON.stringify(bundleOf(root, OCIv1.config, { image, ...options })),
    );
    const crun = ["crun", "--cgroup-manager=disabled", "--root", join(this.#folder, "state")];
    const container = this.#follow(crun, { name, bundle, user: OCIv1.config.User });
    this.#running.set(name, container);
    await until("the container is there", async () => {
      if (container.child.exitCode !== null) throw new Error(container.output());
      const state = await this.#run([...crun, "state", name]).catch(() => "");
      return state.includes('"running"');
    });
    return container;
  }

  #follow(
    crun: readonly string[],
    { name, bundle, user }: { readonly name: string; readonly bundle: string; readonly user: string },
  ): Container {
    const startedAtMs = performance.now();
    const child = spawn(...this.#inNamespace([...crun, "run", "--bundle", bundle, name]));
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => (output += text));
    const ended = new Promise<number | null>((done) => child.once("close", (code) => done(code)));
    return {
      child,
      startedAtMs,
      output: () => output,
      execute: async (...command) => await this.#run([...crun, "exec", "--user", user, name, ...command]),
      end: async () => {
        this.#running.delete(name);
        if (child.exitCode === null) await this.#run([...crun, "kill", name, "TERM"]).catch(() => "");
        return await ended;
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const container of this.#running.values()) await container.end();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #policy(): string {
    return join(this.#tools, "etc/containers/policy.json");
  }

  async #commit(container: string, image: string): Promise<void> {
    await this.#buildah("commit", "--quiet", "--signature-policy", this.#policy, container, image);
  }

  async #buildah(...given: readonly string[]): Promise<string> {
    const store = ["--root", join(this.#folder, "images"), "--runroot", join(this.#folder, "run")];
    return await this.#run(["buildah", ...store, "--storage-driver", "vfs", ...given]);
  }

  async #run(command: readonly string[]): Promise<string> {
    const [program, given, options] = this.#inNamespace(command);
    const { stdout } = await execute(program, given, { ...options, maxBuffer: OUTPUT_BYTES_MAX });
    return stdout;
  }

  #inNamespace([...command]: readonly string[]): [
    string,
    readonly string[],
    { readonly env: NodeJS.ProcessEnv },
  ] {
    // Debian's crun refuses to start beside two versions of cgroups, even if it is to use none.
    const hide = "if [ -d /sys/fs/cgroup/unified ]; then mount -t tmpfs none /sys/fs/cgroup; fi";
    const bind = `mount --bind "$0" /etc/ld.so.cache && ${hide} && exec "$@"`;
    const path = [process.env["PATH"], join(this.#tools, "usr/bin"), join(this.#tools, "usr/sbin")].join(":");
    const given = ["--mount", "sh", "-c", bind, join(this.#folder, "ld.cache"), ...command];
    return ["unshare", given, { env: { ...process.env, PATH: path } }];
  }

  async #listLibraries(): Promise<void> {
    const list = join(this.#folder, "ld.conf");
    const triple = `${{ x64: "x86_64", arm64: "aarch64" }[process.arch as string]}-linux-gnu`;
    const folders = [join(this.#tools, "usr/lib", triple), join(this.#tools, "lib", triple)];
    writeFileSync(list, [...folders, `/lib/${triple}`, `/usr/lib/${triple}`, ""].join("\n"));
    await execute("/sbin/ldconfig", ["-X", "-f", list, "-C", join(this.#folder, "ld.cache")]);
  }

  /** Made once: it takes a minute and a half. */
  async #debian(): Promise<string> {
    const file = join(dirname(this.#tools), "debian.tar");
    if (existsSync(file)) return file;
    const made = join(this.#folder, "debian.tar");
    const mirrors = [
      "deb http://deb.debian.org/debian bookworm main",
      "deb http://deb.debian.org/debian-security bookworm-security main",
    ];
    await this.#run([
      ...["mmdebstrap", "--variant=minbase", "--mode=root"],
      ...UNWANTED.map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
      ...["bookworm", made, ...mirrors],
    ]);
    cpSync(made, `${file}.new`);
    renameSync(`${file}.new`, file);
    return file;
  }

  /** Node of this repository, and the machine's npm, where official images have them. */
  async #node(): Promise<string> {
    const root = join(this.#folder, "node");
    const [programs, modules] = [join(root, "usr/local/bin"), join(root, "usr/local/lib/node_modules")];
    for (const folder of [programs, modules]) mkdirSync(folder, { recursive: true });
    const { stdout } = await execute("npm", ["root", "--global", "--loglevel=error"]);
    cpSync(process.execPath, join(programs, "node"));
    cpSync(join(stdout.trim(), "npm"), join(modules, "npm"), { recursive: true });
    symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(programs, "npm"));
    return root;
  }
}

/** What `crun` is told: https://github.com/opencontainers/runtime-spec. */
function bundleOf(
  root: string,
  image: ImageConfig,
  { command, entrypoint, environment, mounts = {} }: ContainerOptions,
): object {
  const [uid, gid] = image.User.split(":").map(Number);
  const from = (type: string, destination: string, ...options: readonly string[]): object => ({
    type,
    source: type,
    destination,
    options,
  });
  return {
    ociVersion: "1.0.0",
    root: { path: root, readonly: true },
    hostname: "latchkey",
    process: {
      user: { uid, gid },
      cwd: image.WorkingDir,
      args: entrypoint ?? [...image.Entrypoint, ...(command ?? image.Cmd)],
      env: [...image.Env, ...Object.entries(environment).map(([name, value]) => `${name}=${value}`)],
      capabilities: { bounding: [], effective: [], permitted: [], inheritable: [], ambient: [] },
      noNewPrivileges: true,
    },
    mounts: [
      from("proc", "/proc"),
      from("tmpfs", "/dev", "nosuid", "strictatime", "mode=755"),
      from("tmpfs", "/dev/shm", "nosuid", "noexec", "nodev", "mode=1777"),
      from("tmpfs", "/tmp", "nosuid", "nodev", "mode=1777"),
      ...Object.entries(mounts).map(([destination, source]) => ({
        ...{ type: "bind", source, destination },
        options: ["bind", "rw", "nosuid", "nodev"],
      })),
    ],
    linux: { namespaces: [{ type: "pid" }, { type: "ipc" }, { type: "uts" }, { type: "mount" }] },
  };
}
