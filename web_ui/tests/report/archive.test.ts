import { expect, test } from "vitest";
import { opened } from "../../src/report/archive.js";
import cases from "./archived.json";

/** Return a value with lists in place of typed arrays. */
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, own) => (ArrayBuffer.isView(own) ? Array.from(own as Float64Array) : own)));

test.each(Object.entries(cases))("a view of %s is what was archived", async (_, { archived, view }) => {
  expect(plain(await opened(archived))).toEqual(view);
});
