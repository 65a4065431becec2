// Grammars over a real vocabulary: compile times, and the time of a mask for every token of every
// valid instance of schema samples, each schema starting with an empty mask cache.
//
//   grammar_bench TOKENIZER_DIR SAMPLES_DIR
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "banyan/grammar.h"
#include "base/file.h"
#include "base/json.h"
#include "grammar/compiler.h"
#include "grammar/run/matcher.h"
#include "text/tokenizer/tokenizer.h"

namespace {

using namespace banyan;

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double at(std::vector<double>& times, double fraction) {
  if (times.empty()) return 0;
  std::sort(times.begin(), times.end());
  return times[std::min(times.size() - 1,
                        static_cast<size_t>(fraction * static_cast<double>(times.size())))];
}

void report(const char* what, std::vector<double> times) {
  fmt::print("{:<44} p50 {:>9.1f} us   p99 {:>9.1f} us   worst {:>9.1f} us   n {}\n", what,
             at(times, 0.5), at(times, 0.99), at(times, 1), times.size());
}

struct Bench {
  std::unique_ptr<Tokenizer> tokenizer;
  std::shared_ptr<const TokenVocabulary> vocabulary;
  std::vector<double> compile, mask, accept;
  int schemas = 0, compiled = 0, tokens = 0, forced = 0, mismatched = 0;

  std::shared_ptr<const CompiledGrammar> join(Grammar grammar) const {
    TokenizeText tokenize = [this](std::string_view text) {
      auto ids = tokenizer->encode(text, {.add_special_tokens = false, .parse_special = false});
      return ids ? *ids : std::vector<TokenId>();
    };
    return std::make_shared<const CompiledGrammar>(std::move(grammar), vocabulary, tokenize);
  }

  // Follows `text`, taking drafts where they are what the text says.
  void follow(Matcher& matcher, const std::string& text) {
    auto ids = tokenizer->encode(text, {.add_special_tokens = false, .parse_special = false});
    if (!ids) return;
    std::vector<uint32_t> bits(vocabulary->mask_words());
    size_t drafted = 0;
    for (size_t i = 0; i < ids->size(); ++i) {
      double begin = now_us();
      matcher.fill_mask(bits);
      double middle = now_us();
      auto drafts = matcher.draft_tokens();
      if (drafted > 0) {
        --drafted;
        ++forced;
      } else {
        while (drafted < drafts.size() && i + drafted < ids->size() &&
               drafts[drafted] == (*ids)[i + drafted]) {
          ++drafted;
        }
      }
      double again = now_us();
      if (!matcher.try_accept((*ids)[i])) {
        ++mismatched;
        return;
      }
      mask.push_back(middle - begin);
      accept.push_back(now_us() - again);
      ++tokens;
    }
  }

  void sample(const std::string& path, const JsonSchemaOptions& options) {
    Json document = Json::parse(*read_file(path));
    std::string schema = document["schema"].dump();
    ++schemas;
    double begin = now_us();
    auto grammar = Grammar::from_json_schema(schema, options);
    compile.push_back(now_us() - begin);
    if (!grammar) return;
    ++compiled;
    auto joined = join(*std::move(grammar));
    for (const Json& test : document["tests"]) {
      if (test["valid"] == false) continue;
      Matcher matcher(joined);
      follow(matcher, test["data"].dump());
    }
  }
};

void long_strings(Bench& bench) {
  const char* schema = R"({"type": "string", "maxLength": 10000})";
  double begin = now_us();
  auto joined = bench.join(*Grammar::from_json_schema(schema));
  Matcher matcher(joined);
  fmt::print("{:<44} {:.1f} us\n", "maxLength 10000: compile", now_us() - begin);
  Bench run;
  run.vocabulary = bench.vocabulary;
  std::vector<double> masks;
  std::vector<uint32_t> bits(bench.vocabulary->mask_words());
  std::string text = "\"";
  while (text.size() < 9990) text += "some words of a text, and ";
  auto ids = *bench.tokenizer->encode(text, {.add_special_tokens = false});
  for (TokenId id : ids) {
    double start = now_us();
    matcher.fill_mask(bits);
    masks.push_back(now_us() - start);
    if (!matcher.try_accept(id)) break;
  }
  report("maxLength 10000: masks", std::move(masks));
}

// 64 requests with a grammar each: first in states without a cached mask, then again.
void batches(Bench& bench, const std::string& schema) {
  std::vector<std::shared_ptr<const CompiledGrammar>> grammars;
  for (int i = 0; i < 64; ++i) grammars.push_back(bench.join(*Grammar::from_json_schema(schema)));
  std::string text = "{\"name\":\"A name of some length\",\"tags\":[\"one\",\"two\"],\"n\":12345}";
  auto ids = *bench.tokenizer->encode(text, {.add_special_tokens = false});
  for (const char* what : {"64 masks of new states, two threads", "64 known masks, two threads"}) {
    std::vector<std::unique_ptr<Matcher>> matchers;
    for (const auto& grammar : grammars) matchers.push_back(std::make_unique<Matcher>(grammar));
    std::vector<double> times;
    for (TokenId id : ids) {
      double begin = now_us();
      auto half = [&](int first) {
        std::vector<uint32_t> bits(bench.vocabulary->mask_words());
        for (int i = first; i < first + 32; ++i) matchers[i]->fill_mask(bits);
      };
      std::thread other(half, 32);
      half(0);
      other.join();
      times.push_back(now_us() - begin);
      for (auto& matcher : matchers) matcher->try_accept(id);
    }
    report(what, std::move(times));
  }
}

void cached_compiles(Bench& bench, const std::string& schema) {
  GrammarCompiler compiler(bench.vocabulary, {}, {});
  std::vector<double> times;
  for (int i = 0; i < 1000; ++i) {
    double begin = now_us();
    auto compiled = compiler.compile({GrammarSource::Kind::kJsonSchema, schema});
    if (!compiled) return;
    if (i > 0) times.push_back(now_us() - begin);
  }
  report("cached compile", std::move(times));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: grammar_bench TOKENIZER_DIR SAMPLES_DIR\n");
    return 2;
  }
  Bench bench;
  auto tokenizer = Tokenizer::load(argv[1]);
  if (!tokenizer) {
    fmt::print(stderr, "{}\n", tokenizer.error().message);
    return 1;
  }
  bench.tokenizer = *std::move(tokenizer);
  json_string_dfa();
  double begin = now_us();
  bench.vocabulary = TokenVocabulary::make(*bench.tokenizer, {});
  fmt::print("vocabulary of {} tokens prepared in {:.0f} ms, {:.1f} MB\n",
             bench.vocabulary->mask_tokens(), (now_us() - begin) / 1e3,
             static_cast<double>(bench.vocabulary->bytes()) / 1e6);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[2])) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (bool spaced : {false, true}) {
    Bench run;
    run.tokenizer = std::move(bench.tokenizer);
    run.vocabulary = bench.vocabulary;
    for (const std::string& file : files) run.sample(file, {.flexible_whitespace = spaced});
    fmt::print("{} whitespace: {} schemas, {} compiled, {} tokens, {} texts left the grammar\n",
               spaced ? "flexible" : "compact", run.schemas, run.compiled, run.tokens,
               run.mismatched);
    fmt::print("  tokens that drafts gave: {:.1f}%\n", 100.0 * run.forced / run.tokens);
    report("  compile, cold", run.compile);
    report("  mask", run.mask);
    report("  accept", run.accept);
    bench.tokenizer = std::move(run.tokenizer);
  }
  long_strings(bench);
  std::string schema =
      R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 50}, "tags":
      {"type": "array", "items": {"type": "string"}}, "n": {"type": "integer"}}})";
  batches(bench, schema);
  cached_compiles(bench, schema);
  return 0;
}
