// Speculative decoding: the steps it saves, and the same output whatever is proposed.
#include "engine/drafters/speculate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "grammar/run/matcher.h"
#include "support/chance.h"
#include "support/drive.h"
#include "support/models/hybrid_model.h"

namespace banyan::test::speculate_test {
namespace {

const std::vector<TokenId> kPrompt = {5, 9, 77, 5, 30, 0, 42, 42};
constexpr int kVocabulary = 131;

EngineConfig small_config() {
  return {.model_path = source_path("tests/golden/models/qwen3-tied"),
          .threads = 1,
          .page_size_tokens = 4,
          .total_tokens_max = 128,
          .running_max = 2,
          .chunked_prefill_tokens = 64,
          .measure_drafts = false};  // or the clock would decide how many steps there are
}

// Allows the tokens of a text and proposes others, or the same.
class Follows final : public TokenConstraint {
 public:
  struct Place {
    std::vector<TokenId> allowed;   // empty: none
    std::vector<TokenId> proposed;  // to follow here
  };
  explicit Follows(std::vector<Place> places) : places_(std::move(places)) {}

  // Every token of `text` alone, all that is left of it proposed.
  static std::shared_ptr<Follows> forced(const std::vector<TokenId>& text) {
    std::vector<Place> places;
    for (size_t i = 0; i < text.size(); ++i) {
      places.push_back({{text[i]}, {text.begin() + static_cast<std::ptrdiff_t>(i), text.end()}});
    }
    return std::make_shared<Follows>(std::move(places));
  }

  void fill_mask(std::span<uint32_t> mask) override {
    for (TokenId t : place().allowed) mask[static_cast<size_t>(t) / 32] |= 1u << (t % 32);
  }
  void accept(TokenId token) override { accepted.push_back(token); }
  std::span<const TokenId> draft_tokens() override { return place().proposed; }
  void rollback(int tokens) override { accepted.resize(accepted.size() - tokens); }

  std::vector<TokenId> accepted;

 private:
  const Place& place() const { return places_.at(std::min(accepted.size(), places_.size() - 1)); }
  std::vector<Place> places_;
};

std::vector<TokenId> numbers(int count) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(i * 7 % kVocabulary);
  return tokens;
}

struct Outcome {
  Heard heard;
  EngineStats stats;
};

Outcome run(EngineConfig config, GenerateRequest request, bool jump_forward) {
  config.jump_forward = jump_forward;
  std::unique_ptr<Engine> engine = load_engine(config);
  Outcome result{.heard = run_alone(*engine, request), .stats = {}};
  result.stats = engine->stats();
  return result;
}

TEST(Speculate, ForcedTokensTakeOneStepBesideThePrompt) {
  GenerateRequest request{.prompt = kPrompt, .options = {.max_new_tokens = 20}};
  request.constraint = Follows::forced(numbers(20));
  Outcome with = run(small_config(), request, true);
  request.constraint = Follows::forced(numbers(20));
  Outcome without = run(small_config(), request, false);
  EXPECT_EQ(with.heard.output_ids(), numbers(20));
  expect_same(with.heard, without.heard);
  EXPECT_EQ(without.stats.steps, 20);
  EXPECT_EQ(without.stats.drafts, 0);
  EXPECT_EQ(with.stats.steps, 1);
  EXPECT_EQ(with.stats.drafts, 1);
  EXPECT_EQ(with.stats.draft_tokens, 19) << "the last is drawn";
  EXPECT_EQ(with.stats.accepted_draft_tokens, 19);
  EXPECT_EQ(with.stats.generated_tokens, 20);
}

TEST(Speculate, DraftsAreAsLongAsIsAskedForAndAsRowsAreThere) {
  GenerateRequest request{.prompt = kPrompt, .options = {.max_new_tokens = 25}};
  EngineConfig config = small_config();
  config.draft_tokens_max = 4;
  request.constraint = Follows::forced(numbers(25));
  EXPECT_EQ(run(config, request, true).stats.steps, 5) << "5 tokens in each";
  config.draft_tokens_max = 0;
  request.constraint = Follows::forced(numbers(25));
  EXPECT_EQ(run(config, request, true).stats.steps, 25);
  config.draft_tokens_max = 32;
  config.chunked_prefill_tokens = 2;
  request.constraint = Follows::forced(numbers(25));
  Outcome narrow = run(config, request, true);
  // Four steps read the prompt, the last of them draws; then 3 tokens in each.
  EXPECT_EQ(narrow.stats.steps, 4 + 8);
  EXPECT_EQ(narrow.heard.output_ids(), numbers(25));
}

TEST(Speculate, WrongProposalsCostLittleAndChangeNothing) {
  std::vector<Follows::Place> places(100);
  for (size_t i = 0; i < places.size(); ++i) {
    // In addition to allowed tokens: forbidden ones, and ids that are no tokens.
    places[i] = {{1, 2, 3}, {i % 3 == 0 ? 4 : i % 3 == 1 ? kVocabulary : -1, 1, 2}};
  }
  for (float temperature : {0.f, 1.f}) {
    GenerateRequest request{.prompt = kPrompt,
                            .sampling = {.temperature = temperature, .seed = 5},
                            .options = {.max_new_tokens = 100}};
    request.constraint = std::make_shared<Follows>(places);
    Outcome with = run(small_config(), request, true);
    request.constraint = std::make_shared<Follows>(places);
    expect_same(with.heard, run(small_config(), request, false).heard);
    EXPECT_EQ(with.stats.accepted_draft_tokens, 0);
    EXPECT_GT(with.stats.drafts, 1);
    EXPECT_LE(with.stats.drafts, 8) << "a sequence that keeps nothing is left alone ever longer";
  }
}

// Tokens that are proposed to one of `running` sequences in 50 steps, where two of three are right.
int64_t proposed(int64_t running) {
  Speculator speculator(small_config(), kVocabulary);
  Sequence s;
  s.request.constraint = Follows::forced(numbers(100));
  s.tokens_max = 1000;
  speculator.start(s, running);
  for (int step = 0; step < 50; ++step) {
    StepPlan plan;
    plan.spans = {{.sequence = &s, .drafts = std::ssize(s.draft.tokens)}};
    for (TokenId token : s.draft.tokens) {
      s.tokens.push_back(s.tokens.size() % 3 == 0 ? token + 1 : token);
      ++s.drawn;
      if (s.tokens.back() != token) break;
    }
    if (plan.spans[0].drafts == 0) s.drawn = 1;
    speculator.settle(plan, running);
  }
  EngineStats stats;
  speculator.report(stats);
  return stats.draft_tokens;
}

TEST(Speculate, AmongManySequencesOnlyWhatIsNearlyCertainIsProposed) {
  EXPECT_GT(proposed(1), 100);
  EXPECT_LT(proposed(4), proposed(1));
  EXPECT_LT(proposed(64), 32 + 20) << "the first draft, and now and then one token";
}

// Whatever the clock decides, the output is the same as without drafts.
TEST(Speculate, MeasuredDraftsChangeNothing) {
  EngineConfig config = small_config();
  config.total_tokens_max = 512;
  config.measure_drafts = true;
  auto drafting = load_engine(config);
  config.jump_forward = false;
  auto plain = load_engine(config);
  for (uint64_t seed = 1; seed < 20; ++seed) {
    GenerateRequest request{
        .prompt = kPrompt, .sampling = {.seed = seed}, .options = {.max_new_tokens = 60}};
    request.constraint = std::make_shared<Chance>(seed, kVocabulary);
    Heard with = run_alone(*drafting, request);
    request.constraint = std::make_shared<Chance>(seed, kVocabulary);
    expect_same(with, run_alone(*plain, request));
  }
  EXPECT_GT(drafting->stats().drafts, 0);
}

TEST(Speculate, AStopTokenAndAnEmptyMaskEndADraftWhereTheyAre) {
  auto make = [] { return Follows::forced(numbers(12)); };
  GenerateRequest request{.prompt = kPrompt, .options = {.max_new_tokens = 30}};
  request.options.stop_token_ids = {numbers(12)[6]};
  request.constraint = make();
  Outcome with = run(small_config(), request, true);
  request.constraint = make();
  expect_same(with.heard, run(small_config(), request, false).heard);
  EXPECT_EQ(with.heard.finish, FinishReason::kStop);
  EXPECT_EQ(with.heard.output.size(), 7u);
  EXPECT_EQ(with.stats.steps, 1);

  // Where the only token that is allowed would stop too early, nothing is.
  request.options.min_new_tokens = 10;
  request.constraint = make();
  with = run(small_config(), request, true);
  request.constraint = make();
  expect_same(with.heard, run(small_config(), request, false).heard);
  EXPECT_EQ(with.heard.finish, FinishReason::kError);
  EXPECT_EQ(with.heard.output.size(), 6u);
  EXPECT_EQ(with.heard.error.code, ErrorCode::kUnsupported) << "the request's, not ours";
  EXPECT_NE(with.heard.error.message.find("position 14: the constraint allows no token"),
            std::string::npos)
      << with.heard.error.message;
}

TEST(Speculate, RecurrentStateGoesBackToTheLastKeptToken) {
  TemporaryFolder folder;
  EngineConfig config = hybrid_config(folder);
  config.total_tokens_max = 256;
  config.measure_drafts = false;
  int64_t kept = 0, rejected = 0;
  for (bool radix_cache : {true, false}) {
    config.radix_cache = radix_cache;
    config.jump_forward = true;
    auto drafting = load_hybrid_engine(config);
    config.jump_forward = false;
    auto plain = load_hybrid_engine(config);
    for (uint64_t seed = 1; seed < 30; ++seed) {
      GenerateRequest request{.prompt = kPrompt,
                              .sampling = {.frequency_penalty = 0.5f, .seed = seed},
                              .options = {.max_new_tokens = 60}};
      request.constraint = std::make_shared<Chance>(seed, 97);
      Heard with = run_alone(*drafting, request);
      request.constraint = std::make_shared<Chance>(seed, 97);
      expect_same(with, run_alone(*plain, request));
    }
    kept += drafting->stats().accepted_draft_tokens;
    rejected += drafting->stats().draft_tokens - drafting->stats().accepted_draft_tokens;
    EXPECT_GT(kept, 100) << (radix_cache ? "" : "no cache");
    EXPECT_GT(rejected, 100);
    EXPECT_LT(drafting->stats().steps, plain->stats().steps);
    EXPECT_EQ(drafting->stats().generated_tokens, plain->stats().generated_tokens);
  }
}

// ---- A real grammar ----------------------------------------------------------------------------

// One token for each character that JSON needs, and a few longer ones: 97 in all.
std::vector<std::string> json_pieces() {
  std::vector<std::string> pieces = {"",     "{\"", "\":", "\":\"", "\",\"", "\"}",
                                     "name", "age", "tru", "true",  "ab",    "1234"};
  for (char c = 32; pieces.size() < 97; ++c) pieces.push_back(std::string(1, c));
  // '|' and what follows gave way to the pieces.
  pieces[95] = "{";
  pieces[96] = "}";
  return pieces;
}

std::shared_ptr<const CompiledGrammar> compile_json(const char* schema) {
  std::vector<std::string> pieces = json_pieces();
  auto grammar = Grammar::from_json_schema(schema);
  CHECK(grammar.has_value(), "{}", grammar.error().message);
  TokenizeText longest_first = [pieces](std::string_view text) {
    std::vector<TokenId> tokens;
    while (!text.empty()) {
      size_t best = 0;
      for (size_t i = 1; i < pieces.size(); ++i) {
        if (text.starts_with(pieces[i]) && pieces[i].size() > pieces[best].size()) best = i;
      }
      if (best == 0) return tokens;
      tokens.push_back(static_cast<TokenId>(best));
      text.remove_prefix(pieces[best].size());
    }
    return tokens;
  };
  return std::make_shared<const CompiledGrammar>(
      *std::move(grammar), TokenVocabulary::make(pieces, {0}, 97), longest_first);
}

TEST(Speculate, AJsonSchemaJumpsForwardAndWritesTheSame) {
  TemporaryFolder folder;
  EngineConfig config = hybrid_config(folder, {.context_tokens = 512});
  config.total_tokens_max = 1024;
  config.measure_drafts = false;
  auto drafting = load_hybrid_engine(config);
  config.jump_forward = false;
  auto plain = load_hybrid_engine(config);
  auto grammar = compile_json(R"({"type": "object", "required": ["name", "age", "ok"],
      "properties": {"name": {"enum": ["abba", "bab"]}, "age": {"type": "integer", "maximum": 99,
      "minimum": 10}, "ok": {"const": true}}, "additionalProperties": false})");
  for (uint64_t seed = 1; seed < 20; ++seed) {
    GenerateRequest request{.prompt = kPrompt,
                            .sampling = {.temperature = seed % 2 == 0 ? 0.f : 1.f, .seed = seed},
                            .options = {.max_new_tokens = 200, .stop_token_ids = {0}}};
    request.prompt.push_back(static_cast<TokenId>(seed));
    request.constraint = std::make_shared<Matcher>(grammar);
    Heard with = run_alone(*drafting, request);
    request.constraint = std::make_shared<Matcher>(grammar);
    expect_same(with, run_alone(*plain, request));
    std::string text;
    for (TokenId token : with.output_ids()) text += json_pieces()[static_cast<size_t>(token)];
    EXPECT_TRUE(grammar->grammar.matches(text)) << text;
    EXPECT_EQ(with.finish, FinishReason::kStop);
  }
  EXPECT_GT(drafting->stats().accepted_draft_tokens, 50);
  EXPECT_LT(drafting->stats().steps, plain->stats().steps * 9 / 10);
}

}  // namespace
}  // namespace banyan::test::speculate_test
