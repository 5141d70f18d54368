// The @anthropic-ai/sdk package, unmodified, against the router.

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { cancelled, list, model, raises, router, run, waitCancelled } from "./checks.mjs";

const client = new Anthropic({ baseURL: router, apiKey: "key", maxRetries: 0 });
const hello = { model, max_tokens: 64, messages: [{ role: "user", content: "Grüß Gott, 世界 👋" }] };
const reply = (more, options) => client.messages.create({ ...hello, ...more }, options);
const text = (message) => message.content.map((block) => block.text).join("");

await run({
  async message() {
    const got = await reply();
    assert.equal(got.model, model);
    assert.equal(got.stop_reason, "end_turn");
    assert.ok(text(got));
    assert.ok(got.usage.output_tokens > 0);
  },

  async message_streamed() {
    const events = await list(reply({ stream: true }));
    assert.equal(events[0].type, "message_start");
    assert.equal(events.at(-1).type, "message_stop");
    const got = events.filter((e) => e.type === "content_block_delta").map((e) => e.delta.text).join("");
    assert.equal(got, text(await reply()));
  },

  async message_streamed_through_helper() {
    assert.equal(text(await client.messages.stream(hello).finalMessage()), text(await reply()));
  },

  async error_pin() {
    const error = await raises(Anthropic.BadRequestError, () => reply({ temperature: 0.5 }));
    assert.equal(error.headers.get("x-router-error-code"), "sampling_contract_violation");
    assert.equal(error.error.error.type, "invalid_request_error");
  },

  async error_model_unknown() {
    const error = await raises(Anthropic.NotFoundError, () => reply({ model: "claude-9" }));
    assert.equal(error.error.error.type, "not_found_error");
  },

  // A stream that breaks ends with an error that the package raises.
  async error_within_stream() {
    const options = { headers: { "x-sim-fail": "cut=3" } };
    const error = await raises(Anthropic.APIError, () => list(reply({ stream: true }, options)));
    assert.equal(error.error.error.type, "api_error");
  },

  async stream_closed_early() {
    const before = await cancelled();
    const headers = { "x-sim-words": "100000", "x-sim-pace": "20ms" };
    const events = await reply({ stream: true, max_tokens: 100_000 }, { headers });
    for await (const _ of events) break;
    await waitCancelled(before + 1);
  },
});
