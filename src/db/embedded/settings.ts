/**
 * Settings on the server's command line at every start, which override `postgresql.conf`, because the guarantees of the service
 * depend on them. `port` and `unix_socket_directories` are added at start.
 */
const fixed = {
  // Only the owner has access to the password, the socket and the folder; the server does not listen on TCP.
  listen_addresses: "",
  unix_socket_permissions: "0700",
  password_encryption: "scram-sha-256",
  // An acknowledged write survives a crash.
  fsync: "on",
  synchronous_commit: "on",
  full_page_writes: "on",
  // docs/decisions/0014: the server's log shows no values of callers.
  log_parameter_max_length: "0",
  log_parameter_max_length_on_error: "0",
  log_error_verbosity: "terse",
  log_statement: "none",
  log_destination: "stderr",
  logging_collector: "off",
  log_checkpoints: "off",
  log_line_prefix: "%m [%p] %a ",
  log_timezone: "UTC",
  timezone: "UTC",
};

/** Written into `postgresql.conf` once, by initdb: the operator may tune these there. */
const tunable = {
  max_connections: "200",
  shared_buffers: "128MB",
};

export function serverArguments(dataFolder: string, socketFolder: string, port: number): string[] {
  const all = { ...fixed, port: String(port), unix_socket_directories: socketFolder };
  return ["-D", dataFolder, ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
}

/** UTF-8; code-point order, and letter case by Unicode, the same on every machine (no system locale). */
export function initdbArguments(dataFolder: string, user: string, passwordFile: string): string[] {
  return [
    `--pgdata=${dataFolder}`,
    `--username=${user}`,
    `--pwfile=${passwordFile}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--data-checksums",
    "--no-instructions",
    ...Object.entries(tunable).flatMap(([name, value]) => ["--set", `${name}=${value}`]),
  ];
}
