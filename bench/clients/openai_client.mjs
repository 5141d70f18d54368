// The openai package, unmodified, against the router.

import assert from "node:assert/strict";
import OpenAI, { toFile } from "openai";
import { alias, cancelled, embedder, list, model, raises, router, run, slashed, waitCancelled } from "./checks.mjs";

const client = new OpenAI({ baseURL: router + "/v1", apiKey: "key", maxRetries: 0 });
const messages = [{ role: "system", content: "Be brief." }, { role: "user", content: "Grüß Gott, 世界 👋" }];
const chat = (more, options) => client.chat.completions.create({ model, messages, ...more }, options);
const stream = (more, options) => list(chat({ stream: true, ...more }, options));

await run({
  async chat() {
    const got = await chat();
    assert.equal(got.model, model);
    assert.equal(got.choices[0].finish_reason, "stop");
    assert.ok(got.choices[0].message.content);
    assert.equal(got.usage.total_tokens, got.usage.prompt_tokens + got.usage.completion_tokens);
  },

  async chat_by_alias() {
    const [a, b] = [await chat({ model: alias }), await chat()];
    assert.equal(a.choices[0].message.content, b.choices[0].message.content);
  },

  async chat_streamed() {
    const chunks = await stream();
    const text = chunks.map((c) => c.choices[0].delta.content ?? "").join("");
    assert.equal(text, (await chat()).choices[0].message.content);
    assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
    assert.ok(chunks.every((c) => !c.usage));
  },

  async chat_streamed_with_usage() {
    const chunks = await stream({ stream_options: { include_usage: true } });
    assert.deepEqual(chunks.at(-1).choices, []);
    assert.equal(chunks.at(-1).usage.completion_tokens, (await chat()).usage.completion_tokens);
  },

  async chat_streamed_through_helper() {
    const got = await client.chat.completions.stream({ model, messages }).finalChatCompletion();
    assert.equal(got.choices[0].message.content, (await chat()).choices[0].message.content);
  },

  async chats_at_once() {
    const limits = Array.from({ length: 64 }, (_, i) => 1 + (i % 9));
    const got = await Promise.all(limits.map((max_tokens) => chat({ max_tokens })));
    assert.deepEqual(got.map((a) => a.usage.completion_tokens), limits);
  },

  async streams_at_once() {
    const all = await Promise.all(Array.from({ length: 32 }, () => stream()));
    const texts = all.map((chunks) => chunks.map((c) => c.choices[0].delta.content ?? "").join(""));
    assert.deepEqual([...new Set(texts)], [(await chat()).choices[0].message.content]);
  },

  async completions() {
    const got = await client.completions.create({ model, prompt: ["Once", "Ein Mal"], max_tokens: 4 });
    assert.deepEqual(got.choices.map((c) => c.index), [0, 1]);
    assert.equal(got.usage.completion_tokens, 8);
  },

  async completions_streamed() {
    const chunks = await list(client.completions.create({ model, prompt: "Once", stream: true }));
    const whole = await client.completions.create({ model, prompt: "Once" });
    assert.equal(chunks.map((c) => c.choices[0]?.text ?? "").join(""), whole.choices[0].text);
  },

  async responses() {
    const got = await client.responses.create({ model, input: "Once", max_output_tokens: 5 });
    assert.equal(got.usage.output_tokens, 5);
    assert.ok(got.output_text);
  },

  async responses_streamed() {
    const events = await list(client.responses.create({ model, input: "Once", stream: true }));
    assert.equal(events[0].type, "response.created");
    assert.equal(events.at(-1).type, "response.completed");
    const text = events.filter((e) => e.type === "response.output_text.delta").map((e) => e.delta).join("");
    assert.equal(text, (await client.responses.create({ model, input: "Once" })).output_text);
  },

  // The package asks for base64 by itself and decodes it.
  async embeddings() {
    const input = ["one", "two"];
    const got = await client.embeddings.create({ model: embedder, input });
    const plain = await client.embeddings.create({ model: embedder, input, encoding_format: "float" });
    assert.equal(got.data.length, 2);
    for (const [i, { embedding }] of got.data.entries()) {
      assert.equal(embedding.length, plain.data[i].embedding.length);
      for (const [j, x] of embedding.entries()) assert.ok(Math.abs(x - plain.data[i].embedding[j]) < 1e-6);
    }
  },

  // A multipart body.
  async transcription() {
    const file = await toFile(Buffer.alloc(100_000, "RIFF"), "a.wav");
    assert.ok((await client.audio.transcriptions.create({ model, file })).text);
  },

  async models() {
    const ids = (await list(client.models.list())).map((m) => m.id);
    assert.deepEqual(ids.sort(), [model, alias, slashed, embedder].sort());
  },

  async model() {
    for (const id of [model, alias, slashed, embedder]) assert.equal((await client.models.retrieve(id)).id, id);
  },

  async error_model_unknown() {
    assert.equal((await raises(OpenAI.NotFoundError, () => client.models.retrieve("no/such"))).code, "model_not_found");
    assert.equal((await raises(OpenAI.NotFoundError, () => chat({ model: "gpt-9" }))).code, "model_not_found");
  },

  async error_pin() {
    const error = await raises(OpenAI.BadRequestError, () => chat({ temperature: 0.5 }));
    assert.equal(error.code, "sampling_contract_violation");
    assert.equal(error.param, "temperature");
    assert.equal(error.type, "invalid_request_error");
    assert.equal(error.headers.get("x-router-error-code"), "sampling_contract_violation");
  },

  async error_before_stream() {
    const error = await raises(OpenAI.BadRequestError, () => stream({ top_p: 0.1 }));
    assert.equal(error.code, "sampling_contract_violation");
  },

  async error_path_unknown() {
    assert.equal((await raises(OpenAI.NotFoundError, () => list(client.fineTuning.jobs.list()))).code, "not_found");
  },

  async error_body_too_large() {
    const content = "x".repeat(40 << 20);
    const error = await raises(OpenAI.APIError, () => chat({ messages: [{ role: "user", content }] }));
    assert.equal(error.status, 413);
    assert.equal(error.code, "payload_too_large");
  },

  // An engine's own error passes.
  async error_of_engine() {
    const headers = { "x-sim-status": "429", "x-sim-retry-after": "7" };
    const error = await raises(OpenAI.RateLimitError, () => chat({}, { headers }));
    assert.equal(error.headers.get("retry-after"), "7");
  },

  // A stream that breaks ends with an error that the package raises.
  async error_within_stream() {
    const error = await raises(OpenAI.APIError, () => stream({}, { headers: { "x-sim-fail": "cut=3" } }));
    assert.equal(error.code, "upstream_body_incomplete");
  },

  async stream_closed_early() {
    const before = await cancelled();
    const chunks = await chat({ stream: true }, { headers: { "x-sim-words": "100000", "x-sim-pace": "20ms" } });
    for await (const _ of chunks) break;
    await waitCancelled(before + 1);
  },

  async answer_given_up() {
    const before = await cancelled();
    const options = { timeout: 1000, headers: { "x-sim-fail": "silence" } };
    await raises(OpenAI.APIConnectionTimeoutError, () => chat({}, options));
    await waitCancelled(before + 1);
  },
});
