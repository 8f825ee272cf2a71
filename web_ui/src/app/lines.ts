/** Lines of a streamed response. */

/** Splits the parts of a text into lines; an incomplete line waits for the next part. */
export class Lines {
  private rest = "";

  /** Return the lines that this part completes. */
  add(part: string): string[] {
    const whole = (this.rest + part).split("\n");
    this.rest = whole.pop() ?? "";
    return whole.filter((line) => line !== "");
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
