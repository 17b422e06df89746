/** A file that somebody has handed in on the upload form. */
export interface StoredDocument {
  readonly id: string;
  readonly title: string;
  readonly file_name: string;
  readonly media_type: string;
  readonly bytes: number;
  readonly sha256: string;
}
