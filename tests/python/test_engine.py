"""banyan.Engine, by SGLang's results."""

import asyncio
import gc
import json
import math
import threading

import pytest

import banyan

GREEDY = {"temperature": 0, "max_new_tokens": 8}
LONG = {"temperature": 0, "max_new_tokens": 480, "ignore_eos": True}
START = "Once upon a time"


def test_result_has_sglangs_form(engine):
    result = engine.generate(START, GREEDY)
    assert result["text"].startswith(", there was a ")
    assert len(result["output_ids"]) == 8
    meta = result["meta_info"]
    assert meta["finish_reason"] == {"type": "length", "length": 8}
    assert meta["completion_tokens"] == 8
    assert meta["prompt_tokens"] == len(engine.encode(START))
    assert isinstance(meta["id"], str)


def test_the_same_prompt_as_tokens(engine):
    ids = engine.encode(START)
    assert engine.generate(input_ids=ids, sampling_params=GREEDY)["text"] == \
        engine.generate(START, GREEDY)["text"]
    assert isinstance(engine.generate(input_ids=[ids], sampling_params=GREEDY), list)


def test_cached_tokens(engine):
    prompt = START + " there was a dragon who lived in a house. " * 12
    engine.flush_cache()
    first = engine.generate(prompt, GREEDY)
    second = engine.generate(prompt, GREEDY)
    assert first["meta_info"]["cached_tokens"] == 0
    assert second["meta_info"]["cached_tokens"] > 0
    assert first["text"] == second["text"]


def test_lists_and_samples(engine):
    results = engine.generate([START, "The dog"], [GREEDY, {**GREEDY, "max_new_tokens": 3}])
    assert [r["meta_info"]["completion_tokens"] for r in results] == [8, 3]
    samples = engine.generate(START, {"temperature": 1, "n": 3, "max_new_tokens": 12,
                                      "sampling_seed": 7})
    assert len({r["text"] for r in samples}) > 1
    again = engine.generate(START, {"temperature": 1, "n": 3, "max_new_tokens": 12,
                                    "sampling_seed": 7})
    assert [r["text"] for r in samples] == [r["text"] for r in again]


def test_samplers_of_llama_cpp(engine):
    """Each changes what a seed draws, samples included, and a run repeats."""
    params = {"temperature": 0.8, "max_new_tokens": 60, "sampling_seed": 3, "n": 2}
    prompt = "The dog saw the dog and the dog saw the dog and the"

    def texts(**more):
        return [r["text"] for r in engine.generate(prompt, {**params, **more})]

    plain = texts()
    dry = {"dry_multiplier": 4, "dry_base": 2, "dry_allowed_length": 1}
    for more in ({"typical_p": 0.3}, {"xtc_probability": 1, "xtc_threshold": 0.05}, dry):
        assert texts(**more) != plain
        assert texts(**more) == texts(**more)
    assert texts(**dry, dry_sequence_breakers=["e"]) != texts(**dry, dry_sequence_breakers=[])
    assert texts(**dry, dry_penalty_last_n=0) == plain
    penalty = {"repetition_penalty": 5}
    assert texts(**penalty, repeat_last_n=2) not in (plain, texts(**penalty))
    assert texts(**penalty, repeat_last_n=0) == plain
    for name, value in {"typical_p": 0, "repeat_last_n": -2, "xtc_probability": 2,
                        "xtc_threshold": -1, "dry_multiplier": -1, "dry_base": 0.5,
                        "dry_allowed_length": -1, "dry_penalty_last_n": -2,
                        "dry_sequence_breakers": "e"}.items():
        with pytest.raises(ValueError, match=name):
            texts(**{name: value})


def test_stop_and_grammar(engine):
    before = engine.generate(START, {**GREEDY, "max_new_tokens": 30})["text"].partition(" girl")[0]
    result = engine.generate(START, {**GREEDY, "max_new_tokens": 30, "stop": " girl"})
    assert result["text"] == before
    assert result["meta_info"]["finish_reason"] == {"type": "stop", "matched": " girl"}
    result = engine.generate(START, {**GREEDY, "max_new_tokens": 30, "stop_regex": "gi[rv]+l"})
    assert result["text"] == before + " girl"
    assert result["meta_info"]["finish_reason"] == {"type": "stop", "matched": "gi[rv]+l"}
    schema = json.dumps({"type": "object", "properties": {"age": {"type": "integer",
                                                                    "maximum": 99}},
                         "required": ["age"], "additionalProperties": False})
    made = engine.generate("Her age: ", {"temperature": 0, "max_new_tokens": 64,
                                         "json_schema": schema})
    assert json.loads(made["text"])["age"] <= 99


def test_logprobs(engine):
    result = engine.generate(START, GREEDY, return_logprob=True, logprob_start_len=0,
                             top_logprobs_num=2)
    meta = result["meta_info"]
    assert len(meta["output_token_logprobs"]) == 8
    assert [entry[1] for entry in meta["output_token_logprobs"]] == result["output_ids"]
    assert all(len(top) == 2 for top in meta["output_top_logprobs"])
    assert all(top[0][1] == entry[1] for top, entry in
               zip(meta["output_top_logprobs"], meta["output_token_logprobs"]))
    assert len(meta["input_token_logprobs"]) == meta["prompt_tokens"]
    assert meta["input_token_logprobs"][0][0] is None
    view = memoryview(meta["output_logprobs"])
    assert view.format == "f" and len(view) == 8
    numpy = pytest.importorskip("numpy")
    values = numpy.asarray(meta["output_logprobs"])
    assert values.dtype == numpy.float32 and (values <= 0).all()


def test_stream_is_cumulative_and_ends_as_the_whole(engine):
    params = {"temperature": 0, "max_new_tokens": 300, "ignore_eos": True}
    whole = engine.generate(START, params)
    pieces = list(engine.generate(START, params, stream=True))
    assert len(pieces) > 1
    assert all(b["text"].startswith(a["text"]) for a, b in zip(pieces, pieces[1:]))
    assert pieces[-1]["text"] == whole["text"]
    assert pieces[-1]["meta_info"]["finish_reason"] is not None
    indexed = list(engine.generate([START, "The dog"], GREEDY, stream=True))
    assert {r["index"] for r in indexed} == {0, 1}


def watch_calls(engine, monkeypatch):
    """The calls that the engine starts from here on."""
    calls, start = [], engine._start
    monkeypatch.setattr(engine, "_start", lambda *given: calls.append(start(*given)) or calls[-1])
    return calls


def assert_aborted(call):
    request = call.requests[0]
    while request.wait(1 << 60) != -1:
        pass
    assert request.result(False)["meta_info"]["finish_reason"]["type"] == "abort"


def test_a_stream_that_is_left_is_cancelled(engine, monkeypatch):
    calls = watch_calls(engine, monkeypatch)
    stream = engine.generate(START, LONG, stream=True)
    next(stream)
    stream.close()
    assert_aborted(calls[0])


def test_async(engine):
    async def all_of_them():
        many = await asyncio.gather(*(engine.async_generate(f"Day {i}", GREEDY)
                                      for i in range(40)))
        pieces = [piece async for piece in
                  await engine.async_generate(START, GREEDY, stream=True)]
        return many, pieces

    many, pieces = asyncio.run(all_of_them())
    assert [r["text"] for r in many] == \
        [r["text"] for r in engine.generate([f"Day {i}" for i in range(40)], GREEDY)]
    assert pieces[-1]["text"] == engine.generate(START, GREEDY)["text"]


def test_a_cancelled_task_cancels_its_request(engine, monkeypatch):
    calls = watch_calls(engine, monkeypatch)

    async def cancelled():
        task = asyncio.create_task(engine.async_generate(START, LONG))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert_aborted(calls[0])


def test_an_engine_may_go_while_its_requests_stay(model):
    engine = banyan.Engine(model_path=str(model), max_total_tokens=4096, threads=1)
    call = engine._start(None, START, LONG, None, False, None, None, None, None, {})
    native = call.requests[0]
    call.engine = None
    del engine, call
    gc.collect()
    native.cancel()


def test_the_gil_is_free_meanwhile(engine):
    turns = 0
    over = threading.Event()

    def count():
        nonlocal turns
        while not over.wait(0.001):
            turns += 1

    thread = threading.Thread(target=count)
    thread.start()
    engine.generate(START, {"temperature": 0, "max_new_tokens": 300, "ignore_eos": True})
    over.set()
    thread.join()
    assert turns > 2


def test_score(engine):
    labels = [engine.encode(" girl")[-1], engine.encode(" boy")[-1]]
    scores = engine.score(START + ", there was a little", [" ", ""], labels)
    assert all(0 <= value <= 1 for row in scores for value in row)
    softmax = engine.score(START, [" a"], labels, apply_softmax=True)
    assert math.isclose(sum(softmax[0]), 1, rel_tol=1e-6)


@pytest.mark.parametrize("params, word", [
    ({"temprature": 0}, "temprature"),
    ({"temperature": -1}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"regex": "("}, "("),
    ({"regex": "a", "ebnf": "root ::= \"a\""}, "only one of"),
    ({"n": 0}, "n is 0"),
])
def test_wrong_parameters_are_named(engine, params, word):
    with pytest.raises(ValueError) as raised:
        engine.generate(START, params)
    assert word in str(raised.value)


def test_wrong_prompts(engine):
    with pytest.raises(ValueError):
        engine.generate()
    with pytest.raises(ValueError):
        engine.generate(START, input_ids=[1])
    with pytest.raises(ValueError):
        engine.generate(input_ids=[10**6], sampling_params=GREEDY)
    with pytest.raises(ValueError, match="image_data"):
        engine.generate(START, image_data="cat.png")
    with pytest.raises(ValueError, match="3 entries for 2"):
        engine.generate([START, START], [GREEDY] * 3)


@pytest.mark.parametrize("options, word", [
    ({"enable_dp_attention": True}, "enable-dp-attention"),
    ({"lora_paths": ["x=/nowhere"]}, "/nowhere/adapter_config.json"),
    ({"pp_size": 2}, "pp-size"),
    ({"tp_size": 0}, "tp_size"),
    ({"no_such_option": 1}, "no-such-option"),
    ({"page_size": 3}, "page"),
    ({"schedule_policy": "random"}, "schedule-policy"),
])
def test_options_that_are_not_supported_are_named(model, options, word):
    with pytest.raises(ValueError) as raised:
        banyan.Engine(model_path=str(model), **options)
    assert word in str(raised.value)


def test_options_of_peers_that_mean_nothing(model):
    engine = banyan.Engine(model_path=str(model), tp_size=1, trust_remote_code=True,
                           disable_radix_cache=False, enable_lora=False, log_level="error",
                           max_total_tokens=1024, quantization=None)
    assert engine.get_server_info()["max_total_num_tokens"] <= 1024
    engine.shutdown()
    engine.shutdown()
    with pytest.raises(RuntimeError, match="shut down"):
        engine.generate(START)


def test_a_model_that_is_not_there():
    with pytest.raises((ValueError, LookupError, OSError), match="nowhere"):
        banyan.Engine(model_path="/nowhere")


def test_embeddings(engine):
    one = engine.embed(START)
    assert one.typecode == "f" and math.isclose(sum(x * x for x in one), 1, abs_tol=1e-5)
    both = engine.embed([START, "A dog"])
    assert both[0] == one != both[1]
    assert engine.embed(input_ids=engine.encode(START)) == one
    assert len(engine.embed(START, dimensions=8)) == 8
    with pytest.raises(ValueError, match="dimensions is 100000"):
        engine.embed(START, dimensions=100000)
    with pytest.raises(ValueError, match="exactly one of"):
        engine.embed()
