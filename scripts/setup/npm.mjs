/** Runs `npm ci` so that it works for any user and configuration, and says what to do when it fails. */
import { spawn } from "node:child_process";
import { accessSync, constants, existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { modules, Refusal, root, say } from "./project.mjs";

const isTerminal = process.stderr.isTTY === true && !process.env["CI"];
const HEARTBEAT_MS = 1_000;
const PROGRESS_EVERY_MS = 15_000;

const REMEDIES = [
  [/\bEUSAGE\b/, "package.json and package-lock.json do not fit together. Run: npm install"],
  [
    /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|EIDLETIMEOUT)\b|network/,
    "The npm registry cannot be reached. Check the network or the proxy (npm config get registry; npm config get proxy), then run the command again.",
  ],
  [
    /CERT|certificate/,
    "The registry's certificate is not trusted. Behind a proxy of your own set NODE_EXTRA_CA_CERTS to its certificate.",
  ],
  [/\bENOSPC\b/, "The disk is full: about 700 MB are needed here."],
  [/\bEINTEGRITY\b/, "A package is not the one that package-lock.json names. Run: npm cache clean --force"],
  [/\b(E401|E403)\b/, "The registry refused access. Look at the registry and the token in your .npmrc."],
  [
    /\b(E404|ETARGET|ENOVERSIONS)\b/,
    "The registry does not have a package of the lock file. Look at: npm config get registry",
  ],
  [
    /\b(EACCES|EPERM|EROFS)\b/,
    "A folder cannot be written. Give this user the folder named above, or run as its owner.",
  ],
];

/** Refuses early, with the folder's name, what npm would refuse in its own words. */
export function checkWritable() {
  for (const folder of existsSync(modules) ? [root, modules] : [root]) {
    try {
      accessSync(folder, constants.W_OK);
    } catch (error) {
      throw new Refusal(
        `The dependencies have to be installed, but ${folder} cannot be written (${error.code}). ` +
          "Run as the owner of the folder, or copy the project to a folder of your own.",
      );
    }
  }
}

/** npm's cache in the project when the home folder is no place for it (`nobody`, a read-only home). */
function cacheArguments() {
  if (Object.keys(process.env).some((name) => name.toLowerCase() === "npm_config_cache")) return [];
  const usual = join(homedir(), ".npm");
  try {
    accessSync(existsSync(usual) ? usual : homedir(), constants.W_OK);
    return [];
  } catch {
    return [`--cache=${join(root, ".cache", "npm")}`];
  }
}

/** Tries for half a minute: npm's own patience, over a minute, looks like a hang when there is no network. */
const PATIENCE = {
  npm_config_fetch_retries: "3",
  npm_config_fetch_retry_mintimeout: "2000",
  npm_config_fetch_retry_maxtimeout: "10000",
};

/** The machine's PATH: what is being replaced must not be run meanwhile. */
function outerEnvironment() {
  const path = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => !folder.startsWith(modules));
  const environment = { ...PATIENCE, ...process.env, PATH: path.join(delimiter) };
  // A user's or a pipeline's settings must not leave half of the tree out.
  for (const name of Object.keys(environment)) {
    if (/^npm_config_(omit|only|production|dry_run|global|prefix|workspaces?)$/i.test(name))
      delete environment[name];
  }
  delete environment["NODE_ENV"];
  return environment;
}

function startProgress() {
  const started = Date.now();
  const seconds = () => Math.round((Date.now() - started) / 1000);
  let lastLine = started;
  const tick = () => {
    if (isTerminal) {
      process.stderr.write(".");
    } else if (Date.now() - lastLine >= PROGRESS_EVERY_MS) {
      lastLine = Date.now();
      say(`latchkey: still installing, ${seconds()} s`);
    }
  };
  const timer = setInterval(tick, HEARTBEAT_MS);
  return () => {
    clearInterval(timer);
    if (isTerminal) process.stderr.write("\n");
    return seconds();
  };
}

/** Runs `npm ci` to its end; answers with its exit code and the end of what it printed. */
async function runNpm(lock) {
  const options = [
    "ci",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    "--no-engine-strict",
  ];
  const kept = ["--include=dev", "--include=optional", "--no-update-notifier", "--prefer-offline"];
  const child = spawn("npm", [...options, ...kept, ...cacheArguments()], {
    cwd: root,
    env: outerEnvironment(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const collect = (chunk) => (output = (output + chunk).slice(-20_000));
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  const heartbeat = setInterval(() => lock.touch(), HEARTBEAT_MS);
  const passOn = (signal) => child.kill(signal);
  process.on("SIGINT", passOn).on("SIGTERM", passOn);
  try {
    return await new Promise((resolve) => {
      child.on("error", (error) => resolve({ code: undefined, error, output }));
      child.on("close", (code) => resolve({ code, output }));
      // Both processes: when this one is killed, npm may still be writing.
      if (child.pid !== undefined) lock.setPids([process.pid, child.pid]);
    });
  } finally {
    clearInterval(heartbeat);
    process.off("SIGINT", passOn).off("SIGTERM", passOn);
  }
}

function npmFailure({ code, error, output }) {
  if (error?.code === "ENOENT") {
    return new Refusal(
      "npm was not found. It comes with Node from https://nodejs.org; on Debian it is the package `npm`.",
    );
  }
  const lines = output.trim().split("\n");
  const text = [...lines.slice(0, 20), ...(lines.length > 20 ? ["…"] : [])].join("\n").trim();
  const remedy = REMEDIES.find(([pattern]) => pattern.test(output))?.[1] ?? "npm's own words are above.";
  const status = error === undefined ? `exit ${code ?? "by a signal"}` : error.message;
  return new Refusal(`${text === "" ? "" : `${text}\n\n`}latchkey: npm ci failed (${status}). ${remedy}`);
}

/** `npm ci` with progress on stderr; returns the seconds it took, throws a Refusal with the remedy. */
export async function installPackages(lock) {
  const stopProgress = startProgress();
  const result = await runNpm(lock);
  const seconds = stopProgress();
  if (result.code !== 0) throw npmFailure(result);
  return seconds;
}
