// Command lines: help, version, and the errors for mistakes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "banyan/options.h"
#include "cli/program.h"

namespace banyan::arguments_test {
namespace {

using test::golden_model;
using test::ProgramResult;
using test::run_program;

using Words = std::vector<std::string>;

const std::vector<Words> kVerbs = {{"run"},
                                   {"serve"},
                                   {"generate"},
                                   {"score"},
                                   {"tokenize"},
                                   {"detokenize"},
                                   {"inspect"},
                                   {"bench", "machine"},
                                   {"bench", "one-batch"},
                                   {"bench", "prefix-cache"}};

// Text that is not one of our messages: a library's, or a placeholder for a type.
void expect_plain_words(const std::string& text) {
  for (const char* foreign : {"json.exception", "INT in", "FLOAT in", "{false}", "REQUIRED",
                              "Could not convert", "not expected", "INI was", "yaml-cpp"}) {
    EXPECT_EQ(text.find(foreign), std::string::npos) << foreign << " in\n" << text;
  }
}

TEST(Arguments, HelpOfEveryVerbIsOneScreenWithExamples) {
  for (Words words : kVerbs) {
    std::string name = words.size() == 2 ? words[0] + " " + words[1] : words[0];
    words.push_back("--help");
    ProgramResult result = run_program(words);
    EXPECT_EQ(result.exit_code, 0) << name;
    EXPECT_EQ(result.err, "") << name;
    EXPECT_NE(result.out.find("\nExamples:\n  "), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("banyan " + name), std::string::npos) << result.out;
    EXPECT_LE(std::ranges::count(result.out, '\n'), 60) << result.out;
    std::istringstream lines(result.out.substr(0, result.out.find("Examples:")));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    words.back() = "--help-all";
    ProgramResult all = run_program(words);
    EXPECT_GE(all.out.size(), result.out.size()) << name;
    expect_plain_words(all.out);
    if (words[0] != "bench") {
      EXPECT_NE(all.out.find("--log-level"), std::string::npos) << all.out;
    }
  }
}

TEST(Arguments, AWordThatGroupsVerbsListsThem) {
  ProgramResult help = run_program({"bench", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_NE(help.out.find("banyan bench one-batch"), std::string::npos) << help.out;
  EXPECT_EQ(run_program({"help", "bench"}).out, help.out);
  ProgramResult bare = run_program({"bench"});
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_NE(bare.err.find("banyan bench serving"), std::string::npos) << bare.err;
}

TEST(Arguments, OverviewListsTheVerbs) {
  ProgramResult result = run_program({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  for (const Words& words : kVerbs) {
    EXPECT_NE(result.out.find("\n  " + words[0]), std::string::npos) << words[0];
  }
  ProgramResult nothing = run_program({});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_EQ(nothing.out, "");
  EXPECT_EQ(nothing.err, result.out);
}

TEST(Arguments, HelpAsAVerb) {
  EXPECT_EQ(run_program({"help"}).out, run_program({"--help"}).out);
  EXPECT_EQ(run_program({"help", "score"}).out, run_program({"score", "--help"}).out);
}

TEST(Arguments, VersionIsOneLine) {
  ProgramResult result = run_program({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(result.out.starts_with("banyan 0.")) << result.out;
}

struct Mistake {
  Words words;
  std::string named;  // in the message
};

// Each ends with exit code 2 and a message on stderr alone.
void expect_usage_error(const Mistake& mistake) {
  ProgramResult result = run_program(mistake.words);
  EXPECT_EQ(result.exit_code, 2) << mistake.named << "\n" << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("banyan: ")) << result.err;
  EXPECT_NE(result.err.find(mistake.named), std::string::npos) << result.err;
}

TEST(Arguments, MistakesOfVerbsAreNamed) {
  for (const Mistake& mistake : std::vector<Mistake>{
           {{"jump"}, "\"jump\""},
           {{"bench"}, "one-batch"},
           {{"bench", "two-batch"}, "\"two-batch\""},
           {{"\033[31mred"}, "\\x1b"},
           {{"generate"}, "--model"},
           {{"inspect", "--model"}, "--model"},
           {{"inspect", "--model", "x", "--jump"}, "--jump"},
           {{"inspect", "--model", "x", "extra"}, "extra"},
           {{"inspect", "--model", "x", "--dtype", "f8"}, "f8"},
           {{"inspect", "--model", "x", "--kernels", "sse9"}, "sse9"},
           {{"generate", "x", "-ctk", "q8_0", "-ctv", "f16"}, "kept alike, and the other is q8_0"},
           {{"generate", "x", "-ctk", "q4_0"}, "q4_0"},
           {{"generate", "x", "--rope-scaling", "yarn"}, "--rope-scaling: is not supported yet"},
           {{"generate", "x", "-ctk", "f16", "--kv-cache-dtype", "f32"}, "--cache-type-k"},
           {{"generate", "-fa", "x"}, "--flash-attn: \"x\" is not one of on, off"},
           {{"generate", "x", "-mg", "1"}, "CUDA_VISIBLE_DEVICES"},
           {{"generate", "x", "-ngl", "9", "-ngl", "9"}, "--n-gpu-layers is given more than once"},
           {{"generate", "x", "-ngl", "many"}, "--n-gpu-layers: \"many\" is not a number"},
           {{"generate", "x", "-b", "lots"}, "--batch-size: \"lots\" is not a number"},
           {{"run", "x", "-ub", "x"}, "--ubatch-size: \"x\" is not a number"},
           {{"serve", "x", "--ubatch-size", "some"}, "--ubatch-size: \"some\" is not a number"},
           {{"serve", "x", "--ubatch-size", "2M"}, "--ubatch-size is 2097152"},
           {{"serve", "x", "--ubatch-size", "99999999999"}, "\"99999999999\" is too large"},
           {{"serve", "x", "--max-queued-requests", "1.5"}, "\"1.5\" is not a whole number"},
           {{"generate", "x", "--tokenizer-mode", "slow"}, "slow"},
           {{"inspect", "--model", "x", "--load-format", "bitsandbytes"}, "bitsandbytes"},
           {{"inspect", "--model", "x", "--mla-prefill", "both"}, "both"},
           {{"inspect", "--model", "x", "--threads", "-1"}, "-1"},
           {{"inspect", "--model", "x", "--threads", "many"}, "many"},
           {{"inspect", "--model", "x", "--threads", "99999999999999999999"}, "9999999999999"},
           {{"inspect", "--model", "x", "--context-length", "-5"}, "-5"},
           {{"inspect", "--model", "x", "--log-level", "loud"}, "loud"},
           {{"inspect", "--model", golden_model(), "--context-length", "257"}, "257"},
           {{"inspect", "--model", golden_model(), "--max-model-len", "1K"}, "1024"},
           {{"inspect", "--model", golden_model(), "--max-model-len", "1.5k"}, "1500"},
           {{"inspect", "--model", golden_model(), "--max-model-len", "1.2345k"}, "1.2345k"},
           {{"inspect", "--model", golden_model(), "--max-model-len", "1T"}, "1T"},
           {{"tokenize", "--model", "x"}, "TEXT"},
           {{"tokenize", "--model", "x", "a", "--text", "b"}, "more than one input"},
           {{"detokenize", "--model", "x"}, "--ids"},
           {{"detokenize", "--model", "x", "--ids", "1,two"}, "two"},
       }) {
    expect_usage_error(mistake);
  }
}

// They were the names of fields that nobody types.
TEST(Arguments, ErrorsNameOptionsAsTheyWereTyped) {
  for (const Mistake& mistake : std::vector<Mistake>{
           {{"--gpu-memory-utilization", "90"}, "--gpu-memory-utilization is 90"},
           {{"--mem-fraction-static=90"}, "--mem-fraction-static is 90"},
           {{"--page-size", "3"}, "--page-size is 3, not a power of two"},
           {{"--block-size", "3"}, "--block-size is 3, not a power of two"},
           {{"--max-running-requests", "0"}, "--max-running-requests is 0"},
           {{"-np", "0"}, "--parallel is 0"},
           {{"--batch-size", "4M"}, "--batch-size is 4194304"},
           {{"--grammar-timeout", "0"}, "--grammar-timeout is 0"},
           {{"--max-connections", "0"}, "--max-connections is 0"},
           {{"--watchdog-timeout", "-1"}, "--watchdog-timeout"},
           {{"--watchdog-timeout", "soon"}, "\"soon\" is not a number"},
           {{"--otlp-traces-endpoint", "foo"}, "--otlp-traces-endpoint \"foo\" is not a URL"}}) {
    Words words = {"serve", "x"};
    words.insert(words.end(), mistake.words.begin(), mistake.words.end());
    expect_usage_error({words, mistake.named});
  }
}

// CLI11 made an absent flag false: `serve --device cuda` did not overlap its steps.
TEST(Arguments, AnAbsentFlagIsNotItsNegation) {
  auto parse = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"--model", "x"});
    return parse_engine_options(words).value();
  };
  EXPECT_EQ(parse({}).overlap_schedule, std::nullopt);
  EXPECT_EQ(parse({"--async-scheduling"}).overlap_schedule, true);
  EXPECT_EQ(parse({"--disable-overlap-schedule"}).overlap_schedule, false);
  EXPECT_EQ(parse({}).moba_decode, std::nullopt);
  EXPECT_EQ(parse({"--moba-decode"}).moba_decode, true);
  EXPECT_EQ(parse({"--no-moba-decode"}).moba_decode, false);
}

TEST(Arguments, ValuesThatMeanWhatIsDoneAnywayAreAccepted) {
  auto parse = [](const char* option, const char* value) {
    return parse_engine_options({"--model", "x/", option, value});
  };
  using Case = std::array<const char*, 3>;  // a value that is accepted, and one that is not
  for (auto [option, good, bad] :
       std::vector<Case>{{"--dp-size", "1", "2"},
                         {"--base-gpu-id", "0", "1"},
                         {"--tokenizer-mode", "auto", "slow"},
                         {"--chat-template-content-format", "string", "openai"},
                         {"--cpu-offload-gb", "0", "4"},
                         {"--n-cpu-moe", "0", "3"},
                         {"--schedule-conservativeness", "1.0", "0.3"},
                         {"--stream-interval", "1", "10"},
                         {"--disaggregation-mode", "null", "prefill"},
                         {"--moe-a2a-backend", "none", "deepep"},
                         {"--runner", "generate", "draft"},
                         {"--prio", "0", "2"},
                         {"--radix-eviction-policy", "LRU", "lfu"},
                         {"--hf-overrides", "{ }", R"({"a":1})"},
                         {"--json-model-override-args", "{}", R"({"a":1})"},
                         {"--load-format", "gguf", "npcache"},
                         {"--device", "auto", "tpu"},
                         {"--max-prefill-tokens", "16384", "511"},
                         {"--tokenizer", "x", "y"}}) {
    Result<EngineConfig> accepted = parse(option, good), refused = parse(option, bad);
    EXPECT_TRUE(accepted) << option << accepted.error().message;
    ASSERT_FALSE(refused) << option;
    EXPECT_TRUE(refused.error().message.contains(bad)) << refused.error().message;
    EXPECT_TRUE(refused.error().message.contains(option)) << refused.error().message;
  }
  for (const char* rest : {"auto", "-1"}) {
    EXPECT_EQ(parse("--max-model-len", rest).value().context_length_tokens, 0);
  }
  EXPECT_FALSE(parse("--max-model-len", "-2"));
}

// CLI11 takes -hft for -h with more flags, and -cram for -c with the value "ram".
TEST(Arguments, NamesOfSeveralLettersAfterOneDashAreNamed) {
  for (const Words& words : std::vector<Words>{{"inspect", "x", "-hft", "token"},
                                               {"tokenize", "x", "-hft", "token"},
                                               {"inspect", "x", "-hf_token", "token"},
                                               {"bench", "machine", "-hft"},
                                               {"serve", "x", "-cnv"},
                                               {"serve", "x", "-st"},
                                               {"run", "-no-cnv", "x"},
                                               {"quantize", "x", "-cram", "0"}}) {
    std::string option = *std::ranges::find_if(words, [](auto& w) { return w.starts_with('-'); });
    expect_usage_error({words, "\"" + option + "\" is not an option of `banyan " + words[0]});
  }
  expect_usage_error({{"bench", "machine", "-hft=x"}, "\"-hft\" is not an option"});
  expect_usage_error({{"generate", "x", "-pHello"}, "write a space before the value: -p Hello"});
  expect_usage_error({{"generate", "x", "-ts", "3,1"}, "--tensor-split: is not supported yet"});
  ProgramResult value = run_program({"tokenize", test::nano_model(), "--text", "-hft"});
  EXPECT_EQ(value.exit_code, 0) << value.err;
}

TEST(Arguments, NearNamesAreOffered) {
  for (const Mistake& mistake : std::vector<Mistake>{
           {{"serv"}, "did you mean `banyan serve`?"},
           {{"genrate"}, "did you mean `banyan generate`?"},
           {{"chat"}, "did you mean `banyan run`?"},
           {{"inspect", "x", "--quantisation", "int4"}, "did you mean --quantization?"},
           {{"generate", "x", "hi", "--max_tokens", "3"}, "did you mean --max-tokens?"},
           {{"run", "--modle", "x"}, "did you mean --model?"},
           // "did you mean --pp-size?", which no list of options has.
           {{"generate", "x", "hi", "--page-size", "1"},
            "\"--page-size\" is not an option of `banyan generate`, but of `banyan serve`"},
           {{"run", "x", "--watchdog-timeout", "5"}, "but of `banyan serve`"},
           {{"serve", "x", "--goodput", "ttft:5"}, "but of `banyan bench serving`"},
           {{"run", "--model", "x", "--model", "y"}, "--model"},
           {{"run", "x", "y", "z"}, "unexpected argument \"z\""},
           {{"tokenize", "x", "a", "--kernels", "avx2"}, "\"--kernels\" is not an option"},
           {{"generate", test::nano_model(), "hi", "--json-schema", "{\"type\":"}, "JSON: line 1"},
           {{"generate", "x", "hi", "--top-p", "high"}, "\"high\" is not a number"},
           {{"run", "x", "-ot", "x=CPU"}, "--override-tensor"},
           {{"--model", "x"}, "comes before the verb"},
           {{"quantize", "x", "-q", "int4", "--out", "y"}, "did you mean --to?"},
           {{"serve", "x", "--cors", "*"}, "did you mean --cors-allow-origins?"},
           {{"eval", "--data", "x", "--out", "y"}, "TASK is missing; give one of gsm8k, mmlu-pro"},
           {{"run", "x", "--prompt", "a", "b"}, "more than one input is given"},
           {{"generate", "x", "--prompt", "a", "b"}, "more than one input is given"},
       }) {
    expect_usage_error(mistake);
    expect_plain_words(run_program(mistake.words).err);
  }
}

TEST(Arguments, AConfigurationFileIsReadInPlainWords) {
  test::TemporaryFolder folder;
  std::string broken = folder.write("broken.yaml", "port: [1\nhost: x"),
              unknown = folder.write("unknown.yaml", "prot: 1\n"),
              twice = folder.write("twice.yaml", "page-size: 16\nport: 1\npage_size: 32\n");
  for (const Mistake& mistake :
       std::vector<Mistake>{{{"serve", "x", "--config", broken}, "not YAML at line"},
                            {{"serve", "x", "--config", twice}, "\"page-size\" is given twice"},
                            {{"serve", "x", "--config", unknown}, "did you mean port?"},
                            {{"serve", "x", "--config", "/no/such"}, "/no/such"}}) {
    expect_usage_error(mistake);
    expect_plain_words(run_program(mistake.words).err);
  }
}

TEST(Arguments, TheCommandLineWinsOverAnotherNameInTheConfiguration) {
  test::TemporaryFolder folder;
  std::string file = folder.write("c.yaml", "ubatch-size: 99999999\nspec-type: none\n");
  expect_usage_error({{"serve", "x", "--config", file}, "99999999"});
  Words words = {"serve", "x", "--config", file, "--page-size", "3"};
  for (const char* name : {"--chunked-prefill-size", "--batch-size", "--ubatch-size"}) {
    Words more = words;
    more.insert(more.end(), {name, "512"});
    ProgramResult result = run_program(more);
    EXPECT_NE(result.err.find("--page-size is 3"), std::string::npos) << name << result.err;
  }
}

TEST(Arguments, ModelPathsThatAreWrongAreSaidToBe) {
  test::TemporaryFolder folder;
  std::string corrupt = folder.write("m.gguf", "hello");
  auto error = [](const std::string& model) { return run_program({"inspect", model}).err; };
  auto says = [&](const std::string& model, const std::string& what) {
    std::string text = error(model);
    EXPECT_NE(text.find(what), std::string::npos) << text;
  };
  says("./nope.gguf", "./nope.gguf: no such file");
  says("/nope/here", "/nope/here: no such folder");
  says(corrupt, "not a GGUF file");
  says(folder.path(), "give the GGUF file in it, " + corrupt);
  std::string good = folder.write("n.gguf", "GGUF");
  ProgramResult quantize =
      run_program({"quantize", good, "--to", "int4", "--out", folder.path() + "/out"});
  EXPECT_EQ(quantize.exit_code, 2);
  EXPECT_NE(quantize.err.find("is a GGUF file"), std::string::npos) << quantize.err;
  ProgramResult help = run_program({"quantize", "--help"});
  EXPECT_EQ(help.out.find("GGUF"), std::string::npos) << help.out;
}

TEST(Arguments, TheNamesOfOtherProgramsMeanTheSame) {
  std::string model = test::nano_model(), prompt = "Tell me a story about a fox.";
  std::string whole = run_program({"generate", "--model", model, "--prompt", prompt,
                                   "--max-new-tokens", "6", "--temperature", "0"})
                          .out;
  ASSERT_NE(whole, "");
  for (const Words& words : std::vector<Words>{
           {"generate", model, prompt, "-n", "6"},
           {"generate", model, prompt, "-n", "6", "-md", model},
           {"generate", model, prompt, "-n", "6", "--seed", "-1", "--log-level", "warning"},
           {"generate", model, prompt, "-n", "6", "--random-seed", "7", "-ngl", "all"},
           {"generate", model, prompt, "-n", "6", "-b", "2k", "-ub", "1K"},
           {"generate", "-hft", "token", model, prompt, "-n6", "-cram", "-1", "-ctxcp", "8", "-sps",
            "0.5", "-nocb"},
           {"generate", model, prompt, "-n", "6", "--speculative-config",
            R"({"method": "draft_model", "model": ")" + model + R"("})"},
           {"generate", "-m", model, "-p", prompt, "--n-predict", "6", "--temp", "0", "-t", "1"},
           {"generate", prompt, "--model", model, "--max-tokens", "6", "-c", "512"},
           {"generate",
            model,
            prompt,
            "-n",
            "6",
            "-ngl",
            "99",
            "-fa",
            "on",
            "-b",
            "2048",
            "-ub",
            "512",
            "-tb",
            "2",
            "--no-mmap",
            "-ctk",
            "bf16",
            "-ctv",
            "bf16",
            "--load-format",
            "safetensors",
            "--attention-backend",
            "flashinfer",
            "--tokenizer-mode",
            "auto"}}) {
    ProgramResult result = run_program(words);
    EXPECT_EQ(result.out, whole) << words[1] << result.err;
  }
  Words short_answer = {"--temp", "0", "-n", "6"};
  Words ask = {"run", model, prompt}, chat = {"generate", model, prompt, "--chat"};
  ask.insert(ask.end(), short_answer.begin(), short_answer.end());
  chat.insert(chat.end(), short_answer.begin(), short_answer.end());
  ProgramResult answer = run_program(ask);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.out, "");
  EXPECT_EQ(answer.out, run_program(chat).out);
}

TEST(Arguments, TypesHaveTheNamesThatPeersGiveThemInAnyCase) {
  auto state = [](const Words& options) {
    Words words = {"inspect", test::nano_model()};
    words.insert(words.end(), options.begin(), options.end());
    ProgramResult result = run_program(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    size_t at = result.out.find("state per token");
    return result.out.substr(at, result.out.find('\n', at) - at);
  };
  for (const char* name : {"half", "float16", "FP16"}) {
    EXPECT_NE(state({"--dtype", name}).find("as f16"), std::string::npos) << name;
  }
  EXPECT_NE(state({"--dtype", "half", "--kv-cache-dtype", "bfloat16"}).find("as bf16"),
            std::string::npos);
  EXPECT_NE(state({"--dtype", "float32"}).find("as f32"), std::string::npos);
}

// A chat model that gets a bare text often writes nothing; the result was an empty line and exit
// code 0.
TEST(Arguments, ABarePromptToAChatModelIsNoted) {
  ProgramResult result = run_program(
      {"generate", test::nano_model(), "Hi", "--stop", "e,i,o,a", "--regex", "[ ]", "-n", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("--chat asks it as a message"), std::string::npos) << result.err;
}

TEST(Arguments, MistakesInGenerateAreNamed) {
  for (const Mistake& mistake : std::vector<Mistake>{
           {{}, "--prompt"},
           {{"--prompt", "a", "--prompt-ids", "1"}, "--prompt"},
           {{"--prompt-ids", "1,x,3"}, "\"x\""},
           {{"--prompt-ids", "1,-3"}, "-3"},
           {{"--prompt-ids", "1,,3"}, "\"\""},
           {{"--prompt-ids", ""}, "empty"},
           {{"--prompt-ids", "99999999999"}, "99999999999"},
           {{"--prompt-ids", "1,131"}, "131"},
           {{"--prompt-ids", "1", "--max-new-tokens", "0"}, "0"},
           {{"--prompt-ids", "1", "--max-new-tokens", "x"}, "x"},
           {{"--prompt-ids", "1", "--temperature", "-1"}, "-1"},
           {{"--prompt-ids", "1", "--temperature", "nan"}, "nan"},
           {{"--prompt-ids", "1", "--top-p", "0"}, "--top-p is 0"},
           {{"--prompt-ids", "1", "--top-p", "1.5"}, "1.5"},
           {{"--prompt-ids", "1", "--top-k", "-2"}, "-2"},
           {{"--prompt-ids", "1", "--min-p", "2"}, "--min-p is 2"},
           {{"--prompt-ids", "1", "--typical", "0"}, "--typical is 0"},
           {{"--prompt-ids", "1", "--xtc-probability", "1.5"}, "--xtc-probability"},
           {{"--prompt-ids", "1", "--xtc-threshold", "-1"}, "--xtc-threshold"},
           {{"--prompt-ids", "1", "--dry-multiplier", "-1"}, "--dry-multiplier"},
           {{"--prompt-ids", "1", "--dry-base", "0.5"}, "--dry-base"},
           {{"--prompt-ids", "1", "--dry-allowed-length", "-1"}, "--dry-allowed-length"},
           {{"--prompt-ids", "1", "--dry-penalty-last-n", "-2"}, "--dry-penalty-last-n"},
           {{"--prompt-ids", "1", "--seed", "-2"}, "-2"},
           {{"--prompt-ids", "1", "--seed", "99999999999999999999"}, "99999999999999999999"},
           {{"--prompt-ids", "1", "--frequency-penalty", "-2.5"}, "-2.5"},
           {{"--prompt-ids", "1", "--presence-penalty", "3"}, "3"},
           {{"--prompt-ids", "1", "--repetition-penalty", "0"}, "--repetition-penalty"},
           {{"--prompt-ids", "1", "--stop", ""}, "--stop"},
           {{"--prompt-ids", "1", "--stop-token-ids", "a"}, "\"a\""},
           {{"--prompt-ids", "1", "--top-logprobs", "129", "--json"}, "129"},
           {{"--prompt-ids", "1", "--top-logprobs", "2"}, "--json"},
           {{"--prompt-ids", "1", "--json", "--stream"}, "--stream"},
       }) {
    Words words = {"generate", "--model", golden_model()};
    words.insert(words.end(), mistake.words.begin(), mistake.words.end());
    expect_usage_error({words, mistake.named});
  }
}

TEST(Arguments, MistakesInBenchAreNamed) {
  for (const Mistake& mistake : std::vector<Mistake>{
           {{"--batch-size", "0"}, "0"},
           {{"--batch-size", "1,x"}, "\"x\""},
           {{"--batch-size", "1025"}, "1025"},
           {{"--input-len", "0"}, "0"},
           {{"--output-len", "0"}, "0"},
           {{"--repeat", "0"}, "0"},
           {{"--input-len", "200", "--output-len", "57"}, "256"},
       }) {
    Words words = {"bench", "one-batch", "--model", golden_model()};
    words.insert(words.end(), mistake.words.begin(), mistake.words.end());
    expect_usage_error({words, mistake.named});
  }
}

// If the model is left out, the error shows which word was taken for it.
TEST(Generate, NamesTheModelThatNothingFollows) {
  ProgramResult result = run_program({"generate", "Tell me a story."});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("nothing follows the model \"Tell me a story.\"; give one of PROMPT"),
            std::string::npos)
      << result.err;
}

// SGLang's options of cache storage: errors name what is missing or invalid.
TEST(Arguments, OptionsOfTheCachesStorageSayWhatTheyNeed) {
  const std::vector<std::pair<Words, const char*>> kMistakes = {
      {{"--enable-hierarchical-cache"}, "--max-total-tokens"},
      {{"--hicache-size", "30"}, "--max-total-tokens"},
      {{"--hicache-ratio", "2"}, "same bytes twice"},
      {{"--hicache-storage-backend", "disk"}, "needs --hicache-storage-dir"},
      {{"--hicache-storage-backend", "disk", "--hicache-storage-dir", "/tmp"},
       "needs --hicache-storage-size"},
      {{"--hicache-storage-backend", "redis"}, "redis://"},
      {{"--hicache-storage-backend", "mooncake"}, "mooncake"},
      {{"--hicache-storage-backend", "redis,disk"}, "disk,redis"},
      {{"--hicache-storage-backend", "disk,redis", "--hicache-storage-dir", "/tmp",
        "--hicache-storage-size", "1"},
       "redis://"},
      {{"--hicache-storage-backend", "disk,file", "--hicache-storage-dir", "/tmp",
        "--hicache-storage-size", "1"},
       "file:///"},
      {{"--hicache-storage-backend", "file", "--hicache-storage-dir", "/tmp",
        "--hicache-snapshot-fraction", "0.3"},
       "--hicache-snapshot-fraction is for the disk backend"},
      {{"--hicache-snapshot-fraction", "1"}, "--hicache-snapshot-fraction"},
      {{"--hicache-storage-key-file", "/tmp/key"}, "--hicache-storage-backend"},
      {{"--hicache-storage-dir", "/tmp"}, "--hicache-storage-backend"},
      {{"--hicache-write-policy", "write_back"}, "--hicache-storage-backend"},
      {{"--hicache-flush-seconds", "10"}, "--hicache-storage-backend"},
      {{"--hicache-storage-backend-extra-config", R"({"prefetch": 1})"}, "prefetch_threshold"},
      {{"--hicache-storage-backend-extra-config", "[1]"}, "not a JSON object"},
      {{"--hicache-write-policy", "sometimes"}, "write_through_selective"},
  };
  for (const auto& [options, hint] : kMistakes) {
    Words words = {"serve", golden_model()};
    words.insert(words.end(), options.begin(), options.end());
    ProgramResult result = run_program(words);
    EXPECT_NE(result.exit_code, 0) << options[0];
    EXPECT_NE(result.err.find(hint), std::string::npos) << options[0] << ": " << result.err;
    expect_plain_words(result.err);
  }
}

}  // namespace
}  // namespace banyan::arguments_test
