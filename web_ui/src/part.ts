/** Which part of its lane a bar takes. */

/** Codes of `Part` in pipeplan.drawing.view. */
export const Part = { FULL: 0, UPPER: 1, LOWER: 2, STRIP: 3 } as const;
