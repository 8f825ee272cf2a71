import { describe, expect, it } from "vitest";
import { BarPlaces } from "../src/edit/bars.js";
import { History } from "../src/edit/history.js";
import { Session } from "../src/edit/session.js";
import { asCsv, kindOf, linesOf, opsOf, rowLines, withMoved, wordAt, wordsOf } from "../src/edit/words.js";
import { TWO_BY_TWO, viewOf } from "./fixtures.js";

const TEXT = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1";

describe("words", () => {
  it("are separated by blanks, commas and tabs", () => {
    expect(wordsOf(" 0F0,\t0B0\u00a0x").map(({ text }) => text)).toEqual(["0F0", "0B0", "x"]);
    expect(wordsOf("0F0  0B0")).toEqual([
      { from: 0, to: 3, text: "0F0" },
      { from: 5, to: 8, text: "0B0" },
    ]);
    expect(wordsOf("")).toEqual([]);
  });

  it("name one op, or two overlapped ops", () => {
    expect(opsOf("0F0")).toEqual(["0F0"]);
    expect(opsOf("(0F7;7B3)OVERLAP_F_B")).toEqual(["0F7", "7B3"]);
    expect(opsOf("(0F7;7B3")).toEqual(["(0F7;7B3"]);
  });

  it("have a kind, with or without a microbatch", () => {
    const kinds = ["12F3", "1B2.3", "0SEND_F1", "3UNSHARD", "(0F7;7B3)OVERLAP_F_B", "x", ""].map(kindOf);
    expect(kinds).toEqual(["F", "B", "SEND_F", "UNSHARD", "F", "", ""]);
  });

  it("are found at a column, also right behind them", () => {
    expect([0, 3, 4, 7].map((column) => wordAt("0F0 0B0", column))).toEqual([0, 0, 1, 1]);
    expect(wordAt("0F0   0B0", 4)).toBe(-1);
    expect(wordAt("", 0)).toBe(-1);
  });

  it("move along their line", () => {
    expect(withMoved("a b c d", 0, 2)).toBe("b c a d");
    expect(withMoved("a b c d", 3, 0)).toBe("d a b c");
    expect(withMoved("a, b\tc", 1, 9)).toBe("a c b");
    expect(withMoved("a b", 5, 0)).toBe("a b");
  });
});

describe("lines", () => {
  it("have the line ends of any system", () => expect(linesOf("a\r\nb\rc\n")).toEqual(["a", "b", "c", ""]));

  it("are rows of ranks if there are as many, else the lines that are not blank", () => {
    expect(rowLines(["0F0", "", "1F0", ""], 3)).toEqual([0, 1, 2]);
    expect(rowLines(["0F0", "", "1F0", ""], null)).toEqual([0, 2]);
    expect(rowLines(["", "0F0"], 1)).toEqual([1]);
    expect(rowLines([""], null)).toEqual([]);
  });

  it("convert to CSV", () => expect(asCsv("0F0  0B0\n\n1F0 1B0\n")).toBe("0F0,0B0\n1F0,1B0\n"));
});

describe("history", () => {
  it("goes back and forth, and discards undone steps after a new one", () => {
    const history = new History("a");
    history.add("b", { line: 0, word: 1 }, false, 0);
    history.add("c", null, false, 0);
    expect(history.undo()?.text).toBe("b");
    expect(history.undo()).toEqual({ text: "a", place: { line: 0, word: 1 } });
    expect(history.undo()).toBeNull();
    expect(history.redo()?.text).toBe("b");
    history.add("d", null, false, 0);
    expect(history.redo()).toBeNull();
    expect(history.undo()?.text).toBe("b");
  });

  it("goes to a text of one of its steps, or adds it", () => {
    const history = new History("a");
    history.add("b", null, false, 0);
    history.add("c", null, false, 0);
    history.goTo("a");
    expect(history.redo()?.text).toBe("b");
    history.goTo("d");
    expect(history.undo()?.text).toBe("b");
    expect(history.redo()?.text).toBe("d");
  });

  it("merges consecutive typing into one step", () => {
    const history = new History("a");
    for (const [at, text] of ["ab", "abc", "abcd"].entries()) history.add(text, null, true, 100 * at);
    history.add("abcde", null, true, 5000);
    expect(history.undo()?.text).toBe("abcd");
    expect(history.undo()?.text).toBe("a");
  });

  it("does not merge typing with an earlier move", () => {
    const history = new History("a");
    history.add("b", null, false, 0);
    history.add("bc", null, true, 1);
    expect(history.undo()?.text).toBe("b");
  });

  it("ignores unchanged texts, and has a maximum length", () => {
    const history = new History("0");
    history.add("0", null, false, 0);
    expect(history.canUndo).toBe(false);
    for (let at = 1; at <= 2000; at++) history.add(String(at), null, false, 0);
    let steps = 0;
    while (history.undo() !== null) steps += 1;
    expect(steps).toBeLessThan(1000);
    expect(history.redo()).not.toBeNull();
  });
});

describe("bars and words", () => {
  const view = viewOf(TWO_BY_TWO);
  const places = new BarPlaces(view, linesOf(TEXT), [0, 1]);

  it("are matched in the order of each rank", () => {
    expect(places.placeOf(2)).toEqual({ line: 0, word: 2 });
    expect(places.placeOf(7)).toEqual({ line: 1, word: 3 });
    expect(places.barOf({ line: 1, word: 1 })).toBe(5);
    expect(places.barOf({ line: 1, word: 9 })).toBe(-1);
    expect(places.placeOfName("1F1")).toEqual({ line: 1, word: 2 });
    expect(places.placeOfName("9F9")).toBeNull();
    expect(
      places.barsOf([
        { line: 0, word: 0 },
        { line: 5, word: 0 },
      ]),
    ).toEqual([0]);
  });

  it("ignore messages that are not in the text", () => {
    const withMessage = viewOf([
      [0, 0, 1, "F", 0],
      [0, 1, 1, "SEND_F", 0],
      [0, 1, 2, "B", 0],
    ]);
    const places = new BarPlaces(withMessage, ["0F0 0B0"], [0]);
    expect([0, 1, 2].map((bar) => places.placeOf(bar)?.word ?? null)).toEqual([0, null, 1]);
    expect(places.wordFor(0, 0, 2)).toBe(1);
    expect(places.wordFor(0, 0, 1)).toBe(0);
    expect(places.wordFor(1, 0, 0)).toBeNull();
  });

  it("return the word of a moved bar", () => {
    expect([0, 1, 2, 3].map((to) => places.wordFor(0, 0, to))).toEqual([0, 1, 2, 3]);
    expect(places.wordFor(7, 1, 0)).toBe(0);
  });

  it("treat an overlapped pair as one word", () => {
    const pair = viewOf([
      [0, 0, 1, "F", 0],
      [0, 1, 3, "F", 1],
      [0, 1, 3, "B", 0],
      [0, 3, 4, "B", 1],
    ]);
    const places = new BarPlaces(pair, ["0F0 (0F1;0B0)OVERLAP_F_B 0B1"], [0]);
    expect([0, 1, 2, 3].map((bar) => places.placeOf(bar)?.word)).toEqual([0, 1, 1, 2]);
    expect(places.wordFor(3, 0, 1)).toBe(1);
    expect(places.wordFor(1, 0, 3)).toBe(2);
  });
});

describe("a session", () => {
  const shape = { placement: [[0, 1]], microbatches: 2, slices: 1 };

  it("has its rows, and whether the text is edited", () => {
    const session = new Session("zbv.csv", TEXT, shape);
    expect([session.edited, session.ranks, session.fileName]).toEqual([false, 2, "zbv-edited.txt"]);
    session.history.add("0F0\n", null, true, 0);
    expect([session.edited, session.rows]).toEqual([true, [0, 1]]);
  });

  it("can begin with an empty text, and again with its result", () => {
    expect([Session.empty().ranks, Session.empty().fileName]).toEqual([null, "mine.txt"]);
    expect(new Session("zbv-edited.txt", TEXT, shape).fileName).toBe("zbv-edited.txt");
  });
});
