#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { serveMcp, type ServerOptions } from "./mcp-server.ts";

const USAGE = `latchkey-mcp: Latchkey's operator API as tools of the Model Context Protocol, on standard input and output

  --url URL        the service; default: LATCHKEY_URL
  --allow-writes   offer tools that change something
  --records        show records of end users, and what callers named

The operator token is LATCHKEY_TOKEN, or in the file LATCHKEY_TOKEN_FILE. An admin creates one:
  latchkey tokens create --role viewer --name assistant --expires 30d`;

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** Ends the program with the usage error's exit code. Standard output belongs to the protocol. */
function refuse(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

function readToken(): string {
  const { LATCHKEY_TOKEN: token, LATCHKEY_TOKEN_FILE: file } = process.env;
  if (token) return token.trim();
  if (!file) return refuse("There is no operator token: set LATCHKEY_TOKEN, or LATCHKEY_TOKEN_FILE.");
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    const { code = "error" } = error as NodeJS.ErrnoException;
    return refuse(`LATCHKEY_TOKEN_FILE: ${file} can't be read (${code}).`);
  }
}

function readUrl(text: string | undefined): string {
  if (text === undefined || text === "") return refuse("Name the service: --url https://…, or LATCHKEY_URL.");
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username)
    return refuse("--url must be an http or https URL without query.");
  if (url.protocol === "http:" && !LOOPBACK.test(url.hostname))
    return refuse(`${text} is not encrypted: anyone on the path could read the token. Use https://.`);
  return text.replace(/\/+$/, "");
}

function readOptions(): ServerOptions {
  const boolean = { type: "boolean", default: false } as const;
  let values;
  try {
    ({ values } = parseArgs({
      options: { url: { type: "string" }, "allow-writes": boolean, records: boolean, help: boolean },
    }));
  } catch (error) {
    return refuse(`${(error as Error).message}\n\n${USAGE}`);
  }
  if (values.help) {
    process.stdout.write(`${USAGE}\n`);
    process.exit(0);
  }
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
    readonly version: string;
  };
  return {
    url: readUrl(values.url ?? process.env["LATCHKEY_URL"]),
    token: readToken(),
    allowWrites: values["allow-writes"],
    records: values.records,
    version,
  };
}

await serveMcp(process.stdin, process.stdout, readOptions());
