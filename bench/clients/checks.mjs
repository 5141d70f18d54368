// What the Node scripts of this folder share; see checks.py, its twin.

import assert from "node:assert/strict";

export const [router, ...engines] = process.argv.slice(2);

// The router's configuration is in clients_test.go.
export const model = "sim-8b";
export const alias = "sim";
export const slashed = "meta-llama/Llama-3.1-8B-Instruct";
export const embedder = "BAAI/bge-m3";

/** Awaits call(), which must throw exactly kind, and returns what it threw. */
export async function raises(kind, call) {
  let got;
  try {
    got = await call();
  } catch (error) {
    assert.equal(error.constructor, kind, `got ${error.stack}`);
    return error;
  }
  assert.fail(`got ${JSON.stringify(got)}; want ${kind.name}`);
}

/** Returns all that an async iterable yields. */
export async function list(iterable) {
  const items = [];
  for await (const item of await iterable) items.push(item);
  return items;
}

const askEngines = (path) => Promise.all(engines.map(async (engine) => (await fetch(engine + path)).json()));

/** Returns how many requests the engines have seen cancelled. */
export async function cancelled() {
  return (await askEngines("/sim/stats")).reduce((sum, stats) => sum + stats.cancelled, 0);
}

/** Waits until the engines have seen that many; clients_test.go has the limit. */
export async function waitCancelled(want) {
  while ((await cancelled()) < want) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Calls each check and prints one line of JSON for it, and a last one with their number. */
export async function run(checks) {
  for (const [check, call] of Object.entries(checks)) {
    const line = { check, ok: true };
    try {
      await call();
    } catch (error) {
      Object.assign(line, { ok: false, detail: error.stack });
    }
    console.log(JSON.stringify(line));
  }
  console.log(JSON.stringify({ done: Object.keys(checks).length }));
}
