/**
 * Our own odd words, each with the better one beside it: what readers had to read twice. A word gets onto the list when somebody
 * stumbles over it, and the places where it stood are put right with it.
 */
import { lineAt, type Finding, type Source } from "./sources.ts";

interface OddWord {
  readonly pattern: RegExp;
  readonly better: string;
  /** Where it is odd; everywhere unless said. */
  readonly where?: RegExp;
}

/** What people read without the code beside it: pages, the dashboard, the reference. */
const READ_ALONE = /\.md$|^ui\/|^src\/contract\//;

const ODD_WORDS: readonly OddWord[] = [
  { pattern: /\bwho(?:so)?m?ever\b/gi, better: "`anyone who`, or say who it is" },
  {
    pattern:
      /(?:^|[.!:] |[|>"] ?|^- )What (?:is|was|has|can|comes|may|must|needs|stands|it) [^.?!:;"`<>|]*? (?:is|are|was|were|becomes?|fails?|asks?|wants|counts|stays?|passes)\b/gm,
    better: "a noun as the subject: `a value that …`",
    where: READ_ALONE,
  },
  { pattern: /\b(?:password|the one) until now\b/gi, better: "`the current password`" },
  { pattern: /\bas ever\b/gi, better: "`as before`" },
  { pattern: /\bfor ever\b/gi, better: "`forever`, or `permanently`" },
  {
    pattern: /\bhalf of them, at most\b|\bnine of ten\b|\ball but one of a hundred\b/gi,
    better: "`median`, `90th percentile`, `99th percentile`",
  },
  { pattern: /\bno \w+ is like that\b/gi, better: "`no entries match`" },
  { pattern: /\btake (?:a|the) filter away\b/gi, better: "`remove a filter`" },
  { pattern: /\bno such page for you\b/gi, better: "`page not found, or you have no access to it`" },
  { pattern: /\bmeans nothing without\b/gi, better: "`has no effect unless … is set`" },
  { pattern: /\bh(?:old|olds|eld) for dead\b/gi, better: "`considered dead`" },
  { pattern: /\bha(?:s|ve) the say\b/gi, better: "`decides`" },
  { pattern: /\bin the clothes of\b/gi, better: "`written as`" },
  { pattern: /\b(?:the operator's|a|one's) word on\b/gi, better: "`decision on`" },
  { pattern: /\bmend(?:s|ed|ing)?\b/gi, better: "`fix`, `repair`" },
  { pattern: /\bgets? to know\b/gi, better: "`learns`, `is told`" },
  { pattern: /(?:"|\*\* |\. )Since when\b/g, better: "`When it began to …`" },
  {
    pattern: /\bsign-in names?\b/gi,
    better: "`email`",
    where: /^ui\/|^src\/(?:cli|contract|actions|domain)\//,
  },
  {
    pattern:
      /\bis no (?:URL|JSON|RE2|CSS|PDF|spreadsheet|origin|network|setting|picture|certificate|number)\b/g,
    better: "`is not a …`",
    where: /^src\/.*(?<!test)\.ts$/,
  },
  { pattern: /\bstands here twice\b/gi, better: "`is listed twice`, `occurs twice`", where: /^src\// },
  { pattern: /\b(?:nobody|who) waits for it\b/gi, better: "`not awaited`", where: /^src\// },
  {
    pattern: /\b(?:seal|bind|bound|sealed|sealing) (?:\w+ )?anew\b/gi,
    better: "`reseal`, `rebind`",
    where: /^src\/|^ui\//,
  },
  { pattern: /\bstand(?:s|ing)? in line\b/gi, better: "`queue`, `be queued`", where: /^src\/|^docs\// },
  { pattern: /\bof whatever account\b/gi, better: "`of any account`", where: /^src\// },
  {
    pattern: /\btak(?:e|es|en|ing) (?:\w+ ){0,4}second factor away\b/gi,
    better: "`reset the second factor`",
  },
  { pattern: /\bleave it out of the files\b/gi, better: "`remove it from the files`" },
  {
    pattern: /\bwants? (?:a second admin|two admins)\b/gi,
    better: "`requires a second admin`",
    where: /^src\/|^ui\//,
  },
  { pattern: /\bmay do once more\b|\bworth nothing any more\b/gi, better: "`allow it again`, `invalidated`" },
  { pattern: /\bby another way than\b/gi, better: "`over a channel other than`" },
  { pattern: /\b[Ss]hown this once\b/g, better: "`shown only once`" },
  { pattern: /\b(?:the youngest|youngest) first\b/gi, better: "`newest first`" },
  {
    pattern: /\bJSON a line\b|\bone a line\b|\ba line each\b|\bobjects? a line\b/gi,
    better: "`one per line`",
    where: /^src\/|^ui\//,
  },
  {
    pattern:
      /\b(?:go|goes|went|gone|going) on(?= (?:with|from|working|waiting|when|where|until|after|as)\b|[.,;:])/gi,
    better: "`continue`, `keep …ing`",
    where: /^src\/|^ui\//,
  },
  { pattern: /\bunder way\b/gi, better: "`in progress`", where: /^src\/|^ui\// },
  { pattern: /\banew\b/gi, better: "`again`, or `re…` (reseal, restart)", where: /^src\/|^ui\// },
  { pattern: /\bonce more\b/gi, better: "`again`", where: /^src\/|^ui\// },
  { pattern: /\bfor good\b/gi, better: "`permanently`", where: /^src\/|^ui\// },
  { pattern: /\bby and by\b/gi, better: "`gradually`" },
  {
    pattern: /\b(?:it )?must give\b|\bgives (?:nothing|\$\{)/g,
    better: "`must be`, `evaluates to`, `has no value`",
    where: /^src\//,
  },
  {
    pattern:
      /\bcarr(?:y|ies|ied|ying) (?:a |one |the )?(?:runs?|suspects?)\b|\bis carried\b|\b(?:run|suspect)s? .{0,20}carried\b/gi,
    better: "`execute`",
    where: /^src\/|^ui\/|^scripts\//,
  },
  {
    pattern: /\ba text of more than\b|\bto a text\b|\bas a text\b/gi,
    better: "`a string`, `text`",
    where: /^src\//,
  },
  { pattern: /\bstands? back\b/gi, better: "`yields`, `has a lower priority`", where: /^src\/|^ui\// },
];

/** Places where a word may stand: these are checked as the others once nobody works on them any more. */
const NOT_YET: readonly string[] = [];
/** This list and its test, applied migrations (the database keeps their hashes), and words of others. */
const NEVER = ["scripts/prose/words.ts", "test/prose.test.ts", "src/db/migrations/", "spec/"];

/** The odd words of one file. */
export function checkWords({ file, text }: Source): readonly Finding[] {
  if ([...NOT_YET, ...NEVER].some((place) => file.startsWith(place))) return [];
  return ODD_WORDS.filter(({ where }) => where === undefined || where.test(file)).flatMap(
    ({ pattern, better }) =>
      [...text.matchAll(pattern)].map(({ index, 0: found }) => ({
        file,
        line: lineAt(text, index + found.length - 1),
        problem: `"${found.trim()}" is an odd word of ours; better: ${better}`,
      })),
  );
}
