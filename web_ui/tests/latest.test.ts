import { expect, test } from "vitest";
import { Latest } from "../src/app/latest.js";

test("several requests during a run cause exactly one more run, after it", async () => {
  const finish: (() => void)[] = [];
  const latest = new Latest(() => new Promise((done) => finish.push(done)));
  const first = latest.request();
  for (let count = 0; count < 5; count++) void latest.request();
  expect(finish).toHaveLength(1);
  finish[0]();
  await Promise.resolve();
  await Promise.resolve();
  expect(finish).toHaveLength(2);
  finish[1]();
  await first;
  expect(finish).toHaveLength(2);
});
