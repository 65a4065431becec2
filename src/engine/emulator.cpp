#include "engine/emulator.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/check.h"
#include "base/divide.h"
#include "base/random.h"
#include "base/signed.h"

namespace banyan {

void StepEmulator::launch(const Batch& batch, const DrawBatch& draws) {
  CHECK(launched_ - collected_ < 2 && draws.rows.size() == batch.logit_rows.size());
  int64_t prompt_rows = 0, decode_rows = 0;
  for (size_t i = 0; i < batch.spans.size(); ++i) {
    const SpanArgs& span = batch.spans[i];
    bool decodes = span.first_position >= batch.prompt_tokens[i];
    (decodes ? decode_rows : prompt_rows) += span.row_count;
  }
  Flight& flight = flights_[launched_++ % 2];
  flight.results.rows.clear();
  flight.results.tops.assign(as_size(draws.tops), {});
  for (const DrawRow& row : draws.rows) {
    flight.results.rows.push_back(draw(row, draws, flight.results));
  }
  std::chrono::duration<double> time(times_.seconds(prompt_rows, decode_rows));
  busy_until_ =
      std::max(Clock::now(), busy_until_) + std::chrono::duration_cast<Clock::duration>(time);
  flight.end = busy_until_;
}

const DrawResults& StepEmulator::collect() {
  CHECK(collected_ < launched_);
  const Flight& flight = flights_[collected_++ % 2];
  std::this_thread::sleep_until(flight.end);
  return flight.results;
}

DrawResult StepEmulator::draw(const DrawRow& row, const DrawBatch& draws,
                              DrawResults& results) const {
  auto log_vocabulary = static_cast<float>(std::log(static_cast<double>(vocabulary_)));
  auto top_count = narrow<int32_t>(std::min<int64_t>(row.top_count, vocabulary_));
  for (int32_t i = 0; i < top_count; ++i) {
    at(results.tops, row.tops_begin + i) = {.token = i, .logprob = -log_vocabulary};
  }
  for (int32_t i = 0; i < row.chosen.count; ++i) {
    at(results.tops, row.tops_begin + row.top_count + i) = {
        .token = at(draws.chosen, row.chosen.begin + i), .logprob = -log_vocabulary};
  }
  return {.token = row.known >= 0 ? row.known : token_of(row, draws),
          .logprob = -log_vocabulary,
          .log_sum_exp = log_vocabulary,
          .top_count = top_count};
}

// The first token that the mask allows, starting at a random one; -1: it allows none.
TokenId StepEmulator::token_of(const DrawRow& row, const DrawBatch& draws) const {
  DrawNoise noise = row.temperature > 0 ? row.noise : DrawNoise{.position = row.noise.position};
  double place = uniform(noise.seed, static_cast<uint64_t>(noise.position), noise.sample_index);
  auto first = static_cast<int64_t>(place * vocabulary_);
  if (row.mask < 0) return narrow<TokenId>(first);
  int64_t words = divide_up(vocabulary_, 32);
  const uint32_t* mask = draws.masks.data() + row.mask * words;
  for (int64_t i = 0; i < vocabulary_; ++i) {
    int64_t token = (first + i) % vocabulary_;
    if (((mask[token / 32] >> (token % 32)) & 1u) != 0) return narrow<TokenId>(token);
  }
  return -1;
}

}  // namespace banyan
