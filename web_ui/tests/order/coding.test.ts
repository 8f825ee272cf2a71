import { describe, expect, test } from "vitest";
import { decode, encode, LONGEST_LINK } from "../../src/order/coding.js";
import { moved } from "../../src/order/order.js";
import { anyOrder, oneForwardOneBackward, random } from "./orders.js";

test("decoding undoes encoding, whatever the order", async () => {
  for (let seed = 0; seed < 60; seed++) {
    const order = anyOrder(seed);
    expect(await decode(await encode(order))).toEqual(order);
  }
});

test("the text has only characters that a fragment holds as they are", async () => {
  for (let seed = 0; seed < 20; seed++) expect(await encode(anyOrder(seed))).toMatch(/^1\.[\w-]+$/);
});

describe("a damaged text", () => {
  test("gives a sentence wherever it is cut or changed", async () => {
    const text = await encode(oneForwardOneBackward(4, 8));
    const next = random(7);
    for (let at = 0; at < 60; at++) {
      const place = 2 + Math.floor(next() * (text.length - 2));
      const cut = text.slice(0, place);
      const sign = text[place] === "A" ? "B" : "A";
      await expect(decode(cut)).rejects.toThrow("This link is damaged or incomplete");
      await expect(decode(`${cut}${sign}${text.slice(place + 1)}`)).rejects.toThrow("This link is damaged");
    }
    for (const other of ["", "1.", "nothing", "1.%%%", `${text}.more`]) {
      await expect(decode(other)).rejects.toThrow("This link is damaged");
    }
  });

  test("is told apart from one of another release", async () => {
    await expect(decode("2.abc")).rejects.toThrow("This link is of version 2, and this page reads version 1");
  });
});

test.each([
  [4, 8, 400],
  [8, 32, 650],
  [16, 128, 1500],
])("a schedule of %d ranks and %d microbatches takes few characters", async (ranks, microbatches, most) => {
  const order = oneForwardOneBackward(ranks, microbatches);
  const text = await encode(order);
  expect(text.length).toBeLessThan(most);
  // An edit adds a few characters.
  const edited = await encode(moved(order, 0, ranks + 2, ranks + 5));
  expect(edited.length).toBeLessThan(text.length + 60);
  expect(edited.length).toBeLessThan(LONGEST_LINK);
});
