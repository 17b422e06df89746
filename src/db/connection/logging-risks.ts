import type { Database } from "./pool.ts";

/**
 * Server settings that expose callers' data in the server's log (docs/decisions/0014), each with the risk and the remedy. Secrets
 * are sealed before they reach the server; names, inputs and metadata of runs are not. The embedded server has no such setting.
 */
export async function listLoggingRisks(db: Database): Promise<readonly string[]> {
  const rows = await db.query<{ name: string; setting: string }>(
    `select name, setting from pg_settings where name in ('log_parameter_max_length', 'log_parameter_max_length_on_error',
       'log_statement', 'log_min_duration_statement', 'log_min_duration_sample', 'log_statement_sample_rate',
       'log_transaction_sample_rate', 'log_error_verbosity')
     union all select 'database', quote_ident(current_database())`,
  );
  const settings = new Map(rows.map(({ name, setting }) => [name, setting]));
  const number = (name: string): number => Number(settings.get(name) ?? 0);
  const logsStatements =
    settings.get("log_statement") === "mod" ||
    settings.get("log_statement") === "all" ||
    number("log_min_duration_statement") >= 0 ||
    (number("log_min_duration_sample") >= 0 && number("log_statement_sample_rate") > 0) ||
    number("log_transaction_sample_rate") > 0;
  const risks: string[] = [];
  if (logsStatements && number("log_parameter_max_length") !== 0) {
    risks.push(
      "the database's log shows statements with their values; set log_parameter_max_length = 0, or stop logging statements",
    );
  }
  if (number("log_parameter_max_length_on_error") !== 0)
    risks.push(
      "the database's log shows the values of statements that fail; set log_parameter_max_length_on_error = 0",
    );
  if (settings.get("log_error_verbosity") !== "terse")
    risks.push(
      "the database's log shows rows that break a constraint (DETAIL), which may hold names and inputs; set log_error_verbosity = terse, " +
        `as a superuser for this database: ALTER DATABASE ${settings.get("database") ?? ""} SET log_error_verbosity = terse`,
    );
  return risks;
}
