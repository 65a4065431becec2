"""The `sglang` package's own language, unchanged."""

import pytest
import sglang as sgl


@pytest.fixture(autouse=True, scope="module")
def backend(server):
    endpoint = sgl.RuntimeEndpoint(server.url)
    sgl.set_default_backend(endpoint)
    return endpoint


@sgl.function
def story(s, start):
    s += start + sgl.gen("rest", max_tokens=10, temperature=0)


@sgl.function
def choose(s):
    s += "Once upon a " + sgl.select("what", ["time", "purple", "xylophone"])


@sgl.function
def branches(s):
    s += "Once upon a time"
    forks = s.fork(3)
    for i, fork in enumerate(forks):
        fork += f", {i}" + sgl.gen("part", max_tokens=4, temperature=0)
    forks.join()
    s += " The end: " + "".join(forks[i]["part"] for i in range(3))


@sgl.function
def talk(s):
    s += sgl.system("Tell a story.")
    s += sgl.user("Once")
    s += sgl.assistant(sgl.gen("reply", max_tokens=6, temperature=0, stop="\n"))


def test_gen():
    assert story.run(start="Once upon a time")["rest"].startswith(", there was a little girl")
    assert story.run(start="Once")["rest"].startswith(" upon a time")


def test_gen_tells_of_itself():
    state = story.run(start="Once upon a time")
    meta = state.get_meta_info("rest")
    assert meta["completion_tokens"] == 10
    assert meta["finish_reason"] == {"type": "length", "length": 10}


def test_stop_and_logprobs():
    @sgl.function
    def program(s):
        s += "Once upon a time" + sgl.gen("rest", max_tokens=30, temperature=0, stop=[" girl"],
                                          return_logprob=True, top_logprobs_num=2,
                                          return_text_in_logprobs=True)

    state = program.run()
    assert state["rest"] == ", there was a little"
    meta = state.get_meta_info("rest")
    assert meta["finish_reason"]["matched"] == " girl"
    assert len(meta["output_token_logprobs"]) == meta["completion_tokens"]
    assert all(len(top) == 2 for top in meta["output_top_logprobs"])


@pytest.mark.parametrize("method", [sgl.token_length_normalized, sgl.greedy_token_selection,
                                    sgl.unconditional_likelihood_normalized])
def test_select(method):
    @sgl.function
    def program(s):
        s += "Once upon a " + sgl.select("what", ["time", "purple", "xylophone"],
                                         choices_method=method)

    assert program.run()["what"] in ("time", "purple", "xylophone")
    assert choose.run()["what"] == "time"


def test_fork_and_join():
    state = branches.run()
    assert " The end: " in state.text()


def test_run_batch():
    states = story.run_batch([{"start": f"Day {i}"} for i in range(20)], num_threads=8)
    assert all(state["rest"] for state in states)
    alone = story.run(start="Day 7")
    assert states[7]["rest"] == alone["rest"]


def test_stream():
    state = story.run(start="Once upon a time", stream=True)
    text = "".join(state.text_iter())
    assert text == "Once upon a time" + state["rest"]


def test_roles():
    assert isinstance(talk.run()["reply"], str)


def test_backend_calls(backend):
    backend.flush_cache()
    backend.cache_prefix("Once upon a time")
    assert backend.get_server_info()["internal_states"]
    assert backend.get_model_name()
