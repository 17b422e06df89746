// Written by `npm run generate` from src/hosted/browser/reference.ts.
// Runs on the API reference, `/docs`, which is complete without it: the language of the examples, Copy, and the search.

const LANGUAGES = ["shell", "typescript", "python"];
const REMEMBERED = "latchkey-reference-language";
const COPIED_MS = 1_500;

const root = document.documentElement;
const all =                        (selector        )               => [
  ...document.querySelectorAll   (selector),
];

/** Null where the browser keeps nothing for this page. */
function recall()                {
  try {
    return localStorage.getItem(REMEMBERED);
  } catch {
    return null;
  }
}

function remember(language        )       {
  try {
    localStorage.setItem(REMEMBERED, language);
  } catch {
    // It is chosen again next time.
  }
}

function offerLanguages()       {
  const choices = all                  ("input[name=language]");
  const show = (language        )       => {
    root.dataset["language"] = language;
    for (const choice of choices) choice.checked = choice.value === language;
  };
  for (const choice of choices)
    choice.addEventListener("change", () => {
      // What one reads stays where it is, although the examples above it change their height.
      const kept = [...document.querySelectorAll("article")].find(
        (article) =>
          article.getBoundingClientRect().bottom > 0 && article.getBoundingClientRect().top < innerHeight,
      );
      const before = kept?.getBoundingClientRect().top ?? 0;
      show(choice.value);
      remember(choice.value);
      window.scrollBy(0, (kept?.getBoundingClientRect().top ?? 0) - before);
    });
  const last = recall();
  show(last !== null && LANGUAGES.includes(last) ? last : "shell");
}

function offerCopies()       {
  // A page that came unencrypted from another machine has no clipboard.
  const { clipboard } = navigator                                      ;
  if (!clipboard) return;
  for (const figure of all("figure")) {
    const [code, caption] = [figure.querySelector("code"), figure.querySelector("figcaption")];
    if (!code || !caption) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    const operation = figure.closest("article, section")?.querySelector("h2, h3")?.textContent ?? "";
    button.setAttribute("aria-label", `Copy ${caption.textContent}: ${operation}`);
    button.addEventListener("click", () => {
      void clipboard.writeText(code.textContent ?? "").then(() => {
        button.textContent = "Copied";
        setTimeout(() => {
          button.textContent = "Copy";
        }, COPIED_MS);
      });
    });
    caption.append(button);
  }
}

function offerSearch()       {
  const field = document.querySelector                  ("#search");
  const found = document.querySelector             ("#found");
  if (!field || !found) return;
  const articles = all("article.operation");
  const texts = new Map(articles.map((article) => [article, (article.textContent ?? "").toLowerCase()]));
  const search = ()       => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const article of articles) {
      const fits = words.every((word) => texts.get(article)?.includes(word));
      if (fits) count++;
      article.hidden = !fits;
      const link = document.querySelector             (`nav a[href="#${article.id}"]`);
      if (link?.parentElement) link.parentElement.hidden = !fits;
    }
    for (const section of all("main > section:has(article)"))
      section.hidden = section.querySelector("article:not([hidden])") === null;
    for (const group of all("nav .group"))
      group.hidden = group.nextElementSibling?.querySelector("li:not([hidden])") === null;
    found.textContent = words.length === 0 ? "" : `${count} of ${articles.length} operations`;
  };
  field.addEventListener("input", search);
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLInputElement && event.target.type !== "radio";
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    field.focus();
  });
}

for (const tool of all("[data-tool]")) tool.hidden = false;
offerLanguages();
offerCopies();
offerSearch();
export {};
