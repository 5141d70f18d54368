"""The openai package, unmodified, against the router."""

import asyncio
import hashlib
import io
import json

import openai
from checks import (
    ALIAS,
    EMBEDDER,
    MODEL,
    ROUTER,
    SLASHED,
    cancelled,
    check,
    equal,
    raises,
    received,
    run,
    wait_cancelled,
)

client = openai.OpenAI(base_url=ROUTER + "/v1", api_key="key", max_retries=0)
HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüß Gott, 世界 👋"}]


def reply(**kwargs):
    """Returns a whole chat answer."""
    return client.chat.completions.create(**{"model": MODEL, "messages": HELLO} | kwargs)


def stream(**kwargs):
    """Returns the chunks of a streamed chat answer."""
    return list(reply(stream=True, **kwargs))


@check
def chat():
    got = reply()
    equal(got.object, "chat.completion")
    equal(got.model, MODEL)
    equal(got.choices[0].message.role, "assistant")
    equal(got.choices[0].finish_reason, "stop")
    assert got.choices[0].message.content
    equal(got.usage.total_tokens, got.usage.prompt_tokens + got.usage.completion_tokens)


@check
def chat_with_limit():
    got = reply(max_completion_tokens=3)
    equal(got.choices[0].finish_reason, "length")
    equal(got.usage.completion_tokens, 3)


@check
def chat_with_choices():
    equal([c.index for c in reply(n=3).choices], [0, 1, 2])


@check
def chat_by_alias():
    equal(reply(model=ALIAS).choices[0].message.content, reply().choices[0].message.content)


@check
def chat_by_name_with_slash():
    equal(reply(model=SLASHED).model, SLASHED)


@check
def chat_within_contract():
    reply(temperature=1, top_p=0.95, seed=7, logit_bias={"50256": -100}, extra_body={"top_k": 40})


@check
def chat_with_image():
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0K" * 500_000}}
    got = reply(messages=[{"role": "user", "content": [{"type": "text", "text": "What is it?"}, part]}])
    assert got.choices[0].message.content


@check
def chat_streamed():
    chunks = stream()
    equal({c.object for c in chunks}, {"chat.completion.chunk"})
    text = "".join(c.choices[0].delta.content or "" for c in chunks)
    equal(text, reply().choices[0].message.content)
    equal(chunks[-1].choices[0].finish_reason, "stop")
    equal([c.usage for c in chunks], [None] * len(chunks))


@check
def chat_streamed_with_usage():
    chunks = stream(stream_options={"include_usage": True})
    equal(chunks[-1].choices, [])
    equal([c.usage for c in chunks[:-1]], [None] * (len(chunks) - 1))
    want = reply().usage
    equal(chunks[-1].usage.completion_tokens, want.completion_tokens)
    equal(chunks[-1].usage.total_tokens, want.total_tokens)


@check
def chat_streamed_through_helper():
    with client.chat.completions.stream(model=MODEL, messages=HELLO) as events:
        kinds = [e.type for e in events]
        final = events.get_final_completion()
    assert "content.delta" in kinds and "content.done" in kinds, kinds
    equal(final.choices[0].message.content, reply().choices[0].message.content)


@check
def raw_response():
    got = client.chat.completions.with_raw_response.create(model=MODEL, messages=HELLO)
    equal(got.status_code, 200)
    assert got.headers["x-request-id"]
    assert "x-router-error-code" not in got.headers
    assert got.parse().choices[0].message.content


def sent_and_received(**kwargs):
    """Returns the body of a chat as the package sent it and as the engine got it."""
    sent, request = exchange(**kwargs)
    return sent.decode(), request["body"]


def exchange(**kwargs):
    """Returns the body of a chat as the package sent it and what the engine tells of it."""
    got = client.chat.completions.with_raw_response.create(**{"model": MODEL, "messages": HELLO} | kwargs)
    return got.http_response.request.content, received(got.headers["x-request-id"])


@check
def body_untouched():
    for temperature in 1, 1.0, True:
        sent, got = sent_and_received(temperature=temperature)
        equal(got, sent)


@check
def body_of_31_mib_untouched():
    line = 'a "quoted" word, ein Wört, 世界\n'
    text = line * ((31 << 20) // len(json.dumps(line, ensure_ascii=False).encode()))
    sent, request = exchange(temperature=1, messages=[{"role": "user", "content": text}])
    equal(request["body_size"], len(sent))
    equal(request["body_sha256"], hashlib.sha256(sent).hexdigest())


@check
def body_with_pin():
    sent, got = sent_and_received()
    equal(json.loads(got), json.loads(sent) | {"temperature": 1})
    assert sent[1:] in got, "bytes that no edit names have changed"


@check
def body_with_model_of_alias():
    sent, got = sent_and_received(model=ALIAS, temperature=1)
    equal(got, sent.replace(f'"model":"{ALIAS}"', f'"model":"{MODEL}"'))


@check
def request_id_is_kept():
    got = reply(extra_headers={"x-request-id": "mine-1"})
    equal(got._request_id, "mine-1")


@check
def completions():
    got = client.completions.create(model=MODEL, prompt=["Once upon a time", "Ein Mal"], max_tokens=4)
    equal(got.object, "text_completion")
    equal([c.index for c in got.choices], [0, 1])
    equal(got.usage.completion_tokens, 8)


@check
def completions_streamed():
    chunks = list(client.completions.create(model=MODEL, prompt="Once", stream=True))
    text = "".join(c.choices[0].text for c in chunks)
    equal(text, client.completions.create(model=MODEL, prompt="Once").choices[0].text)


@check
def responses():
    got = client.responses.create(model=MODEL, input="Once", instructions="Be brief.", max_output_tokens=5)
    equal(got.object, "response")
    equal(got.usage.output_tokens, 5)
    equal(got.status, "incomplete")
    assert got.output_text


@check
def responses_streamed():
    events = list(client.responses.create(model=MODEL, input="Once", stream=True))
    equal(events[0].type, "response.created")
    equal(events[-1].type, "response.completed")
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    equal(text, events[-1].response.output_text)
    equal(text, client.responses.create(model=MODEL, input="Once").output_text)


@check
def responses_streamed_through_helper():
    with client.responses.stream(model=MODEL, input="Once") as events:
        for _ in events:
            pass
        assert events.get_final_response().output_text


@check
def embeddings():
    """The package asks for base64 by itself and decodes it."""
    texts = ["one", "two"]
    got = client.embeddings.create(model=EMBEDDER, input=texts)
    plain = client.embeddings.create(model=EMBEDDER, input=texts, encoding_format="float")
    equal([d.index for d in got.data], [0, 1])
    for a, b in zip(got.data, plain.data, strict=True):
        equal(len(a.embedding), len(b.embedding))
        assert all(abs(x - y) < 1e-6 for x, y in zip(a.embedding, b.embedding, strict=True))


@check
def moderations():
    equal(len(client.moderations.create(model=MODEL, input="hello").results), 1)


@check
def transcription():
    """A multipart body."""
    got = client.audio.transcriptions.create(model=MODEL, file=("a.wav", io.BytesIO(b"RIFF" * 5000)))
    assert got.text


@check
def speech():
    got = client.audio.speech.create(model=MODEL, voice="alloy", input="hello")
    assert got.read()


@check
def image():
    assert client.images.generate(model=MODEL, prompt="a sluice").data


@check
def image_edit():
    """A multipart body with two files."""
    got = client.images.edit(model=MODEL, prompt="brighter", image=("a.png", b"\x89PNG"), mask=("b.png", b"\x89PNG"))
    assert got.data


@check
def models():
    equal({m.id for m in client.models.list()}, {MODEL, ALIAS, SLASHED, EMBEDDER})


@check
def model():
    for name in MODEL, ALIAS, SLASHED, EMBEDDER:
        equal(client.models.retrieve(name).id, name)


@check
def model_by_raw_slash():
    """Other clients do not escape the slash."""
    equal(client.get("/models/" + SLASHED, cast_to=openai.types.Model).id, SLASHED)


@check
def error_model_unknown():
    error = raises(openai.NotFoundError, client.models.retrieve, "no/such")
    equal(error.code, "model_not_found")


@check
def error_pin():
    error = raises(openai.BadRequestError, reply, temperature=0.5)
    equal(error.code, "sampling_contract_violation")
    equal(error.param, "temperature")
    equal(error.type, "invalid_request_error")
    equal(error.response.headers["x-router-error-code"], "sampling_contract_violation")
    equal(
        error.body["message"],
        "temperature violates this deployment's sampling contract: got 0.5, expected 1 (or omit the field)",
    )


@check
def error_band():
    error = raises(openai.BadRequestError, reply, top_p=0.1)
    equal(error.code, "sampling_contract_violation")
    equal(error.param, "top_p")


@check
def error_before_stream():
    error = raises(openai.BadRequestError, stream, temperature=0)
    equal(error.code, "sampling_contract_violation")


@check
def error_on_other_surfaces():
    for create, kwargs in (
        (client.completions.create, {"prompt": "Once"}),
        (client.responses.create, {"input": "Once"}),
    ):
        error = raises(openai.BadRequestError, create, model=MODEL, temperature=0.5, **kwargs)
        equal(error.code, "sampling_contract_violation")


@check
def error_chat_model_unknown():
    error = raises(openai.NotFoundError, reply, model="gpt-9")
    equal(error.code, "model_not_found")


@check
def error_path_unknown():
    error = raises(openai.NotFoundError, client.fine_tuning.jobs.list)
    equal(error.code, "not_found")


@check
def error_body_too_large():
    """The package sends the whole body before it reads the answer."""
    error = raises(openai.APIStatusError, reply, messages=[{"role": "user", "content": "x" * (40 << 20)}])
    equal(error.status_code, 413)
    equal(error.code, "payload_too_large")


@check
def error_of_engine():
    """An engine's own error passes, with its own code."""
    for status, kind in (
        (400, openai.BadRequestError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ):
        error = raises(kind, reply, extra_headers={"x-sim-status": str(status), "x-sim-retry-after": "7"})
        equal(error.status_code, status)
        equal(error.response.headers["retry-after"], "7")
        assert "x-router-error-code" not in error.response.headers


@check
def error_reset_before_answer():
    error = raises(openai.InternalServerError, reply, extra_headers={"x-sim-fail": "reset"})
    equal(error.status_code, 502)
    equal(error.type, "server_error")


@check
def error_within_stream():
    """A stream that breaks ends with an error that the package raises."""
    error = raises(openai.APIError, stream, extra_headers={"x-sim-fail": "cut=3"})
    equal(error.code, "upstream_body_incomplete")
    equal(error.type, "server_error")


@check
def stream_closed_early():
    before = cancelled()
    chunks = reply(stream=True, extra_headers={"x-sim-words": "100000", "x-sim-pace": "20ms"})
    next(chunks)
    chunks.close()
    wait_cancelled(before + 1)


@check
def answer_given_up():
    before = cancelled()
    raises(openai.APITimeoutError, reply, timeout=1, extra_headers={"x-sim-fail": "silence"})
    wait_cancelled(before + 1)


async def asynchronous():
    return openai.AsyncOpenAI(base_url=ROUTER + "/v1", api_key="key", max_retries=0)


@check
async def async_chats_at_once():
    async with await asynchronous() as c:
        answers = await asyncio.gather(
            *(c.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=1 + i % 9) for i in range(64))
        )
    equal([a.usage.completion_tokens for a in answers], [1 + i % 9 for i in range(64)])


@check
async def async_streams_at_once():
    want = reply().choices[0].message.content

    async def one(c):
        chunks = await c.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        return "".join([p.choices[0].delta.content or "" async for p in chunks])

    async with await asynchronous() as c:
        equal(set(await asyncio.gather(*(one(c) for _ in range(32)))), {want})


@check
async def async_responses():
    async with await asynchronous() as c:
        events = [e async for e in await c.responses.create(model=MODEL, input="Once", stream=True)]
    equal(events[-1].type, "response.completed")


@check
async def async_embeddings():
    async with await asynchronous() as c:
        equal(len((await c.embeddings.create(model=EMBEDDER, input="one")).data), 1)


@check
async def async_models():
    async with await asynchronous() as c:
        equal({m.id async for m in c.models.list()}, {MODEL, ALIAS, SLASHED, EMBEDDER})


@check
async def async_error():
    async with await asynchronous() as c:
        try:
            await c.chat.completions.create(model=MODEL, messages=HELLO, temperature=0.5)
        except openai.BadRequestError as error:
            equal(error.code, "sampling_contract_violation")
        else:
            raise AssertionError("want BadRequestError")


run()
