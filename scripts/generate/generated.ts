/** A committed file that a script writes. */
export type Generated = {
  /** Relative to the repository's root. */
  path: string;
  /** Only a block of the file is generated. A file that is generated whole is marked in .gitattributes. */
  isPart?: true;
  /** The whole text of the file; undefined means that there is nothing to write. Must not depend on time or machine. */
  content: () => Promise<string | undefined>;
};
