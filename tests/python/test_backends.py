"""The same programs on a model in process, on /generate and on OpenAI's APIs: greedy, they come to
the same."""

import asyncio

import pytest

import banyan as sgl

START = "Once upon a time, in a small house behind the hill, there lived"
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
          "additionalProperties": False}


@pytest.fixture(scope="session")
def backends(nano, nano_engine, server):
    """By name; those with "text" in it take text, and all but "chat" select."""
    return {
        "engine": nano_engine,
        "text, generate": sgl.RuntimeEndpoint(server.url, template_path=nano),
        "text, completions": sgl.OpenAI("nano", server.url, is_chat_model=False,
                                        template_path=nano),
        "chat": sgl.OpenAI("nano", server.url + "/v1", is_chat_model=True),
        "chat that continues": sgl.OpenAI("nano", server.url, is_chat_model=True,
                                          continues_answers=True),
    }


@pytest.fixture(params=["text, generate", "text, completions"])
def text_backend(backends, request):
    return backends[request.param]


@pytest.fixture(params=["chat", "chat that continues"])
def chat_backend(backends, request):
    return backends[request.param]


@sgl.function
def story(s, start=START):
    s += start + sgl.gen("a", max_tokens=12, ignore_eos=True) + "."
    s += sgl.gen("b", max_tokens=30, stop=["."])


@sgl.function
def choice(s):
    s += "Is the sky blue? Answer:"
    for method in (sgl.token_length_normalized, sgl.greedy_token_selection):
        s += sgl.select(method.name, [" yes", " no", " perhaps"], choices_method=method)
    s += sgl.gen("rest", max_tokens=4)


@sgl.function
def branches(s):
    s += START
    forks = s.fork(3)
    forks += lambda i: [" a cat", " a dog", " a king"][i]
    forks += sgl.gen("part", max_tokens=6, ignore_eos=True)
    forks.join()
    s += " The end: " + "".join(s["part"]) + sgl.gen("moral", max_tokens=6)


@sgl.function
def forms(s):
    s += "Number: " + sgl.gen("number", regex="[1-9][0-9]{2}")
    s += " Letter: " + sgl.gen("letter", ebnf='root ::= "a" | "b"')
    s += " JSON: " + sgl.gen("json", max_tokens=40, json_schema=SCHEMA)


@sgl.function
def unconditional(s):
    s += "Is the sky blue? Answer:" + sgl.select(
        "x", [" yes", " no"], choices_method=sgl.unconditional_likelihood_normalized)


def error_of(state):
    assert state.error()
    return state.error()


def values(state, *names):
    assert state.error() is None
    return [state[name] for name in names]


@pytest.mark.parametrize("program", [story, choice, branches, forms],
                         ids=lambda program: program.func.__name__)
def test_text(program, nano_engine, text_backend):
    here = program.run(backend=nano_engine, temperature=0)
    there = program.run(backend=text_backend, temperature=0)
    assert here.error() is None and there.error() is None
    assert there.text() == here.text()
    for name in here._native.names():
        assert there[name] == here[name]
        assert there.get_meta_info(name)["finish_reason"] == \
            here.get_meta_info(name)["finish_reason"]
        weights = here.get_meta_info(name).get("normalized_prompt_logprobs")
        assert there.get_meta_info(name).get("normalized_prompt_logprobs") == \
            (None if weights is None else pytest.approx(weights, abs=1e-4))
    assert there.usage()["completion_tokens"] == here.usage()["completion_tokens"]


def test_unconditional_likelihoods(nano_engine, backends):
    here = unconditional.run(backend=nano_engine)
    there = unconditional.run(backend=backends["text, generate"])
    assert values(there, "x") == values(here, "x")
    state = unconditional.run(backend=backends["text, completions"])
    assert "kUnconditionalNormalized needs tokens" in error_of(state)


@sgl.function
def talk(s, opening=""):
    s += sgl.system("You are a friendly helper.")
    s += sgl.user("Sort these words: pear, apple.")
    s += sgl.assistant(sgl.gen("first", max_tokens=16))
    with s.user():
        s += "Say a number."
    s += sgl.assistant(opening + sgl.gen("second", regex="[0-9]{3}"))


def test_messages(nano_engine, text_backend):
    here = talk.run(opening="It is ", backend=nano_engine, temperature=0)
    there = talk.run(opening="It is ", backend=text_backend, temperature=0)
    assert values(there, "first", "second") == values(here, "first", "second")
    assert there.messages() == here.messages()
    assert here.text().endswith(there.text()), "the server writes what begins every text"


def test_chats(nano_engine, chat_backend):
    here = talk.run(backend=nano_engine, temperature=0)
    there = talk.run(backend=chat_backend, temperature=0)
    assert values(there, "first") == values(here, "first")
    assert len(there["second"]) == 3 and int(there["second"]) >= 0
    assert there.messages()[:4] == here.messages()[:4]


def test_an_answer_that_has_begun(backends):
    state = talk.run(opening="It is ", backend=backends["chat that continues"], temperature=0)
    assert state.error() is None
    assert state.messages()[-1]["content"] == "It is " + state["second"]
    state = talk.run(opening="It is ", backend=backends["chat"], temperature=0)
    assert "continues_answers" in state.error()


# What comes while the reader is busy comes as one piece, so a stream is long.
@sgl.function
def long_story(s):
    s += START + sgl.gen("rest", max_tokens=300, ignore_eos=True)


@sgl.function
def long_talk(s):
    s += sgl.user("Tell me a story.")
    s += sgl.assistant(sgl.gen("rest", max_tokens=300, ignore_eos=True))


def test_streams(text_backend, nano_engine):
    state = long_story.run(backend=text_backend, stream=True, temperature=0)
    pieces = list(state.text_iter())
    assert len(pieces) > 2
    whole = long_story.run(backend=nano_engine, temperature=0).text()
    assert "".join(pieces) == whole == state.text()

    async def read():
        running = long_story.run(backend=text_backend, stream=True, temperature=0)
        return "".join([piece async for piece in running.text_async_iter("rest")])

    assert START + asyncio.run(read()) == whole


def test_streams_of_chats(chat_backend):
    state = long_talk.run(backend=chat_backend, stream=True, temperature=0)
    pieces = list(state.text_iter("rest"))
    assert len(pieces) > 1
    assert "".join(pieces) == state["rest"]


def test_batches(nano_engine, text_backend):
    inputs = [{"start": f"Day {i}: the king"} for i in range(6)]
    here = story.run_batch(inputs, backend=nano_engine, temperature=0)
    there = story.run_batch(inputs, backend=text_backend, num_threads=4, temperature=0)
    assert [s.text() for s in there] == [s.text() for s in here]


def test_what_a_chat_cannot(backends, server):
    chat = backends["chat"]
    assert "takes messages only" in error_of(story.run(backend=chat))

    @sgl.function
    def choosing(s):
        s += sgl.user("Is it?") + sgl.assistant(sgl.select("x", ["yes", "no"]))

    error = error_of(choosing.run(backend=chat))
    assert server.url in error and "select" in error
    for ask in (sgl.flush_cache, sgl.get_server_info):
        with pytest.raises(ValueError, match="OpenAI's API"):
            ask(chat)


def test_what_servers_cannot(server, text_backend):
    @sgl.function
    def tops(s):
        s += "Once" + sgl.gen("x", max_tokens=2, return_logprob=True, top_logprobs_num=2)

    assert "top_logprobs" in error_of(tops.run(backend=text_backend))
    bare = sgl.RuntimeEndpoint(server.url)
    assert "template_path" in error_of(talk.run(backend=bare))


def test_nobody_is_there():
    url = "http://127.0.0.1:9"
    with pytest.raises(OSError, match=url):
        story.run(backend=sgl.RuntimeEndpoint(url))["a"]


def test_a_server_tells_of_itself_and_forgets(server):
    endpoint = sgl.RuntimeEndpoint(server.url)
    for cached in (False, True, False):
        if not cached:
            sgl.flush_cache(endpoint)
        state = story.run(START * 20, backend=endpoint, temperature=0)
        assert (state.get_meta_info("a")["cached_tokens"] > 0) == cached
    assert "model_path" in sgl.get_server_info(endpoint)


def test_a_batch_outlives_its_server(serve, nano_engine):
    server = serve()
    count, fatal = 12, 6

    @sgl.function
    def program(s, i):
        s += f"Story {i}:" + sgl.gen("a", max_tokens=8, ignore_eos=True)
        s["a"]
        if i == fatal:
            server.kill()
        s += "\n" + sgl.gen("b", max_tokens=8, ignore_eos=True)
        return s["b"]

    inputs = [{"i": i} for i in range(count)]
    try:
        states = program.run_batch(inputs, backend=sgl.RuntimeEndpoint(server.url),
                                   num_threads=3, temperature=0)
    finally:
        server.kill()
    fatal = count  # it is nobody's from here on
    whole = program.run_batch(inputs, backend=nano_engine, temperature=0)
    failed = [state for state in states if state.error()]
    assert 1 <= len(failed) <= count - 4, "three at a time: four had ended when the seventh began"
    assert states[6] in failed and states[6]["a"] == whole[6]["a"]
    for state, ideal in zip(states, whole):
        if not state.error():
            assert state.text() == ideal.text() and state.ret_value == ideal["b"]
            continue
        assert server.url in state.error()
        with pytest.raises(OSError, match=server.url):
            state["b"] if "b" in state else state["a"]


def test_what_a_batchs_function_raises_is_raised(nano_engine):
    @sgl.function
    def broken(s, i):
        s += "Once" + sgl.gen("a", max_tokens=2)
        return s["no such name"]

    with pytest.raises(KeyError, match="no such name"):
        broken.run_batch([{"i": 1}], backend=nano_engine)
