/** Lines of cells, the first of them the headings. */
export function renderLines(lines: readonly (readonly string[])[], markdown: boolean): string {
  if (markdown) {
    const [heading = [], ...rest] = lines;
    const rule = heading.map((_, index) => (index === 0 ? "---" : "---:"));
    return [heading, rule, ...rest].map((line) => `| ${line.join(" | ")} |`).join("\n");
  }
  const widths = (lines[0] ?? []).map((_, index) =>
    Math.max(...lines.map((line) => line[index]?.length ?? 0)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, index) => (index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[index] ?? 0)))
        .join("  "),
    )
    .join("\n");
}
