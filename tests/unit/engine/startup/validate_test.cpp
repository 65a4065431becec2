// Configs and sampling parameters out of range: the error names the first invalid value.
#include "banyan/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "banyan/request.h"

namespace banyan::validate_test {
namespace {

// Every field one step outside its range, and what the message must say.
template <class Params>
struct Wrong {
  std::function<void(Params&)> change;
  const char* message;
};

template <class Params>
void expect_refused(const Params& good, const std::vector<Wrong<Params>>& cases) {
  ASSERT_TRUE(good.validate().has_value());
  for (const Wrong<Params>& wrong : cases) {
    Params bad = good;
    wrong.change(bad);
    Status status = bad.validate();
    ASSERT_FALSE(status.has_value()) << wrong.message;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(status.error().message.find(wrong.message), std::string::npos)
        << status.error().message << " does not say " << wrong.message;
  }
}

TEST(EngineConfig, NamesTheFirstValueOutOfRange) {
  using C = EngineConfig;
  expect_refused<C>(
      {.model_path = "x"},
      {
          {[](C& c) { c.model_path = ""; }, "model_path is empty"},
          {[](C& c) { c.dtype = "f8"; }, "dtype is \"f8\"; supported: auto, bf16, f16, f32"},
          {[](C& c) { c.load_format = "pickle"; }, "load_format is \"pickle\""},
          {[](C& c) { c.mla_prefill = "mixed"; },
           "mla_prefill is \"mixed\"; supported: absorbed, expanded"},
          {[](C& c) { c.kv_cache_dtype = "fp8_e5m2"; },
           "kv_cache_dtype is \"fp8_e5m2\"; supported: auto, bf16, f16, f32, fp8_e4m3, fp8, int8"},
          {[](C& c) { c.threads = -1; }, "threads is -1"},
          {[](C& c) { c.threads = 1025; }, "threads is 1025; it must be between 0 and 1024"},
          {[](C& c) { c.context_length_tokens = -1; }, "context_length_tokens is -1"},
          {[](C& c) { c.page_size_tokens = 0; }, "page_size_tokens is 0"},
          {[](C& c) { c.page_size_tokens = 48; }, "page_size_tokens is 48, not a power of two"},
          {[](C& c) { c.page_size_tokens = 2048; }, "page_size_tokens is 2048"},
          {[](C& c) { c.total_tokens_max = -1; }, "total_tokens_max is -1"},
          {[](C& c) { c.memory_fraction = 0; }, "memory_fraction is 0"},
          {[](C& c) { c.memory_fraction = 1.5; }, "memory_fraction is 1.5"},
          {[](C& c) { c.memory_fraction = std::nan(""); }, "memory_fraction is nan"},
          {[](C& c) { c.running_max = 0; }, "running_max is 0"},
          {[](C& c) { c.queued_max = 0; }, "queued_max is 0"},
          {[](C& c) { c.chunked_prefill_tokens = -1; }, "chunked_prefill_tokens is -1"},
          {[](C& c) { c.prompt_tokens_max = 0; }, "prompt_tokens_max is 0"},
          {[](C& c) { c.top_logprobs_max = -1; }, "top_logprobs_max is -1"},
          {[](C& c) { c.stop_token_ids_max = -1; }, "stop_token_ids_max is -1"},
          {[](C& c) { c.logit_bias_max = -1; }, "logit_bias_max is -1"},
      });
}

TEST(SamplingParams, NamesTheFirstValueOutOfRange) {
  using P = SamplingParams;
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  expect_refused<P>(
      {}, {
              {[](P& p) { p.temperature = -0.1f; }, "temperature is -0.1"},
              {[](P& p) { p.temperature = kNaN; }, "temperature is nan"},
              {[](P& p) { p.temperature = kInfinity; }, "temperature is inf"},
              {[](P& p) { p.top_p = 0; }, "top_p is 0"},
              {[](P& p) { p.top_p = 1.01f; }, "top_p is 1.01"},
              {[](P& p) { p.top_p = kNaN; }, "top_p is nan"},
              {[](P& p) { p.top_k = -1; }, "top_k is -1"},
              {[](P& p) { p.min_p = -0.5f; }, "min_p is -0.5"},
              {[](P& p) { p.min_p = kNaN; }, "min_p is nan"},
              {[](P& p) { p.typical_p = 0; }, "typical_p is 0"},
              {[](P& p) { p.typical_p = kNaN; }, "typical_p is nan"},
              {[](P& p) { p.xtc_probability = 2; }, "xtc_probability is 2"},
              {[](P& p) { p.xtc_threshold = -1; }, "xtc_threshold is -1"},
              {[](P& p) { p.dry_multiplier = kInfinity; }, "dry_multiplier is inf"},
              {[](P& p) { p.dry_base = 0.5f; }, "dry_base is 0.5"},
              {[](P& p) { p.dry_allowed_length = -1; }, "dry_allowed_length is -1"},
              {[](P& p) { p.dry_penalty_last_n = -2; }, "dry_penalty_last_n is -2"},
              {[](P& p) { p.repeat_last_n = -2; }, "repeat_last_n is -2"},
              {[](P& p) { p.frequency_penalty = 2.5f; }, "frequency_penalty is 2.5"},
              {[](P& p) { p.frequency_penalty = kNaN; }, "frequency_penalty is nan"},
              {[](P& p) { p.presence_penalty = -3; }, "presence_penalty is -3"},
              {[](P& p) { p.presence_penalty = kNaN; }, "presence_penalty is nan"},
              {[](P& p) { p.repetition_penalty = 0; }, "repetition_penalty is 0"},
              {[](P& p) { p.repetition_penalty = -kInfinity; }, "repetition_penalty is -inf"},
              {[](P& p) { p.logit_bias = {{3, std::nanf("")}}; }, "logit_bias is nan"},
              {[](P& p) { p.logit_bias = {{3, 101}}; }, "logit_bias is 101"},
          });
}

}  // namespace
}  // namespace banyan::validate_test
