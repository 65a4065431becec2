// Every verb on working models: its results are on stdout, and nothing else is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/program.h"
#include "support/sanitized.h"

namespace banyan::verbs_test {
namespace {

using test::golden_model;
using test::keys;
using test::parse_output;
using test::ProgramResult;
using test::run_program;

using Words = std::vector<std::string>;

Words on_golden(Words words, const Words& more) {
  words.insert(words.end(), {"--model", golden_model(), "--threads", "1"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words on_nano(Words words, const Words& more) {
  words.insert(words.end(), {"--model", test::nano_model()});
  if (!words[0].ends_with("tokenize")) words.insert(words.end(), {"--threads", "1"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Generate, JsonHasExactlyThePromisedFields) {
  Json json = parse_output(
      run_program(on_golden({"generate"}, {"--prompt-ids", "1,5,9", "--max-new-tokens", "6",
                                           "--ignore-eos", "--json", "--top-logprobs", "3"})));
  EXPECT_EQ(keys(json), (Words{"prompt_ids", "output_ids", "text", "finish_reason", "matched_stop",
                               "prompt_tokens", "completion_tokens", "cached_tokens", "logprobs",
                               "timings", "seed"}));
  EXPECT_EQ(json["prompt_ids"], Json({1, 5, 9}));
  EXPECT_EQ(json["output_ids"].size(), 6u);
  EXPECT_EQ(json["finish_reason"], "length");
  EXPECT_EQ(json["matched_stop"], nullptr);
  EXPECT_EQ(json["prompt_tokens"], 3);
  EXPECT_EQ(json["completion_tokens"], 6);
  EXPECT_EQ(json["cached_tokens"], 0);
  EXPECT_EQ(json["seed"], nullptr);
  EXPECT_EQ(keys(json["timings"]),
            (Words{"load_s", "ttft_s", "prefill_tokens_per_s", "decode_tokens_per_s"}));
  ASSERT_EQ(json["logprobs"].size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const Json& token = json["logprobs"][i];
    EXPECT_EQ(keys(token), (Words{"id", "token", "logprob", "top"}));
    EXPECT_EQ(token["id"], json["output_ids"][i]);
    EXPECT_EQ(token["token"], nullptr);  // no tokenizer
    EXPECT_LE(token["logprob"], 0);
    ASSERT_EQ(token["top"].size(), 3u);
    EXPECT_EQ(keys(token["top"][0]), (Words{"id", "token", "logprob"}));
    EXPECT_EQ(token["top"][0]["id"], token["id"]);  // greedy
  }
}

TEST(Generate, PrintsIdsWithoutATokenizer) {
  ProgramResult plain =
      run_program(on_golden({"generate"}, {"--prompt-ids", "1,5,9", "--max-new-tokens", "4"}));
  Json json = parse_output(run_program(
      on_golden({"generate"}, {"--prompt-ids", "1,5,9", "--max-new-tokens", "4", "--json"})));
  std::string ids;
  for (const Json& id : json["output_ids"]) ids += (ids.empty() ? "" : ",") + id.dump();
  EXPECT_EQ(plain.out, ids + "\n");
  EXPECT_EQ(plain.err, "");
  EXPECT_EQ(plain.exit_code, 0);
}

TEST(Generate, StopTokenEndsTheOutputAndIsItsLast) {
  Json free = parse_output(run_program(on_golden(
      {"generate"}, {"--prompt-ids", "1,5,9", "--max-new-tokens", "5", "--ignore-eos", "--json"})));
  std::string third = free["output_ids"][2].dump();
  Json json =
      parse_output(run_program(on_golden({"generate"}, {"--prompt-ids", "1,5,9", "--ignore-eos",
                                                        "--json", "--stop-token-ids", third})));
  EXPECT_EQ(json["finish_reason"], "stop");
  EXPECT_EQ(json["matched_stop"].dump(), third);
  EXPECT_EQ(json["output_ids"].back().dump(), third);
  EXPECT_LE(json["completion_tokens"], 3);
}

TEST(Generate, SeedIsReportedAndRepeatsTheRun) {
  Words request = {"--prompt-ids",  "1,5,9", "--max-new-tokens", "20",
                   "--temperature", "2",     "--ignore-eos",     "--json"};
  Json first = parse_output(run_program(on_golden({"generate"}, request)));
  ASSERT_TRUE(first["seed"].is_number_unsigned());
  request.insert(request.end(), {"--seed", first["seed"].dump()});
  Json second = parse_output(run_program(on_golden({"generate"}, request)));
  EXPECT_EQ(first["output_ids"], second["output_ids"]);
}

TEST(Generate, WaysToGiveAPromptAgree) {
  const std::string prompt = "Once upon a time";
  ProgramResult text = run_program(on_nano({"generate"}, {"--prompt", prompt}));
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(text.err, "");
  EXPECT_GT(text.out.size(), 100u);
  EXPECT_TRUE(text.out.ends_with("\n"));
  EXPECT_EQ(run_program(on_nano({"generate"}, {"-"}), prompt).out, text.out);
  EXPECT_EQ(run_program(on_nano({"generate"}, {"--prompt", prompt, "--stream"})).out, text.out);
  test::TemporaryFolder folder;
  std::string file = folder.write("prompt", prompt);
  EXPECT_EQ(run_program(on_nano({"generate"}, {"--prompt-file", file})).out, text.out);
  std::string ids = run_program(on_nano({"tokenize"}, {prompt})).out;
  EXPECT_EQ(run_program(on_nano({"generate"}, {"--prompt-ids", ids})).out, text.out);
}

TEST(Generate, StopStringIsNotInTheText) {
  Json json = parse_output(run_program(
      on_nano({"generate"}, {"--prompt", "Once upon a time", "--json", "--stop", "."})));
  EXPECT_EQ(json["finish_reason"], "stop");
  EXPECT_EQ(json["matched_stop"], ".");
  EXPECT_EQ(json["text"].get<std::string>().find('.'), std::string::npos);
  EXPECT_TRUE(json["logprobs"][0]["token"].is_string());
}

// Random weights and a small tokenizer, whose </s> ends an output.
class ConstrainedGenerate : public testing::Test {
 protected:
  ConstrainedGenerate() {
    folder_.write("config.json", R"({
      "architectures": ["LlamaForCausalLM"], "vocab_size": 512, "hidden_size": 16,
      "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
      "num_key_value_heads": 1, "max_position_embeddings": 256, "eos_token_id": 2})");
    folder_.write(
        "tokenizer.json",
        read_file(test::source_path("tests/golden/tokenizer/tiny_byte_level/tokenizer.json"))
            .value());
  }
  ProgramResult generate(const Words& more) {
    Words words = {"generate",
                   "--model",
                   folder_.path(),
                   "--load-format",
                   "dummy",
                   "--temperature",
                   "1",
                   "--seed",
                   "1",
                   "--prompt",
                   "Hi",
                   "--threads",
                   "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }

  test::TemporaryFolder folder_;
};

TEST_F(ConstrainedGenerate, EachOptionShapesTheOutput) {
  EXPECT_EQ(generate({"--regex", "x[y]z"}).out, "xyz\n");
  EXPECT_EQ(generate({"--choice", "red", "--choice", "red"}).out, "red\n");
  std::string two = generate({"--choice", "red", "--choice", "green"}).out;
  EXPECT_TRUE(two == "red\n" || two == "green\n") << two;
  EXPECT_EQ(generate({"--choice", "yes, please"}).out, "yes, please\n");
  EXPECT_EQ(generate({"--json-schema", R"({"const": {"a": [1]}})"}).out, "{\"a\":[1]}\n");
  std::string schema = folder_.write("schema.json", R"({"enum": ["only"]})");
  EXPECT_EQ(generate({"--json-schema", schema}).out, "\"only\"\n");
  EXPECT_EQ(generate({"--grammar", "root ::= \"a\" \"b\""}).out, "ab\n");
  std::string rules = folder_.write("rules.gbnf", "root ::= \"from\" \" a file\"");
  EXPECT_EQ(generate({"--grammar", rules}).out, "from a file\n");
  EXPECT_EQ(generate({"--json-object", "--max-new-tokens", "2"}).out.front(), '{');
  Json json = parse_output(generate({"--json", "--regex", "7"}));
  EXPECT_EQ(json["text"], "7");
  EXPECT_EQ(json["finish_reason"], "stop");
  EXPECT_EQ(json["not_enforced"], Json::array());
}

TEST_F(ConstrainedGenerate, SaysWhatARelaxedSchemaLeavesOut) {
  std::string schema = R"({"type": "array", "items": {"const": 1}, "maxItems": 2,
                           "uniqueItems": true})";
  ProgramResult strict = generate({"--json-schema", schema});
  EXPECT_EQ(strict.exit_code, 2);
  EXPECT_NE(strict.err.find("--relaxed-schema"), std::string::npos) << strict.err;
  EXPECT_NE(strict.err.find("uniqueItems"), std::string::npos) << strict.err;
  ProgramResult relaxed = generate({"--json-schema", schema, "--relaxed-schema"});
  EXPECT_EQ(relaxed.exit_code, 0);
  EXPECT_NE(relaxed.err.find("uniqueItems"), std::string::npos) << relaxed.err;
}

TEST_F(ConstrainedGenerate, MistakesAreNamed) {
  auto refused = [&](const Words& words, const std::string& named) {
    ProgramResult result = generate(words);
    EXPECT_EQ(result.exit_code, 2) << named;
    EXPECT_NE(result.err.find(named), std::string::npos) << result.err;
  };
  refused({"--regex", "a", "--choice", "b"}, "--regex and --choice are both given");
  refused({"--regex", "(a"}, "--regex: ");
  refused({"--regex", "(?=a)b"}, "--regex: ");
  refused({"--json-schema", "{"}, "the JSON schema");
  refused({"--grammar", "root ::= other"}, "other");
  refused({"--relaxed-schema"}, "--relaxed-schema");
  refused({"--json-flexible-whitespace", "--regex", "a"}, "--json-flexible-whitespace");
  ProgramResult lost = generate({"--json-schema", "no-such-file.json"});
  EXPECT_EQ(lost.exit_code, 1);
  EXPECT_NE(lost.err.find("no-such-file.json"), std::string::npos) << lost.err;
  ProgramResult rules = generate({"--grammar", "root = \"a\""});
  EXPECT_NE(rules.err.find("rules are written as root ::="), std::string::npos) << rules.err;
  ProgramResult bare = run_program(on_golden({"generate"}, {"--prompt-ids", "1", "--regex", "a"}));
  EXPECT_EQ(bare.exit_code, 1);
  EXPECT_NE(bare.err.find("needs a tokenizer"), std::string::npos) << bare.err;
}

TEST(Generate, AFullDiskIsAFailure) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "/dev/full is not there";
  int status = std::system((test::program_path() + " --help >/dev/full 2>/dev/null").c_str());
  EXPECT_EQ(test::exit_code_of(status), 1);
}

TEST(Score, JsonAndTableAgree) {
  Json json = parse_output(run_program(on_golden({"score"}, {"--ids", "1,5,9,2", "--json"})));
  EXPECT_EQ(keys(json), (Words{"ids", "logprobs"}));
  EXPECT_EQ(json["ids"], Json({1, 5, 9, 2}));
  ASSERT_EQ(json["logprobs"].size(), 4u);
  EXPECT_EQ(json["logprobs"][0], nullptr);
  EXPECT_LT(json["logprobs"][1], 0);

  ProgramResult table = run_program(on_golden({"score"}, {"--ids", "1,5,9,2"}));
  EXPECT_TRUE(table.out.starts_with("0\t1\t-\t-\n1\t5\t-\t-")) << table.out;
  EXPECT_EQ(std::ranges::count(table.out, '\n'), 4);
  EXPECT_NE(table.err.find("perplexity"), std::string::npos);
}

TEST(Score, TextIsTokenizedFirst) {
  Json json =
      parse_output(run_program(on_nano({"score"}, {"--text", "Once upon a time", "--json"})));
  Json ids = parse_output(run_program(on_nano({"tokenize"}, {"Once upon a time", "--json"})));
  EXPECT_EQ(json["ids"], ids["ids"]);
}

TEST(Embed, EveryLineIsATextOfItsOwn) {
  ProgramResult lines =
      run_program(on_nano({"embed"}, {"-", "--lines", "--dimensions", "4"}), "a cat\n\na dog\r\n");
  ASSERT_EQ(lines.exit_code, 0) << lines.err;
  EXPECT_EQ(std::ranges::count(lines.out, '\n'), 2);
  EXPECT_EQ(std::ranges::count(lines.out, ' '), 2 * 3);
  ProgramResult one = run_program(on_nano({"embed"}, {"a dog", "--dimensions", "4"}));
  EXPECT_TRUE(lines.out.ends_with("\n" + one.out)) << lines.out << one.out;
  Json json = parse_output(run_program(on_nano({"embed"}, {"a dog", "--json"})));
  EXPECT_EQ(keys(json), (Words{"text", "embedding"}));
  EXPECT_GT(json["embedding"].size(), 4u);
}

TEST(Embed, ATableComparesTexts) {
  ProgramResult table = run_program(on_nano({"embed"}, {"-", "--compare"}), "a cat\na dog\n");
  EXPECT_TRUE(table.out.starts_with(" 1.0000 ")) << table.out << table.err;
  EXPECT_NE(table.out.find(" 1.0000  a dog\n"), std::string::npos) << table.out;
  ProgramResult none = run_program(on_nano({"embed"}, {"-", "--lines"}), "\n");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("no text to embed"), std::string::npos) << none.err;
}

TEST(Tokenize, RoundTrip) {
  Json json = parse_output(run_program(on_nano({"tokenize"}, {"Once upon a time", "--json"})));
  EXPECT_EQ(keys(json), (Words{"ids", "tokens"}));
  EXPECT_EQ(json["ids"][0], 0);
  EXPECT_EQ(json["tokens"][0], "<|startoftext|>");
  ProgramResult ids =
      run_program(on_nano({"tokenize"}, {"--no-special-tokens", "-"}), "Once upon a time");
  EXPECT_EQ("0," + ids.out, run_program(on_nano({"tokenize"}, {"Once upon a time"})).out);
  EXPECT_EQ(run_program(on_nano({"detokenize"}, {"--ids", ids.out})).out, "Once upon a time\n");
  Json text = parse_output(run_program(on_nano({"detokenize"}, {"-", "--json"}), ids.out));
  EXPECT_EQ(keys(text), Words{"text"});
  EXPECT_EQ(text["text"], "Once upon a time");
}

TEST(Inspect, JsonHasThePromisedFields) {
  Json json = parse_output(run_program(on_golden({"inspect"}, {"--json"})));
  for (const char* key : {"family", "layers", "parameters_total", "parameters_active",
                          "weight_bytes", "state_bytes_per_token", "state_bytes_per_sequence"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["family"], "Qwen3ForCausalLM");
  ASSERT_EQ(json["layers"].size(), 2u);
  EXPECT_EQ(json["layers"][1], Json({{"index", 1}, {"mixer", "gqa"}, {"ffn", "dense"}}));
  EXPECT_EQ(json["state_bytes_per_token"], 2 * 2 * 2 * 24 * 4);  // layers, K and V, heads, f32
  EXPECT_EQ(json["kv_cache_dtype"], "f32");
  Json small =
      parse_output(run_program(on_golden({"inspect"}, {"--json", "--kv-cache-dtype", "fp8"})));
  EXPECT_EQ(small["state_bytes_per_token"], 2 * 2 * 2 * (24 + 4));
  EXPECT_EQ(small["kv_cache_dtype"], "fp8_e4m3");
  ASSERT_EQ(json["state_classes"].size(), 1u);
  EXPECT_EQ(json["state_classes"][0]["name"], "pages");
  // Embedding, attention with its norms, mlp, layer norms, final norm; the head is tied.
  int64_t layer = 48 * (144 + 48 + 48 + 144) + 2 * 24 + 3 * 48 * 52 + 2 * 48;
  EXPECT_EQ(json["parameters_total"], 131 * 48 + 2 * layer + 48);
}

TEST(Inspect, GroupsEqualLayers) {
  ProgramResult result = run_program(on_golden({"inspect"}, {}));
  EXPECT_NE(result.out.find("2 x gqa + dense\n"), std::string::npos) << result.out;
  EXPECT_EQ(result.err, "");
}

TEST(Inspect, SaysWhatIntegerProductsRoundAndHowToAvoidIt) {
  std::string folder = test::source_path("tests/golden/quantised/w4a16");
  ProgramResult result = run_program({"inspect", "--model", folder});
  EXPECT_NE(result.out.find("Products with int4 round activations to 8 bits"), std::string::npos);
  EXPECT_NE(result.out.find("--quantization weight-only"), std::string::npos) << result.out;
  Json json = parse_output(run_program({"inspect", "--model", folder, "--json"}));
  std::string activations;
  for (const Json& w : json["weights"]) activations += w["activations"].get<std::string>();
  EXPECT_EQ(activations, "int8int8int8int8");
  result = run_program({"inspect", "--model", folder, "-q", "weight-only"});
  EXPECT_EQ(result.out.find("8 bits"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("=  fp8, groups of 32"), std::string::npos) << result.out;
}

TEST(Inspect, RefusesWeightOnlyWhereNoIntegersAreStored) {
  for (const Words& choice :
       {Words{"-q", "weight-only"}, Words{"--quantization-override", "o_proj=weight-only"}}) {
    ProgramResult result = run_program(on_golden({"inspect"}, choice));
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_NE(result.err.find("weight-only"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("stored as f32"), std::string::npos) << result.err;
  }
}

TEST(Inspect, DummyNeedsTheConfigAlone) {
  test::TemporaryFolder folder;
  folder.write("config.json", read_file(golden_model() + "/config.json").value());
  Json json = parse_output(
      run_program({"inspect", "--model", folder.path(), "--load-format", "dummy", "--json"}));
  EXPECT_EQ(json["layers"].size(), 2u);
  ProgramResult generated = run_program({"generate", "--model", folder.path(), "--load-format",
                                         "dummy", "--prompt-ids", "1", "--max-new-tokens", "2"});
  EXPECT_EQ(generated.exit_code, 0) << generated.err;
}

TEST(BenchOneBatch, JsonHasThePromisedFields) {
  Json json = parse_output(run_program(
      on_golden({"bench", "one-batch"}, {"--batch-size", "1,3", "--input-len", "20", "--output-len",
                                         "5", "--repeat", "2", "--json"})));
  EXPECT_EQ(keys(json), (Words{"machine", "limits", "model", "repeat", "step_times", "results"}));
  EXPECT_EQ(json["machine"]["threads"], 1);
  EXPECT_GT(json["model"]["load_s"], 0);
  ASSERT_EQ(json["results"].size(), 2u);
  for (const Json& result : json["results"]) {
    EXPECT_EQ(result["input_len"], 20);
    EXPECT_EQ(result["output_len"], 5);
    EXPECT_GT(result["prefill_tokens_per_s"], 0);
    EXPECT_GT(result["decode_tokens_per_s"], 0);
    for (const char* kind : {"prefill", "decode"}) {
      SCOPED_TRACE(kind);
      double rate = result[std::string(kind) + "_tokens_per_s"];
      double flops = result[std::string(kind) + "_flops_per_token"];
      EXPECT_GT(flops, 0);
      EXPECT_NEAR(result[std::string(kind) + "_flops_per_s"], rate * flops, rate * flops * 1e-9);
      EXPECT_GT(result[std::string(kind) + "_fraction"], 0);
    }
    EXPECT_GT(result["decode_bytes_per_token"], 0);
  }
  EXPECT_GT(json["limits"]["read_bytes_per_s"], 1e8);
  EXPECT_GT(json["limits"]["bf16_flops_per_s"], 1e8);
  EXPECT_EQ(json["results"][1]["batch_size"], 3);
}

TEST(BenchOneBatch, FillsTheContextAndLeavesOutDecode) {
  ProgramResult full =
      run_program(on_golden({"bench", "one-batch"}, {"--batch-size", "4", "--input-len", "200",
                                                     "--output-len", "56", "--no-limits"}));
  EXPECT_EQ(full.exit_code, 0) << full.err;
  Json json = parse_output(run_program(on_golden(
      {"bench", "one-batch"},
      {"--batch-size", "2", "--input-len", "9", "--output-len", "1", "--no-limits", "--json"})));
  EXPECT_EQ(json["results"][0]["decode_tokens_per_s"], nullptr);
  EXPECT_EQ(json["results"][0]["prefill_fraction"], nullptr);
  EXPECT_EQ(json["limits"], nullptr);
}

TEST(BenchMachine, MeasuresEveryLimitOnOneAndTwoThreads) {
  Words words = {"bench", "machine", "--threads", "2", "--seconds", "0.001"};
  ProgramResult text = run_program(words);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  words.push_back("--json");
  Json json = parse_output(run_program(words));
  EXPECT_EQ(json["threads"], (Json{1, 2}));
  Json names = Json::array();
  for (const Json& limit : json["limits"]) {
    std::string name = limit["name"];
    EXPECT_NE(text.out.find(name), std::string::npos) << name;
    names.push_back(name);
    ASSERT_EQ(limit["values"].size(), 2u) << name;
    if (name == "bytes ahead") continue;
    for (double value : limit["values"]) EXPECT_GT(value, 0) << name;
  }
  EXPECT_EQ(names[0], "read, plain loop");
  EXPECT_EQ(names.back(), "barrier");
  ASSERT_FALSE(json["bounds"].empty());
  for (const Json& bound : json["bounds"]) {
    EXPECT_NE(std::ranges::find(names, bound["limit"]), names.end()) << bound;
  }
}

TEST(BenchPrefixCache, ReplaysByPolicyAndCapacity) {
  Words words = {"bench",
                 "prefix-cache",
                 "--trace",
                 "generated-shared-prefix",
                 "--gsp-num-groups",
                 "4",
                 "--gsp-prompts-per-group",
                 "5",
                 "--gsp-system-prompt-len",
                 "256",
                 "--gsp-question-len",
                 "64",
                 "--output-len",
                 "2",
                 "--capacity-tokens",
                 "512,8192",
                 "--policy",
                 "lpm,fcfs,dfs",
                 "--max-running-requests",
                 "1",
                 "--json"};
  Json json = parse_output(run_program(words));
  EXPECT_EQ(json["requests"], 20);
  EXPECT_EQ(json["prompt_tokens"], 20 * 320);
  EXPECT_DOUBLE_EQ(json["unbounded_hit_rate"].get<double>(), 16.0 * 256 / (20 * 320));
  ASSERT_EQ(json["results"].size(), 6u);
  const Json &lpm = json["results"][0], &fcfs = json["results"][1], &dfs = json["results"][2];
  EXPECT_EQ(lpm["policy"], "lpm");
  EXPECT_EQ(dfs["hit_rate"], json["unbounded_hit_rate"]);
  EXPECT_GT(lpm["hit_rate"], fcfs["hit_rate"]);
  EXPECT_EQ(fcfs["hit_rate"], fcfs["lru_hit_rate"]);
  EXPECT_LE(lpm["cold_wait_bound_ratio"], 1);
  words.pop_back();
  std::string table = run_program(words).out;
  EXPECT_EQ(std::ranges::count(table, '\n'), 7);
}

TEST(BenchPrefixCache, NamesAWrongValue) {
  Words start = {"bench", "prefix-cache", "--trace", "generated-shared-prefix"};
  auto expect_usage_error = [&](Words words, const char* named) {
    words.insert(words.begin(), start.begin(), start.end());
    ProgramResult result = run_program(words);
    EXPECT_EQ(result.exit_code, 2) << named;
    EXPECT_NE(result.err.find(named), std::string::npos) << result.err;
  };
  expect_usage_error({"--policy", "lpm,lru"}, "\"lru\"");
  expect_usage_error({"--policy", ""}, "--policy");
  expect_usage_error({"--capacity-tokens", "100"}, "--capacity-tokens 100");
  expect_usage_error({"--page-size", "48"}, "--page-size 48");
  expect_usage_error({"--gsp-num-groups", "1000000"}, "tokens; the limit is");
  EXPECT_EQ(run_program({"bench", "prefix-cache", "--trace", "/nowhere"}).exit_code, 1);
}

TEST(BenchPrograms, TellsWhatTheCacheAndTheHintsGive) {
  constexpr int kInstances = test::kSanitized ? 1 : 2;
  test::TemporaryFolder folder;
  test::make_endless_model(folder);
  Words words = {"bench", "programs", "--model", folder.path(), "--load-format", "dummy"};
  words.insert(words.end(), {"--parallelism", "2", "--threads", "1"});
  words.insert(words.end(), {"--instances", std::to_string(kInstances)});
  Words some = words, wrong = words, peer = words;
  some.insert(some.end(), {"--programs", "self_consistency,json_extraction", "--json"});
  ProgramResult result = run_program(some);  // a sanitizer warns of fibers on stderr
  ASSERT_EQ(result.exit_code, 0) << result.err;
  Json json = parse_json(result.out, "stdout").value();
  EXPECT_EQ(keys(json), (Words{"model", "instances", "parallelism", "repeat", "results"}));
  ASSERT_EQ(json["results"].size(), 10u);
  std::map<std::string, Json> rows;
  for (const Json& row : json["results"]) {
    ASSERT_FALSE(row.contains("error")) << row;
    EXPECT_GT(row["programs_per_s"], 0);
    EXPECT_LE(row["hit_rate"], row["optimal_hit_rate"]);
    rows[row["workload"].get<std::string>() + "/" + row["setting"].get<std::string>()] = row;
  }
  // With a call for what comes before the forks.
  EXPECT_EQ(rows["self_consistency/all"]["calls"], kInstances * (5 * 2 + 1));
  EXPECT_GT(rows["self_consistency/all"]["hit_rate"], 0.6);
  EXPECT_EQ(rows["self_consistency/no-radix-cache"]["hit_rate"], 0);
  EXPECT_EQ(rows["self_consistency/unhinted-forks"]["calls"], kInstances * 5 * 2);
  const Json &jumps = rows["json_extraction/all"], &steps = rows["json_extraction/no-jump-forward"];
  EXPECT_GE(steps["steps"], jumps["steps"]);  // the same where a model draws at random
  EXPECT_EQ(steps["new_tokens"], jumps["new_tokens"]);

  wrong.insert(wrong.end(), {"--programs", "few_shot,judgement"});
  ProgramResult refused = run_program(wrong);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("\"judgement\" is not one of few_shot,"), std::string::npos)
      << refused.err;
  peer.insert(peer.end(),
              {"--programs", "few_shot", "--settings", "all", "--peer-url", "http://127.0.0.1:1"});
  EXPECT_EQ(run_program(peer).exit_code, 1);
}

}  // namespace
}  // namespace banyan::verbs_test
