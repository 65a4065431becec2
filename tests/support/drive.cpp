#include "support/drive.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"
#include "kernels/select.h"
#include "support/sanitized.h"

namespace banyan::test {
namespace {

std::vector<float> logprobs_of(const std::vector<Heard::Token>& tokens) {
  std::vector<float> values;
  for (const Heard::Token& token : tokens) values.push_back(token.logprob);
  return values;
}

}  // namespace

void Heard::hear(const TokenEvent& event) {
  CHECK(ends == 0, "an event after the last one");
  if (event.has_token) {
    (event.from_prompt ? prompt : output)
        .push_back({event.position,
                    event.token,
                    event.logprob,
                    {event.top.begin(), event.top.end()},
                    {event.chosen.begin(), event.chosen.end()}});
  }
  if (event.finish == FinishReason::kNone) return;
  ++ends;
  finish = event.finish;
  matched_stop = event.matched_stop;
  cached_tokens = event.cached_tokens;
  embedding.assign(event.embedding.begin(), event.embedding.end());
  error = event.error;
}

std::vector<TokenId> Heard::output_ids() const {
  std::vector<TokenId> ids;
  for (const Token& token : output) ids.push_back(token.token);
  return ids;
}

std::vector<float> Heard::output_logprobs() const {
  return logprobs_of(output);
}

std::vector<float> Heard::prompt_logprobs() const {
  return logprobs_of(prompt);
}

TokenSink hear_into(Heard& heard) {
  return [&heard](const TokenEvent& event) { heard.hear(event); };
}

std::unique_ptr<Engine> load_engine(const EngineConfig& config) {
  auto engine = Engine::load(config);
  CHECK(engine.has_value(), "{}", engine.error().message);
  return *std::move(engine);
}

std::unique_ptr<Runner> load_runner(const EngineConfig& config) {
  auto runner = Runner::load(config, {});
  CHECK(runner.has_value(), "{}", runner.error().message);
  return *std::move(runner);
}

void expect_same(const Heard& a, const Heard& b) {
  EXPECT_EQ(a.output_ids(), b.output_ids());
  EXPECT_TRUE(same_bits(a.output_logprobs(), b.output_logprobs()));
  EXPECT_EQ(a.finish, b.finish);
  EXPECT_EQ(a.matched_stop, b.matched_stop);
  EXPECT_EQ(a.error.message, b.error.message);
  EXPECT_EQ(a.ends, b.ends);
  ASSERT_EQ(a.output.size(), b.output.size());
  for (size_t i = 0; i < a.output.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(a.output[i].top, b.output[i].top, {}, &TokenLogprob::token,
                                   &TokenLogprob::token))
        << i;
  }
}

Heard run_alone(Engine& engine, const GenerateRequest& request) {
  Heard heard;
  auto id = engine.submit(request, hear_into(heard));
  CHECK(id.has_value(), "{}", id.error().message);
  while (engine.step()) {
  }
  return heard;
}

Batch one_span(const StateClasses& classes, std::span<const TokenId> tokens, int64_t first,
               int64_t count, std::span<const int32_t> pages) {
  Batch batch;
  batch.spans.push_back({.row_begin = 0,
                         .row_count = static_cast<int32_t>(count),
                         .first_position = static_cast<int32_t>(first),
                         .page_begin = 0});
  batch.adapters = {-1};
  batch.prompt_tokens = {static_cast<int32_t>(tokens.size())};
  for (int c = 0; c < classes.count; ++c) {
    std::vector<int32_t>& units = batch.tables[static_cast<size_t>(c)].units;
    units = classes[c].paged() ? std::vector(pages.begin(), pages.end()) : std::vector{0};
  }
  for (int64_t i = 0; i < count; ++i) {
    batch.tokens.push_back(tokens[static_cast<size_t>(first + i)]);
    batch.positions.push_back(static_cast<int32_t>(first + i));
    batch.logit_rows.push_back(static_cast<int32_t>(i));
  }
  return batch;
}

std::vector<float> all_logits(Runner& runner, std::span<const TokenId> tokens, int64_t chunk) {
  const EngineInfo& info = runner.info();
  std::vector<int32_t> pages;
  for (int64_t page = info.total_tokens_max / info.page_size_tokens - 1; page >= 0; --page) {
    pages.push_back(static_cast<int32_t>(page));
  }
  int64_t alignment = runner.classes().resume_alignment_tokens;
  chunk = (chunk + alignment - 1) / alignment * alignment;
  std::vector<float> all;
  auto length = static_cast<int64_t>(tokens.size());
  for (int64_t first = 0; first < length; first += chunk) {
    Batch batch = one_span(runner.classes(), tokens, first, std::min(chunk, length - first), pages);
    runner.run(batch, [&](int64_t, Tensor logits, const LogitStats&) {
      all.insert(all.end(), logits.f32(), logits.f32() + logits.count());
    });
  }
  return all;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

std::vector<std::string> all_kernels() {
  std::vector<std::string> names = available_kernels();
  names.emplace_back("fenced");
  // Sanitizers slow the emulation down tenfold; differential/cuda_test runs under them.
  if (!kSanitized) names.emplace_back("cuda_emulated");
  if (select_kernels("cuda")) names.emplace_back("cuda");  // where there is a GPU
  return names;
}

}  // namespace banyan::test
