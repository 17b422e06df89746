import { RE2JS } from "re2js";

/**
 * JSONata's regular expressions on RE2: linear in the text, so `/^(a+)+$/` can't hang a thread (docs/decisions/0016). RE2 has no
 * look-ahead and no back-references; `compileRegex` rejects them.
 */

const compiled = new WeakMap<RegExp, RE2JS>();

/** Throws re2js's exception for a pattern that RE2 doesn't support. */
export function compileRegex(pattern: RegExp): RE2JS {
  const held = compiled.get(pattern);
  if (held !== undefined) return held;
  const made = RE2JS.compile(RE2JS.translateRegExp(pattern));
  compiled.set(pattern, made);
  return made;
}

interface Match extends Array<string | undefined> {
  index: number;
}

/**
 * The interface of jsonata's option `RegexEngine`: `new Engine(regexp)`, then `lastIndex` and `exec` as on a global RegExp. A
 * class because jsonata calls it with `new`.
 */
export class RegexEngine {
  lastIndex = 0;
  readonly #regex: RE2JS;

  constructor(pattern: RegExp) {
    this.#regex = compileRegex(pattern);
  }

  exec(text: string): Match | null {
    const matcher = this.#regex.matcher(text);
    if (this.lastIndex > text.length || !matcher.find(this.lastIndex)) {
      this.lastIndex = 0;
      return null;
    }
    const groups: (string | undefined)[] = [];
    for (let index = 0; index <= matcher.groupCount(); index++)
      groups.push(matcher.group(index) ?? undefined);
    this.lastIndex = matcher.end();
    return Object.assign(groups, { index: matcher.start() });
  }
}
