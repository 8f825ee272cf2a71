import { describe, expect, test } from "vitest";
import { drawLabels } from "../src/labels.js";
import { frameOf, type Op, plotOf, Recorder, TWO_BY_TWO } from "./fixtures.js";

function labelsAt(ops: readonly Op[], width: number, span: readonly [number, number] | null = null): string[] {
  const frame = frameOf([plotOf(ops)], width, { span });
  const surface = new Recorder();
  drawLabels(surface, frame, frame.content.rows);
  return surface.labelled.map(({ text }) => text);
}

describe("labels", () => {
  test("are the ops' names if there is room", () => {
    expect(labelsAt(TWO_BY_TWO, 1000).sort()).toEqual(["0B0", "0B1", "0F0", "0F1", "1B0", "1B1", "1F0", "1F1"]);
  });

  test("are the microbatches if there is less room", () => {
    expect(labelsAt(TWO_BY_TWO, 240).sort()).toEqual(["0", "0", "0", "0", "1", "1", "1", "1"]);
  });

  test("label all bars of a kind or none", () => {
    const narrow = Array.from({ length: 10 }, (_, at): Op => [0, at, at + 1, "F", 10 + at]);
    expect(labelsAt([...narrow, [0, 10, 16, "B", 10]], 258)).toEqual(["10"]); // that of the B
  });

  test("return after zooming in, for the visible bars", () => {
    expect(labelsAt(TWO_BY_TWO, 240, [0, 2]).sort()).toEqual(["0F0", "0F1", "1F0"]);
  });

  test("are in the middle of the visible part of a bar", () => {
    const frame = frameOf([plotOf([[0, 0, 10, "F", 0]])], 1014, { span: [5, 10] });
    const surface = new Recorder();
    drawLabels(surface, frame, frame.content.rows);
    expect(surface.labelled.map(({ x }) => x)).toEqual([550]);
  });

  test("have the text colour of their bar", () => {
    const frame = frameOf([plotOf(TWO_BY_TWO)]);
    const surface = new Recorder();
    drawLabels(surface, frame, frame.content.rows);
    const inks = new Map(surface.labelled.map(({ text, ink }) => [text[1], ink]));
    expect(inks).toEqual(
      new Map([
        ["B", "#000000"],
        ["F", "#ffffff"],
      ]),
    );
  });

  test("are absent for messages", () => {
    expect(labelsAt([[0, 0, 10, "SEND_F", 0]], 1000)).toEqual([]);
  });
});
