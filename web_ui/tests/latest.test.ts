import { expect, test } from "vitest";
import { Latest } from "../src/app/latest.js";

test("however often it is asked meanwhile, it runs once more and never twice at a time", async () => {
  const finish: (() => void)[] = [];
  const latest = new Latest(() => new Promise((done) => finish.push(done)));
  const first = latest.request();
  for (let asked = 0; asked < 5; asked++) void latest.request();
  expect(finish).toHaveLength(1);
  finish[0]();
  await Promise.resolve();
  await Promise.resolve();
  expect(finish).toHaveLength(2);
  finish[1]();
  await first;
  expect(finish).toHaveLength(2);
});
