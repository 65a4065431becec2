"""banyan.lang: what SGLang's programs do with only the import changed."""

import asyncio
import contextlib
import json
import os
import signal
import sys

import pytest

import banyan as sgl


@pytest.fixture(autouse=True, scope="module")
def backend(engine):
    sgl.set_default_backend(engine)
    return engine


@sgl.function
def story(s, start):
    s += start + sgl.gen("rest", max_tokens=10, temperature=0)


def test_gen(engine):
    state = story.run(start="Once upon a time")
    alone = engine.generate("Once upon a time", {"temperature": 0, "max_new_tokens": 10})
    assert state["rest"] == alone["text"]
    assert state.text() == "Once upon a time" + state["rest"]
    meta = state.get_meta_info("rest")
    assert meta["completion_tokens"] == 10
    assert meta["finish_reason"] == {"type": "length", "length": 10}
    assert "rest" in state and "other" not in state
    assert story.run("Once")["rest"] == story("Once")["rest"]


def test_stop_and_logprobs():
    @sgl.function
    def program(s):
        s += "Once upon a time" + sgl.gen("rest", max_tokens=30, stop=[" girl"],
                                          return_logprob=True, top_logprobs_num=2)

    state = program.run(temperature=0)
    assert state["rest"].startswith(", there was a ") and "girl" not in state["rest"]
    meta = state.get_meta_info("rest")
    assert meta["finish_reason"]["matched"] == " girl"
    assert all(len(top) == 2 for top in meta["output_top_logprobs"])


def test_parameters_of_run_are_for_gens_without_their_own():
    @sgl.function
    def program(s):
        s += "Once" + sgl.gen("a") + sgl.gen("b", max_tokens=2)

    state = program.run(max_new_tokens=4, temperature=0)
    assert state.get_meta_info("a")["completion_tokens"] == 4
    assert state.get_meta_info("b")["completion_tokens"] == 2
    assert state.usage()["calls"] == 2


@pytest.mark.parametrize("method", [sgl.token_length_normalized, sgl.greedy_token_selection,
                                    sgl.unconditional_likelihood_normalized])
def test_select(method):
    choices = ["time", "purple", "xylophone"]

    @sgl.function
    def program(s):
        s += "Once upon a " + sgl.gen("what", choices=choices, choices_method=method) + "!"

    state = program.run()
    assert state["what"] in choices and state.text().endswith("!")
    weights = state.get_meta_info("what")["normalized_prompt_logprobs"]
    assert len(weights) == 3
    if method is sgl.token_length_normalized:
        assert state["what"] == "time" == choices[weights.index(max(weights))]


def test_constraints():
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
              "additionalProperties": False}

    @sgl.function
    def program(s):
        s += "Number: " + sgl.gen("n", dtype=int, max_tokens=8) + "\n"
        s += "Letter: " + sgl.gen("r", regex="[abc]") + "\n"
        s += "JSON: " + sgl.gen("j", json_schema=schema, max_tokens=32)

    state = program.run(temperature=0)
    assert state.error() is None
    int(state["n"])
    assert state["r"] in "abc"
    assert isinstance(json.loads(state["j"])["ok"], bool)


def test_fork_and_join():
    @sgl.function
    def program(s):
        s += "Once upon a time"
        forks = s.fork(3)
        forks += lambda i: f", {i}"
        for fork in forks:
            fork += sgl.gen("part", max_tokens=4, temperature=0)
        forks.join()
        s += " The end: " + "".join(s["part"])

    state = program.run()
    assert len(state["part"]) == 3
    assert state.text() == "Once upon a time The end: " + "".join(state["part"])


def test_join_by_text_and_copy():
    @sgl.function
    def program(s):
        s += "a"
        forks = s.fork(2)
        forks += ["b", "c"]
        forks.join("concate_and_append")
        with s.copy() as other:
            other += sgl.gen("x", max_tokens=2, temperature=0)
        with s.var_scope("scope"):
            s += "d"

    state = program.run()
    assert state.text() == "abcd" and state["scope"] == "d"
    assert isinstance(state["x"], list)


def test_roles():
    @sgl.function
    def program(s):
        s += sgl.system("Tell a story.")
        with s.user():
            s += "Once"
        s += sgl.assistant_begin() + sgl.gen("reply", max_tokens=6, stop="\n") \
            + sgl.assistant_end()
        s.user("And then?")
        s += sgl.assistant(sgl.gen("more", max_tokens=6, stop="\n"))

    state = program.run(temperature=0)
    assert state.error() is None
    assert [m["role"] for m in state.messages()] == ["system", "user", "assistant"] \
        + ["user", "assistant"]
    assert state.text().startswith("SYSTEM: Tell a story.\nUSER: Once\nASSISTANT:")


def test_run_batch(capsys, monkeypatch):
    inputs = [{"start": f"Day {i}"} for i in range(20)]
    states = story.run_batch(inputs, num_threads=8, progress_bar=True)
    assert states[7]["rest"] == story.run(start="Day 7")["rest"]
    assert capsys.readouterr().err == ""  # quiet where there is no terminal
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    list(story.run_batch(inputs, num_threads=8, progress_bar=True))
    assert "20 of 20" in capsys.readouterr().err
    lazily = story.run_batch([["Day 1"], ["Day 2"]], generator_style=True)
    assert [s["rest"] for s in lazily] == [s["rest"] for s in states[1:3]]
    assert story.run_batch([]) == []


def test_runs_of_a_batch_draw_different_seeds():
    @sgl.function
    def program(s):
        s += "Once" + sgl.gen("x", max_tokens=12, temperature=1.5)

    first = [s["x"] for s in program.run_batch([{}] * 4)]
    assert len(set(first)) > 1
    assert first == [s["x"] for s in program.run_batch([{}] * 4)]


def one_gen(s):
    s += "Once" + sgl.gen("x", max_tokens=20, ignore_eos=True)
    s["x"]


@pytest.mark.parametrize("kind", ["branches", "programs", "batches"])
def test_ctrl_c_ends_the_running_programs_of_a_batch(nano_engine, kind):
    inner, calls = sgl.function(one_gen), []

    @sgl.function
    def program(s):
        for _ in range(100):
            if kind == "branches":
                one_gen(s.fork(1)[0])
            elif kind == "programs":
                if (error := inner.run(backend=nano_engine).error()) is not None:
                    raise ValueError(error)
            else:
                inner.run_batch([{}], backend=nano_engine)[0]["x"]
            calls.append(None)
            if len(calls) == 6:
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        program.run_batch([{}] * 8, backend=nano_engine, num_threads=4)
    assert 6 <= len(calls) < 60  # of 800
    assert story.run("Once", backend=nano_engine)["rest"]


def test_a_batch_that_is_left_makes_no_more_calls(nano_engine):
    calls = []

    @sgl.function
    def program(s, count):
        for _ in range(count):
            one_gen(s.fork(1)[0])
            calls.append(None)
        if count == 1:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        program.run_batch([[1], [100], [100]], backend=nano_engine)
    assert len(calls) < 60


def test_stream():
    @sgl.function
    def long_story(s, start):
        s += start + sgl.gen("rest", max_tokens=300, temperature=0, ignore_eos=True)

    state = long_story.run(start="Once upon a time", stream=True)
    pieces = list(state.text_iter())
    assert len(pieces) > 2  # the text before the gen, and the gen's in more than one
    assert "".join(pieces) == "Once upon a time" + state["rest"] == state.text()
    state = story.run(start="Once upon a time", stream=True)
    assert "".join(state.text_iter("rest")) == state["rest"]

    async def read():
        running = story.run(start="Once upon a time", stream=True)
        return "".join([piece async for piece in running.text_async_iter("rest")])

    assert asyncio.run(read()) == state["rest"]


def test_programs_call_programs():
    @sgl.function
    def twice(s, a, b):
        story(s, a)
        s["first"] = s["rest"]
        story(s, b)
        return s["first"] + s["rest"]

    state = twice.bind(a="Once").run(b="The dog")
    assert state.ret_value == state["first"] + state["rest"]


def test_errors_stay_with_their_state(backend):
    @sgl.function
    def program(s):
        s += "a" + sgl.image("cat.png") + sgl.gen("x")

    state = program.run()
    assert "cat.png" in state.error()
    with pytest.raises(ValueError, match="cat.png"):
        state["x"]
    with pytest.raises(KeyError):
        state["never"]

    @sgl.function
    def broken(s):
        s += "Once" + sgl.gen("x", max_tokens=2)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken.run()
    state = broken.run(stream=True)
    with contextlib.suppress(RuntimeError):  # the gen may have been cut off, or not
        list(state.text_iter())
    assert "ZeroDivisionError" in state.error()


def test_what_is_refused():
    for wrong in ({"n": 2}, {"dtype": dict}, {"return_text_in_logprobs": True}):
        with pytest.raises(ValueError):
            sgl.gen("x", **wrong)
    with pytest.raises(ValueError):
        sgl.select("x", ["a"], temperature=1)
    with pytest.raises(TypeError, match="no_such"):
        story.run(start="a", no_such=1)
    with pytest.raises(ValueError, match="temprature"):
        sgl.function(lambda s: s.__iadd__(sgl.gen("x", temprature=1))).run()


# A prompt of 200 tokens that nothing else begins with.
def long_prompt(who):
    return f"{who}: " + "The harbour lay quiet in the morning and the boats were still out. " * 10


@sgl.function
def waiting(s, wait):
    s += long_prompt("Waiting") + sgl.gen("plan", max_tokens=2, temperature=0)
    s["plan"]
    wait()
    s += " Then" + sgl.gen("rest", max_tokens=2, temperature=0)


@sgl.function
def passing(s, who):
    s += long_prompt(who) + sgl.gen("x", max_tokens=2, temperature=0)


def test_a_running_program_finds_its_prefix_again(nano):
    names = [{"who": f"Number {i}"} for i in range(30)]  # thrice what the pages hold
    with sgl.Engine(model_path=nano, max_total_tokens=2048, threads=1) as engine:
        def cached_after(wait):
            engine.flush_cache()
            return waiting.run(wait, backend=engine).get_meta_info("rest")["cached_tokens"]

        def others():
            for one in names:
                engine.generate(long_prompt(one["who"]), {"max_new_tokens": 1})

        whole = cached_after(lambda: None)
        assert whole > 100
        assert cached_after(others) == whole
        # States that are kept do not keep the cache from those that run.
        kept = []
        assert cached_after(lambda: kept.extend(passing.run_batch(names, backend=engine))) == whole
        assert cached_after(lambda: kept.extend(passing.run(**one, backend=engine)
                                                for one in names)) == whole
        assert len(kept) == 60
        engine.flush_cache()
        engine.generate(long_prompt("Waiting"), {"max_new_tokens": 2})
        others()
        forgotten = engine.generate(long_prompt("Waiting"), {"max_new_tokens": 1})
        assert forgotten["meta_info"]["cached_tokens"] == 0, "the others did not fill the cache"
