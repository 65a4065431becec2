// The DRY penalty against a brute-force search, and in the engine: independent of drafts, samples,
// caches and the order of steps.
#include "engine/draws/dry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/random.h"
#include "support/chance.h"
#include "support/drive.h"
#include "support/shared.h"

namespace banyan::test::dry_test {
namespace {

using Tokens = std::vector<TokenId>;
using Biases = std::map<TokenId, float>;

Biases found(const SamplingParams& params, const Tokens& tokens, const Tokens& draft = {}) {
  DryPenalties dry;
  dry.start(params, std::ssize(tokens) + std::ssize(draft));
  std::vector<TokenBias> biases;
  dry.append(params, tokens, draft, biases);
  Biases all;
  for (auto [token, bias] : biases) {
    EXPECT_TRUE(all.emplace(token, bias).second) << token << " twice";
  }
  return all;
}

// Where the text after the last breaker begins.
size_t last_break(const DryBreakers& breakers, const Tokens& tokens) {
  for (size_t head = tokens.size(); head > 0; --head) {
    auto at = breakers.find(tokens[head - 1]);
    if (at == breakers.end()) continue;
    size_t end = 0;
    for (const Tokens& tail : at->second) {
      bool is_there = head + tail.size() <= tokens.size() &&
                      std::equal(tail.begin(), tail.end(), tokens.begin() + head);
      if (is_there) end = std::max(end, head + tail.size());
    }
    if (end > 0) return end;
  }
  return 0;
}

// For every place, how many tokens before it are also at the end: O(n^2).
Biases naive(const SamplingParams& params, Tokens tokens) {
  Biases biases;
  if (params.dry_penalty_last_n >= 0 && params.dry_penalty_last_n < std::ssize(tokens)) {
    tokens.erase(tokens.begin(), tokens.end() - params.dry_penalty_last_n);
  }
  if (std::ssize(tokens) <= params.dry_allowed_length) return biases;
  const DryBreakers none, &breakers = params.dry_breakers ? *params.dry_breakers : none;
  size_t begin = last_break(breakers, tokens);
  std::map<TokenId, int> longest;
  for (size_t next = 1; next < tokens.size(); ++next) {
    size_t n = 0;
    while (n < next && n < tokens.size() - begin &&
           tokens[next - 1 - n] == tokens[tokens.size() - 1 - n]) {
      ++n;
    }
    auto length = static_cast<int>(n);
    if (length < params.dry_allowed_length) continue;
    auto [at, is_new] = longest.emplace(tokens[next], length);
    if (!is_new) at->second = std::max(at->second, length);
  }
  for (auto [token, length] : longest) {
    auto at = breakers.find(token);
    if (at != breakers.end() && std::ranges::count(at->second, Tokens()) > 0) continue;
    double penalty = params.dry_multiplier * std::pow(static_cast<double>(params.dry_base),
                                                      length - params.dry_allowed_length);
    double most = std::numeric_limits<float>::max();
    biases[token] = -static_cast<float>(std::min(penalty, most));
  }
  return biases;
}

void expect_equal(const Biases& a, const Biases& b, int i) {
  ASSERT_EQ(a.size(), b.size()) << i;
  for (auto [token, bias] : a) {
    ASSERT_TRUE(b.contains(token)) << i << ' ' << token;
    EXPECT_NEAR(bias, b.at(token), 1e-5 * std::abs(bias)) << i << ' ' << token;
  }
}

// llama.cpp's own example: a b c c b c y a b c.
TEST(Dry, PenalisesTheTokensThatProlongARepetition) {
  enum : TokenId { a, b, c, y };
  Biases biases = found({.dry_multiplier = 1, .dry_base = 2, .dry_allowed_length = 1},
                        {a, b, c, c, b, c, y, a, b, c});
  EXPECT_EQ(biases, (Biases{{c, -4.f}, {b, -1.f}, {y, -2.f}}));
}

TEST(Dry, FindsWhatALongSearchFinds) {
  for (int i = 0; i < 3000; ++i) {
    auto random = [&](uint64_t what) { return uniform(1, static_cast<uint64_t>(i), what); };
    auto below = [&](uint64_t what, int n) { return static_cast<int>(n * random(what)); };
    int letters = 1 + below(0, 5);
    Tokens tokens;
    for (int t = 1 + below(1, 60); t > 0; --t) tokens.push_back(below(100 + t, letters));
    SamplingParams params{.dry_multiplier = 0.8f,
                          .dry_base = static_cast<float>(1 + random(2)),
                          .dry_allowed_length = below(3, 4),
                          .dry_penalty_last_n = random(4) < 0.5 ? -1 : below(5, 70)};
    if (random(6) < 0.5) {
      DryBreakers breakers;
      for (int b = below(7, 4); b > 0; --b) {
        Tokens tail;
        for (int t = below(10 + b, 3); t > 0; --t) tail.push_back(below(20 + 3 * b + t, letters));
        breakers[below(40 + b, letters)].push_back(tail);
      }
      params.dry_breakers = std::make_shared<DryBreakers>(std::move(breakers));
    }
    Biases expected = naive(params, tokens);
    expect_equal(expected, found(params, tokens), i);
    auto cut = tokens.begin() + below(8, static_cast<int>(tokens.size()));
    expect_equal(expected, found(params, {tokens.begin(), cut}, {cut, tokens.end()}), i);
  }
}

TEST(Dry, LongRepetitionsCostAsMuchAsCanBe) {
  Tokens tokens(5000, 7);
  Biases biases = found({.dry_multiplier = 5, .dry_base = 4}, tokens);
  EXPECT_EQ(biases, (Biases{{7, -std::numeric_limits<float>::max()}}));
}

EngineConfig small_config() {
  return {.model_path = source_path("tests/golden/models/qwen3-tied"),
          .threads = 1,
          .page_size_tokens = 4,
          .total_tokens_max = 512,
          .running_max = 4,
          .chunked_prefill_tokens = 16,
          .measure_drafts = false};
}

constexpr int kVocabulary = 131;

// Repeats itself without a penalty.
GenerateRequest request_of(int i, bool constrained) {
  GenerateRequest request{.prompt = {5, 9, 77, 5, 9, 77, 5, 9},
                          .sampling = {.temperature = i % 3 == 0 ? 0.f : 0.4f,
                                       .typical_p = i % 3 == 1 ? 0.8f : 1,
                                       .xtc_probability = i % 2 == 1 ? 0.5f : 0,
                                       .xtc_threshold = 0.05f,
                                       .dry_multiplier = 3,
                                       .dry_allowed_length = 1 + i % 2,
                                       .seed = 5,
                                       .sample_index = static_cast<uint32_t>(i / 4)},
                          .options = {.max_new_tokens = 60}};
  if (i % 4 == 3) request.sampling.dry_penalty_last_n = 12;
  if (constrained) {
    auto seed = static_cast<uint64_t>(10 + i);
    request.constraint = std::make_shared<Chance>(seed, kVocabulary);
  }
  return request;
}

std::vector<Heard> run_all(const EngineConfig& config, bool constrained, EngineStats* stats) {
  constexpr int kRequests = 12;
  std::unique_ptr<Engine> engine = load_engine(config);
  std::vector<Heard> heard(kRequests);
  for (int i = 0; i < kRequests; ++i) {
    EXPECT_TRUE(engine->submit(request_of(i, constrained), hear_into(heard[i])));
  }
  while (engine->step()) {
  }
  if (stats != nullptr) *stats = engine->stats();
  return heard;
}

TEST(Dry, DependsOnTheTokensAloneNotOnDraftsCachesOrTheOrderOfSteps) {
  for (bool constrained : {false, true}) {
    EngineConfig config = small_config();
    EngineStats stats;
    std::vector<Heard> expected = run_all(config, constrained, &stats);
    EXPECT_EQ(stats.accepted_draft_tokens > 0, constrained);
    std::vector<EngineConfig> others(4, config);
    others[0].jump_forward = false;
    others[1].radix_cache = false;
    others[2].overlap_schedule = !config.overlap_schedule;
    others[3].running_max = 1;
    for (size_t c = 0; c < others.size(); ++c) {
      std::vector<Heard> heard = run_all(others[c], constrained, nullptr);
      for (size_t i = 0; i < heard.size(); ++i) {
        EXPECT_EQ(heard[i].output_ids(), expected[i].output_ids()) << c << ' ' << i;
        EXPECT_TRUE(same_bits(heard[i].output_logprobs(), expected[i].output_logprobs()));
      }
    }
  }
}

TEST(Dry, IsWhatTheEngineSubtracts) {
  std::unique_ptr<Engine> engine = load_engine(small_config());
  std::unique_ptr<Runner> runner = load_runner(small_config());
  GenerateRequest request = request_of(0, false);
  Heard heard = run_alone(*engine, request);
  Tokens tokens = request.prompt;
  int changed = 0;
  for (const Heard::Token& said : heard.output) {
    std::vector<float> all = all_logits(*runner, tokens, 16);
    std::vector<float> logits(all.end() - kVocabulary, all.end());
    TokenId plain = static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
    for (auto [token, bias] : naive(request.sampling, tokens)) logits[token] += bias;
    TokenId best = static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
    ASSERT_EQ(said.token, best) << "at " << tokens.size();
    changed += plain != best ? 1 : 0;
    tokens.push_back(said.token);
  }
  EXPECT_GT(changed, 3);
}

TEST(Dry, StringsAreRefusedWhereThereIsNoText) {
  std::unique_ptr<Engine> engine = load_engine(small_config());
  GenerateRequest request = request_of(0, false);
  request.sampling.dry_sequence_breakers = {"\n"};
  Heard heard;
  auto refused = engine->submit(request, hear_into(heard));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("dry_sequence_breakers"), std::string::npos);
}

}  // namespace
}  // namespace banyan::test::dry_test
