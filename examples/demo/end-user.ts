import { CommandFailed } from "#cli/output.ts";

/**
 * Fills in the hosted form like a browser without scripts: opens the page, keeps its hidden inputs, submits. Returns the URL to
 * which the service sends the end user.
 */
export async function fillIn(hostedUrl: string, values: Readonly<Record<string, string>>): Promise<string> {
  const page = await (await fetch(hostedUrl)).text();
  const form = new URLSearchParams();
  for (const [input] of page.matchAll(/<input\b[^>]*>/g)) {
    const attribute = (name: string): string => new RegExp(`\\b${name}="([^"]*)"`).exec(input)?.[1] ?? "";
    if (attribute("type") === "hidden") form.set(attribute("name"), attribute("value"));
  }
  for (const [name, value] of Object.entries(values)) form.set(name, value);
  const submitted = await fetch(hostedUrl, {
    method: "POST",
    body: form,
    redirect: "manual",
    headers: { origin: new URL(hostedUrl).origin, "sec-fetch-site": "same-origin" },
  });
  const location = submitted.headers.get("location");
  if (submitted.status !== 303 || location === null) {
    throw new CommandFailed(
      `The hosted form answered ${submitted.status} instead of sending the end user back.`,
    );
  }
  return location;
}
