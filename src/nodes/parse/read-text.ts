import { limits } from "#domain/limits.ts";
import { validRecord, type RecordBatches } from "#domain/record.ts";
import { NodeFailure } from "#nodes/define-node.ts";

/** Outputs one record with the text in this field. Throws NodeFailure if the text is too long for a field. */
export async function* readWholeText(
  text: AsyncIterable<string>,
  field: string,
  place: string,
): RecordBatches {
  const pieces: string[] = [];
  let characters = 0;
  for await (const piece of text) {
    characters += piece.length;
    if (characters > limits.textFieldCharactersMax)
      throw new NodeFailure(
        `${place} is longer than ${limits.textFieldCharactersMax} characters, the maximum for a field. ` +
          "Use `save: file` to keep it as a file.",
      );
    pieces.push(piece);
  }
  yield [validRecord({ [field]: pieces.join("") })];
}
