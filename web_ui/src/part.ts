/** Part of its lane that a bar occupies. */

/** Codes of `Part` in pipeplan.drawing.view. */
export const Part = { FULL: 0, UPPER: 1, LOWER: 2, STRIP: 3, TO_HOST: 4, FROM_HOST: 5, COLLECTIVE: 6 } as const;

/** Return whether the work in a part runs during compute: messages, copies to the host and back, collectives. */
export function isBeside(part: number): boolean {
  return part >= Part.STRIP;
}
