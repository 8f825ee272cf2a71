/** The lines of an answer, as they come. */

/** Cuts parts of a text into whole lines; what has no end yet is kept for the next part. */
export class Lines {
  private rest = "";

  /** The lines that are whole with this part. */
  add(part: string): string[] {
    const found = (this.rest + part).split("\n");
    this.rest = found.pop() ?? "";
    return found.filter((line) => line !== "");
  }
}

export async function* lines(answer: Response): AsyncGenerator<string> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  const cut = new Lines();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield* cut.add(value);
  }
}
