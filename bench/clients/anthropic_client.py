"""The anthropic package, unmodified, against the router."""

import asyncio

import anthropic
from checks import ALIAS, MODEL, ROUTER, cancelled, check, equal, raises, run, wait_cancelled

client = anthropic.Anthropic(base_url=ROUTER, api_key="key", max_retries=0)
HELLO = {
    "model": MODEL,
    "max_tokens": 64,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": "Grüß Gott, 世界 👋"}],
}


def reply(**kwargs):
    """Returns a whole answer, or its events when stream is set."""
    return client.messages.create(**HELLO | kwargs)


def text(message):
    return "".join(block.text for block in message.content)


@check
def message():
    got = reply()
    equal(got.type, "message")
    equal(got.role, "assistant")
    equal(got.model, MODEL)
    equal(got.stop_reason, "end_turn")
    assert text(got)
    assert got.usage.output_tokens > 0


@check
def message_with_limit():
    got = reply(max_tokens=3)
    equal(got.stop_reason, "max_tokens")
    equal(got.usage.output_tokens, 3)


@check
def message_by_alias():
    equal(text(reply(model=ALIAS)), text(reply()))


@check
def message_of_blocks():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * 100_000}}
    assert text(reply(messages=[{"role": "user", "content": [image, {"type": "text", "text": "What is it?"}]}]))


@check
def message_within_contract():
    # The package has no sampling parameters of its own any more.
    reply(extra_body={"temperature": 1, "top_p": 0.95, "top_k": 40})


@check
def message_streamed():
    events = list(reply(stream=True))
    equal(events[0].type, "message_start")
    equal(events[-1].type, "message_stop")
    equal("".join(e.delta.text for e in events if e.type == "content_block_delta"), text(reply()))
    delta = next(e for e in events if e.type == "message_delta")
    equal(delta.usage.output_tokens, reply().usage.output_tokens)


@check
def message_streamed_through_helper():
    with client.messages.stream(**HELLO) as stream:
        got = "".join(stream.text_stream)
        final = stream.get_final_message()
    equal(got, text(final))
    equal(final.stop_reason, "end_turn")


@check
def error_pin():
    error = raises(anthropic.BadRequestError, reply, extra_body={"temperature": 0.5})
    equal(error.response.headers["x-router-error-code"], "sampling_contract_violation")
    equal(error.body["type"], "error")
    equal(error.body["error"]["type"], "invalid_request_error")
    equal(
        error.body["error"]["message"],
        "temperature violates this deployment's sampling contract: got 0.5, expected 1 (or omit the field)",
    )


@check
def error_before_stream():
    error = raises(anthropic.BadRequestError, reply, stream=True, extra_body={"top_p": 0.1})
    equal(error.response.headers["x-router-error-code"], "sampling_contract_violation")


@check
def error_model_unknown():
    error = raises(anthropic.NotFoundError, reply, model="claude-9")
    equal(error.response.headers["x-router-error-code"], "model_not_found")
    equal(error.body["error"]["type"], "not_found_error")


@check
def error_path_unknown():
    error = raises(anthropic.NotFoundError, client.messages.batches.list)
    equal(error.response.headers["x-router-error-code"], "not_found")


@check
def error_of_engine():
    """An engine's own error passes."""
    error = raises(anthropic.RateLimitError, reply, extra_headers={"x-sim-status": "429", "x-sim-retry-after": "7"})
    equal(error.response.headers["retry-after"], "7")
    equal(error.body["error"]["type"], "rate_limit_error")


@check
def error_within_stream():
    """A stream that breaks ends with an error that the package raises."""
    error = raises(anthropic.APIStatusError, list_events, {"x-sim-fail": "cut=3"})
    equal(error.body["error"]["type"], "api_error")


def list_events(headers):
    return list(reply(stream=True, extra_headers=headers))


@check
def stream_closed_early():
    before = cancelled()
    events = reply(stream=True, max_tokens=100_000, extra_headers={"x-sim-words": "100000", "x-sim-pace": "20ms"})
    next(events)
    events.close()
    wait_cancelled(before + 1)


@check
async def async_messages_at_once():
    async with anthropic.AsyncAnthropic(base_url=ROUTER, api_key="key", max_retries=0) as c:
        answers = await asyncio.gather(
            *(c.messages.create(**HELLO | {"max_tokens": 1 + i % 9}) for i in range(64))
        )
    equal([a.usage.output_tokens for a in answers], [1 + i % 9 for i in range(64)])


@check
async def async_message_streamed():
    async with anthropic.AsyncAnthropic(base_url=ROUTER, api_key="key", max_retries=0) as c:
        async with c.messages.stream(**HELLO) as stream:
            got = "".join([part async for part in stream.text_stream])
    equal(got, text(reply()))


run()
