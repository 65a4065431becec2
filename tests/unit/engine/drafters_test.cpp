// What each drafter proposes, and that drafts change no output.
#include <gtest/gtest.h>

#include "engine/assemble.h"
#include "engine/drafters/ngram.h"
#include "engine/drafters/registry.h"
#include "engine/drafters/speculate.h"
#include "engine/drafters/suffix.h"
#include "engine/drafters/text_index.h"
#include "engine/sequence.h"
#include "support/chance.h"
#include "support/drive.h"
#include "support/models/checkpoint_copy.h"
#include "support/models/grown_checkpoint.h"
#include "support/shared.h"

namespace banyan::test::drafters_test {
namespace {

using Tokens = std::vector<TokenId>;

TEST(TextIndex, FindsTheNewestOfTheLongestOccurrences) {
  TextIndex text(64);
  text.append(Tokens{1, 2, 3, 4, 50, 9, 2, 3, 4, 60, 8, 1, 2, 3, 4, 70, 7, 3, 4, 80});
  std::array<TextIndex::Match, TextIndex::kMatchesMax> out;
  auto found = text.find(Tokens{6, 1, 2, 3, 4}, -1, out);
  ASSERT_EQ(found.size(), 2u) << "four agree in two places; those with fewer are left out";
  EXPECT_EQ(found[0].end, 15);
  EXPECT_EQ(found[0].length, 4);
  EXPECT_EQ(found[1].end, 4);
  found = text.find(Tokens{5, 3, 4}, -1, out);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].end, 19);
  EXPECT_EQ(found[0].length, 2);
  EXPECT_EQ(text.find(Tokens{5, 3, 4}, 19, out).size(), 3u);
  EXPECT_TRUE(text.find(Tokens{4}, -1, out).empty());
  EXPECT_TRUE(text.find(Tokens{4, 3}, -1, out).empty());
}

TEST(TextIndex, MatchesNothingAcrossASeparator) {
  TextIndex text(64);
  text.append(Tokens{1, 2, TextIndex::kSeparator, 3, 4, 5});
  std::array<TextIndex::Match, TextIndex::kMatchesMax> out;
  auto found = text.find(Tokens{1, 2, TextIndex::kSeparator, 3, 4}, -1, out);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].length, 2);
}

// What the drafter proposes for a sequence of this prompt.
Tokens propose(Drafter& drafter, Sequence& s, int64_t tokens_max = 8, const Tokens& forced = {}) {
  DraftTask task{.sequence = &s, .forced = forced, .tokens_max = tokens_max};
  DraftTask* tasks[] = {&task};
  drafter.propose(tasks);
  EXPECT_EQ(task.tokens.size(), task.confidences.size());
  EXPECT_EQ(task.tokens.size(), task.chances.size());
  return task.tokens;
}

Sequence sequence(Tokens prompt, std::string salt = "") {
  Sequence s;
  s.prompt_tokens = std::ssize(prompt);
  s.tokens_max = s.prompt_tokens + 100;
  s.tokens = std::move(prompt);
  s.name_space.salt = std::move(salt);
  s.cached_tokens = 0;
  return s;
}

EngineConfig drafting(const std::string& drafter) {
  return {.model_path = source_path("tests/golden/models/qwen3-tied"),
          .threads = 1,
          .page_size_tokens = 4,
          .total_tokens_max = 512,
          .running_max = 4,
          .chunked_prefill_tokens = 64,
          .drafters = drafter.empty() ? std::vector<std::string>() : std::vector{drafter},
          .measure_drafts = false};
}

TEST(NgramDrafter, ProposesWhatFollowedTheLastTokens) {
  auto drafter = make_ngram_drafter({});
  Sequence s = sequence({1, 2, 3, 10, 11, 12, 13, 5, 2, 3});
  EXPECT_EQ(propose(*drafter, s), (Tokens{10, 11, 12})) << "one more than agree";
  EXPECT_EQ(propose(*drafter, s, 2), (Tokens{10, 11}));
  s.tokens.push_back(10);
  EXPECT_EQ(propose(*drafter, s), (Tokens{11, 12, 13, 5}));
  EXPECT_EQ(propose(*drafter, s, 8, {11}), (Tokens{12, 13, 5, 2, 3})) << "behind what is forced";
  s.tokens.push_back(77);
  EXPECT_TRUE(propose(*drafter, s).empty());
}

TEST(NgramDrafter, RepeatsAPeriodBeyondTheEndOfTheText) {
  auto drafter = make_ngram_drafter({});
  Sequence s = sequence({9, 4, 5, 4, 5, 4, 5});
  EXPECT_EQ(propose(*drafter, s), (Tokens{4, 5, 4, 5, 4}));
  EXPECT_EQ(propose(*drafter, s, 8, {4}), (Tokens{5, 4, 5, 4, 5, 4}));
}

TEST(NgramDrafter, KeepsToItsBoundsOnMatches) {
  Sequence s = sequence({1, 2, 3, 4, 50, 9, 2, 3, 4, 60, 2, 1, 2, 3, 4});
  auto longest = make_ngram_drafter({});
  EXPECT_EQ(propose(*longest, s, 1), (Tokens{50}));
  auto latest = make_ngram_drafter({.ngram_tokens_max = 3});
  EXPECT_EQ(propose(*latest, s, 1), (Tokens{50})) << "of four alone is looked up first";
  auto strict = make_ngram_drafter({.ngram_tokens_min = 5});
  EXPECT_TRUE(propose(*strict, s, 1).empty());
}

TEST(NgramDrafter, FollowsAPredictedOutputFromItsFirstTokenOn) {
  auto drafter = make_ngram_drafter({});
  Sequence s = sequence({7, 8, 9});
  s.request.options.prediction_token_ids = {20, 21, 22, 23, 24, 25};
  EXPECT_EQ(propose(*drafter, s, 3), (Tokens{20, 21, 22}));
  s.tokens.insert(s.tokens.end(), {20, 21});
  EXPECT_EQ(propose(*drafter, s), (Tokens{22, 23, 24, 25}));
  s.tokens.push_back(50);  // an edit
  EXPECT_TRUE(propose(*drafter, s).empty());
  s.tokens.insert(s.tokens.end(), {23, 24});
  EXPECT_EQ(propose(*drafter, s), (Tokens{25}));
}

TEST(SuffixDrafter, TakesTheMostFrequentContinuation) {
  auto drafter = make_suffix_drafter();
  Sequence s = sequence({1, 2, 50, 51, 9, 1, 2, 60, 9, 1, 2, 50, 51, 9, 8, 1, 2});
  EXPECT_EQ(propose(*drafter, s), (Tokens{50, 51, 9}));
}

// The prompt of a request that has no need for further steps.
GenerateRequest asking(Tokens prompt, int64_t new_tokens, std::string salt = "") {
  return {.prompt = std::move(prompt),
          .sampling = {.temperature = 1, .seed = 9},
          .options = {.max_new_tokens = new_tokens, .cache_salt = std::move(salt)}};
}

// A second request is given the tokens that the first one wrote, after another beginning.
int64_t accepted_after_another(Engine& engine, const std::string& salt_of_second) {
  Tokens written = run_alone(engine, asking({5, 9, 77, 5, 30, 0, 42, 1}, 60, "a")).output_ids();
  Tokens prompt = {120, 121, 122, 123, 124};
  prompt.insert(prompt.end(), written.begin(), written.begin() + 12);
  Tokens rest(written.begin() + 12, written.end());
  Heard heard;
  int64_t before = engine.stats().accepted_draft_tokens;
  auto id = EngineAssembly::submit_recorded(
      engine, asking(prompt, std::ssize(rest), salt_of_second), hear_into(heard), rest);
  EXPECT_TRUE(id.has_value());
  while (engine.step()) {
  }
  EXPECT_EQ(heard.output_ids(), rest);
  return engine.stats().accepted_draft_tokens - before;
}

TEST(SuffixDrafter, ContinuesTextOfThePrefixCacheInItsNamespaceAndNoOther) {
  auto engine = load_engine(drafting("suffix"));
  int64_t elsewhere = accepted_after_another(*engine, "b");
  EXPECT_GT(accepted_after_another(*engine, "a"), elsewhere + 25);
  EXPECT_LT(elsewhere, 10) << "chance, within its own text";
}

TEST(SuffixDrafter, ForgetsWhatTheCacheNoLongerHas) {
  auto engine = load_engine(drafting("suffix"));
  Tokens written = run_alone(*engine, asking({5, 9, 77, 5, 30, 0, 42, 1}, 60)).output_ids();
  // Enough text to evict it.
  for (int i = 0; i < 10; ++i) {
    run_alone(*engine, asking({i, 50, i + 20, 3, i, 8, 9, i + 1}, 100));
  }
  Tokens prompt = {120, 121, 122, 123, 124};
  prompt.insert(prompt.end(), written.begin(), written.begin() + 12);
  Tokens rest(written.begin() + 12, written.end());
  Heard heard;
  int64_t before = engine->stats().accepted_draft_tokens;
  auto id = EngineAssembly::submit_recorded(*engine, asking(prompt, std::ssize(rest)),
                                            hear_into(heard), rest);
  EXPECT_TRUE(id.has_value());
  while (engine->step()) {
  }
  EXPECT_LT(engine->stats().accepted_draft_tokens - before, 10);
}

TEST(Drafters, UnknownNamesAreRefusedWithThoseThatAreKnown) {
  auto engine = Engine::load(drafting("medusa"));
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(engine.error().message.find("\"medusa\""), std::string::npos);
  EXPECT_NE(engine.error().message.find("ngram, suffix, mtp, eagle3, draft"), std::string::npos);
}

struct Outcome {
  Heard heard;
  EngineStats stats;
};

Outcome run(const EngineConfig& config, const GenerateRequest& request) {
  std::unique_ptr<Engine> engine = load_engine(config);
  Outcome outcome{.heard = run_alone(*engine, request), .stats = {}};
  outcome.stats = engine->stats();
  return outcome;
}

// Text of random weights loops at temperature 0.
TEST(Drafters, SaveStepsOnTextThatRepeatsItselfAndChangeNoToken) {
  GenerateRequest request{.prompt = {5, 9, 77, 5, 30, 0, 42, 42},
                          .sampling = {.temperature = 0},
                          .options = {.max_new_tokens = 120}};
  Outcome plain = run(drafting(""), request);
  EXPECT_EQ(plain.stats.drafts, 0);
  EXPECT_EQ(plain.stats.steps, 120);
  for (const char* name : {"ngram", "suffix"}) {
    Outcome drafted = run(drafting(name), request);
    expect_same(drafted.heard, plain.heard);
    EXPECT_LT(drafted.stats.steps, 90) << name;
    EXPECT_EQ(drafted.stats.steps + drafted.stats.accepted_draft_tokens, 120);
    const auto* drafter = std::ranges::find(drafted.stats.drafters, name, &DrafterStats::name);
    ASSERT_NE(drafter, drafted.stats.drafters.end());
    EXPECT_EQ(drafter->accepted_tokens, drafted.stats.accepted_draft_tokens);
    EXPECT_GE(drafted.stats.accepted_at[0], drafted.stats.accepted_at[1]);
    EXPECT_GT(drafted.stats.accepted_at[1], 0);
  }
}

TEST(Drafters, ARequestSaysWhatItsOutputWillBeAndHowManyTokensToPropose) {
  GenerateRequest request{.prompt = {5, 9, 77, 5, 30, 0, 42, 42},
                          .sampling = {.temperature = 1, .seed = 3},
                          .options = {.max_new_tokens = 60}};
  Outcome plain = run(drafting(""), request);
  request.options.prediction_token_ids = plain.heard.output_ids();
  request.options.prediction_token_ids[30] ^= 1;
  Outcome predicted = run(drafting(""), request);
  expect_same(predicted.heard, plain.heard);
  EXPECT_LT(predicted.stats.steps, 20) << "no drafter was asked for: the request's own prediction";
  request.options.draft_tokens_max = 1;
  Outcome few = run(drafting(""), request);
  expect_same(few.heard, plain.heard);
  EXPECT_GE(few.stats.steps, 30);
  EXPECT_LT(few.stats.steps, 40);
  request.options.draft_tokens_max = 0;
  EXPECT_EQ(run(drafting(""), request).stats.steps, 60);
  request.options.prediction = "text";
  auto engine = load_engine(drafting(""));
  EXPECT_FALSE(engine->submit(request, [](const TokenEvent&) {}).has_value());
}

TEST(Drafters, ARequestNamesTheOneThatDraftsForIt) {
  GenerateRequest request{.prompt = {5, 9, 77, 5, 30, 0, 42, 42},
                          .sampling = {.temperature = 0},
                          .options = {.max_new_tokens = 120}};
  auto engine = load_engine(drafting("suffix"));
  auto accepted_of = [&](std::string_view name) {
    EngineStats stats = engine->stats();
    const auto* drafter = std::ranges::find(stats.drafters, name, &DrafterStats::name);
    return drafter == stats.drafters.end() ? 0 : drafter->accepted_tokens;
  };
  request.options.drafter = "ngram";  // serves predictions, so it is always there
  Heard by_ngram = run_alone(*engine, request);
  EXPECT_GT(accepted_of("ngram"), 10);
  EXPECT_EQ(accepted_of("suffix"), 0);
  request.options.drafter = "suffix";
  expect_same(run_alone(*engine, request), by_ngram);
  EXPECT_GT(accepted_of("suffix"), 10);
  request.options.drafter = "mtp";
  auto refused = engine->submit(request, [](const TokenEvent&) {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("\"mtp\""), std::string::npos);
  EXPECT_NE(refused.error().message.find("suffix, ngram"), std::string::npos);
}

TEST(Drafters, EventsSayWhichTokensWereDrafted) {
  GenerateRequest request{.prompt = {5, 9, 77, 5, 30, 0, 42, 42},
                          .sampling = {.temperature = 0},
                          .options = {.max_new_tokens = 100}};
  auto engine = load_engine(drafting("ngram"));
  int64_t drafted = 0, proposed = 0, drafts = 0;
  ASSERT_TRUE(engine
                  ->submit(request,
                           [&](const TokenEvent& event) {
                             drafted += event.drafted;
                             proposed = event.draft_tokens;
                             drafts = event.drafts;
                           })
                  .has_value());
  while (engine->step()) {
  }
  EXPECT_GT(drafted, 0);
  EXPECT_EQ(drafted, engine->stats().accepted_draft_tokens);
  EXPECT_EQ(proposed, engine->stats().draft_tokens);
  EXPECT_EQ(drafts, engine->stats().drafts);
}

// Text that a constraint forces comes first, and drafters continue it. Drafted tokens that the
// constraint forbids take no row.
TEST(Drafters, ContinueWhatAConstraintForces) {
  int64_t forced = 0, further = 0;
  EngineConfig config = drafting("suffix");
  auto drafting_engine = load_engine(config);
  config.drafters.clear();
  config.jump_forward = false;
  auto plain = load_engine(config);
  for (uint64_t seed = 1; seed < 12; ++seed) {
    GenerateRequest request{.prompt = {5, 9, 77, 5, 30, 0, 42, 42},
                            .sampling = {.temperature = 0.3f, .seed = seed},
                            .options = {.max_new_tokens = 60}};
    for (int repeat = 0; repeat < 2; ++repeat) {  // the second time the text is known
      request.constraint = std::make_shared<Chance>(seed, 131);
      Heard with = run_alone(*drafting_engine, request);
      request.constraint = std::make_shared<Chance>(seed, 131);
      expect_same(with, run_alone(*plain, request));
    }
  }
  for (const DrafterStats& drafter : drafting_engine->stats().drafters) {
    (drafter.name == "forced" ? forced : further) += drafter.accepted_tokens;
  }
  EXPECT_GT(forced, 50);
  EXPECT_GT(further, 50);
  EXPECT_LT(drafting_engine->stats().steps, plain->stats().steps / 2);
}

// ---- The model's own layer that predicts further tokens
// ------------------------------------------

EngineConfig nano(const std::vector<std::string>& drafters) {
  return {.model_path = source_path("models/banyan-nano"),
          .threads = 1,
          .page_size_tokens = 16,
          .total_tokens_max = 2048,
          .running_max = 4,
          .chunked_prefill_tokens = 64,
          .drafters = drafters,
          .measure_drafts = false};
}

// The beginning of "copy" of tests/golden/nano.json's suites: text that the model writes well.
Tokens nano_prompt() {
  Tokens prompt;
  for (TokenId t : {3, 400, 5, 2178, 20, 1162, 20, 1061, 20, 1608, 20, 1886, 2, 4}) {
    prompt.push_back(t);
  }
  for (TokenId t = 0; t < 90; ++t) prompt.push_back(2178 - t % 7);
  return prompt;
}

// What the trained layer predicts is mostly what the model draws: it would not be if a pair of
// hidden state and token, a norm or a position were off by one.
TEST(MtpDrafter, MostOfItsDraftsAreKeptAndChangeNothing) {
  auto plain = load_engine(nano({}));
  EngineConfig config = nano({"mtp"});
  config.draft_tokens_max = 3;
  auto drafting = load_engine(config);
  for (float temperature : {0.f, 0.7f, 1.3f}) {
    std::vector<Heard> heard(5);
    std::vector<GenerateRequest> requests;
    for (size_t i = 0; i < heard.size(); ++i) {
      Tokens prompt = nano_prompt();
      prompt.resize(prompt.size() - i * 11);  // that share what is cached
      requests.push_back(
          {.prompt = prompt,
           .sampling = {.temperature = temperature,
                        .frequency_penalty = i == 2 ? 0.5f : 0.f,
                        .seed = 7,
                        .sample_index = static_cast<uint32_t>(i)},
           .options = {.max_new_tokens = 40, .min_new_tokens = 0, .top_logprobs = 2}});
      ASSERT_TRUE(drafting->submit(requests[i], hear_into(heard[i])).has_value());
    }
    while (drafting->step()) {
    }
    for (size_t i = 0; i < heard.size(); ++i) expect_same(heard[i], run_alone(*plain, requests[i]));
  }
  EngineStats stats = drafting->stats();
  EXPECT_GT(stats.accepted_draft_tokens * 2, stats.draft_tokens);
  EXPECT_GT(stats.accepted_draft_tokens, 100);
}

// Drafts are tried even if nothing is known of them yet. How many there are depends on the clock.
TEST(MtpDrafter, DraftsWhileMeasuredTimesDecide) {
  EngineConfig config = nano({"mtp"});
  config.measure_drafts = true;
  auto drafting = load_engine(config);
  GenerateRequest request{.prompt = nano_prompt(),
                          .sampling = {.temperature = 0},
                          .options = {.max_new_tokens = 200, .ignore_eos = true}};
  run_alone(*drafting, request);
  EXPECT_GT(drafting->stats().draft_tokens, 0);
}

// The head has the vocabulary's first tokens alone. Others are never drafted; nothing else changes.
TEST(MtpDrafter, DraftsTheFirstTokensOfTheVocabularyAlone) {
  EngineConfig config = nano({"mtp"});
  config.draft_vocabulary = 0;
  auto whole = load_engine(config);
  config.draft_vocabulary = 2560;  // of 3072: what the text has, and more
  auto most = load_engine(config);
  config.draft_vocabulary = 64;
  auto few = load_engine(config);
  EXPECT_GT(few->info().weight_bytes, whole->info().weight_bytes);
  EXPECT_GT(most->info().weight_bytes, few->info().weight_bytes);
  EXPECT_EQ(most->info().parameters_total, whole->info().parameters_total);
  GenerateRequest request{.prompt = nano_prompt(),
                          .sampling = {.temperature = 0.7f, .frequency_penalty = 0.1f, .seed = 3},
                          .options = {.max_new_tokens = 60}};
  request.sampling.logit_bias = {{2900, 1.f}, {7, 1.f}};
  Heard expected = run_alone(*whole, request);
  expect_same(run_alone(*most, request), expected);
  expect_same(run_alone(*few, request), expected);
  EXPECT_GT(whole->stats().accepted_draft_tokens, 20);
  EXPECT_GT(most->stats().accepted_draft_tokens, 20);
  EXPECT_LT(2 * few->stats().accepted_draft_tokens, whole->stats().accepted_draft_tokens);
}

// Random weights predict little, so nearly all is rejected.
TEST(MtpDrafter, ChangesNothingWhateverTheFamily) {
  for (const char* model :
       {"deepseek-v3", "longcat-flash", "ling3-tiny", "glm4-moe", "qwen3-next", "qwen3-5"}) {
    CheckpointCopy checkpoint(model);
    checkpoint.config["num_nextn_predict_layers"] = 1;
    TemporaryFolder folder;
    checkpoint.save(folder);
    EngineConfig config = drafting("");
    config.model_path = folder.path();
    config.load_format = "dummy";
    auto plain = load_engine(config);
    config.drafters = {"mtp"};
    config.draft_tokens_max = 4;
    auto drafting = load_engine(config);
    for (uint64_t seed = 1; seed < 6; ++seed) {
      GenerateRequest request{.prompt = {5, 9, 77, 5, 30, 0, 42, 42},
                              .sampling = {.temperature = seed % 2 == 0 ? 0.f : 0.7f, .seed = seed},
                              .options = {.max_new_tokens = 40}};
      Heard with = run_alone(*drafting, request);
      expect_same(with, run_alone(*plain, request));
    }
    EXPECT_GT(drafting->stats().draft_tokens, 10) << model;
    EXPECT_GT(drafting->info().state_bytes_per_token, plain->info().state_bytes_per_token);
  }
}

// ---- A smaller model of the same vocabulary
// ------------------------------------------------------

EngineConfig drafted_by(const std::string& model) {
  EngineConfig config = drafting("draft");
  config.draft_model_path = golden_folder(model);
  config.draft_tokens_max = 4;
  return config;
}

// A model that drafts for itself draws the same, at any temperature and whatever its draw depends
// on: so all is kept, unless a draft would go on where the text ends.
TEST(DraftModelDrafter, DrawsWhatTheModelWillDraw) {
  auto plain = load_engine(drafting(""));
  auto drafting_engine = load_engine(drafted_by("qwen3-tied"));
  for (float temperature : {0.f, 0.7f, 1.3f}) {
    std::vector<Heard> heard(4);
    std::vector<GenerateRequest> requests;
    for (size_t i = 0; i < heard.size(); ++i) {
      requests.push_back({.prompt = {5, 9, 77, 5, 30, 0, 42, 42},
                          .sampling = {.temperature = temperature,
                                       .frequency_penalty = i == 1 ? 1.f : 0.f,
                                       .seed = 7,
                                       .sample_index = static_cast<uint32_t>(i)},
                          .options = {.max_new_tokens = 41}});
      requests[i].sampling.logit_bias = {{static_cast<TokenId>(i), 3.f}};
      if (i == 2) requests[i].constraint = std::make_shared<Chance>(20, 131);
      ASSERT_TRUE(drafting_engine->submit(requests[i], hear_into(heard[i])).has_value());
    }
    while (drafting_engine->step()) {
    }
    for (size_t i = 0; i < heard.size(); ++i) {
      if (i == 2) requests[i].constraint = std::make_shared<Chance>(20, 131);
      expect_same(heard[i], run_alone(*plain, requests[i]));
    }
  }
  EngineStats stats = drafting_engine->stats();
  const auto* drafter = std::ranges::find(stats.drafters, "draft", &DrafterStats::name);
  ASSERT_NE(drafter, stats.drafters.end());
  EXPECT_GT(drafter->draft_tokens, 250);
  EXPECT_LE(drafter->draft_tokens - drafter->accepted_tokens, 3) << "where the text ends";
  EXPECT_LT(stats.steps, 3 * 16);
}

TEST(DraftModelDrafter, ChangesNothingWhateverItsFamily) {
  auto plain = load_engine(drafting(""));
  for (const char* model : {"mistral-window", "qwen3-next", "deepseek-v3", "gemma3"}) {
    EngineConfig config = drafted_by(model);
    config.context_length_tokens = 200;
    auto drafting_engine = load_engine(config);
    for (uint64_t seed = 1; seed < 5; ++seed) {
      GenerateRequest request{.prompt = {5, 9, 77, 5, 30, 0, 42, 42},
                              .sampling = {.temperature = seed % 2 == 0 ? 0.f : 0.7f, .seed = seed},
                              .options = {.max_new_tokens = 90}};
      request.prompt.insert(request.prompt.end(), 70, 11);
      Heard with = run_alone(*drafting_engine, request);
      expect_same(with, run_alone(*plain, request));
    }
    EXPECT_GT(drafting_engine->stats().draft_tokens, 10) << model;
  }
}

// Turns of a chat, each after the one before: the draft model reads only what is new, so its drafts
// begin with the first token.
TEST(DraftModelDrafter, SharesPrefixesAsTheModelDoes) {
  EngineConfig config = drafted_by("qwen3-tied");
  auto engine = load_engine(config);
  config.total_tokens_max = 64;  // and when there is room for only one sequence
  auto narrow = load_engine(config);
  auto plain = load_engine(drafting(""));
  GenerateRequest request{
      .prompt = {5, 9, 77}, .sampling = {.temperature = 0}, .options = {.max_new_tokens = 8}};
  for (int turn = 0; turn < 4; ++turn) {
    Heard expected = run_alone(*plain, request);
    expect_same(run_alone(*engine, request), expected);
    expect_same(run_alone(*narrow, request), expected);
    for (TokenId token : expected.output_ids()) request.prompt.push_back(token);
    request.prompt.push_back(turn);
  }
  EXPECT_EQ(engine->stats().accepted_draft_tokens, engine->stats().draft_tokens);
  EXPECT_EQ(engine->stats().steps, narrow->stats().steps);
  engine->flush_cache();
  expect_same(run_alone(*engine, request), run_alone(*plain, request));
}

TEST(DraftModelDrafter, IsRefusedWithoutAModelThatFits) {
  auto refusal = [](const EngineConfig& config) {
    auto engine = Engine::load(config);
    return engine ? "" : engine.error().message;
  };
  EXPECT_NE(refusal(drafting("draft")).find("--speculative-draft-model-path"), std::string::npos);
  EngineConfig config = drafted_by("qwen3-tied");
  config.drafters = {"ngram"};
  EXPECT_NE(refusal(config).find("STANDALONE"), std::string::npos);
  config.drafters.clear();
  EXPECT_EQ(refusal(config), "") << "a path alone says what is meant";
  config.draft_model_path = source_path("models/banyan-nano");
  std::string sizes = refusal(config);
  EXPECT_NE(sizes.find("3072 tokens in its vocabulary"), std::string::npos) << sizes;
  EXPECT_NE(sizes.find("has 131"), std::string::npos) << sizes;
}

TEST(MtpDrafter, IsRefusedWhereTheModelHasNoSuchLayer) {
  auto engine = Engine::load(drafting("mtp"));
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(engine.error().message.find("no multi-token prediction (MTP) layer"),
            std::string::npos);
}

}  // namespace
}  // namespace banyan::test::drafters_test
