// A load test: sends a dataset's requests to a server at their arrival times, with limited
// concurrency, and records when each token arrives.
//
// Everything runs on the thread that runs the io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "client/dataset.h"
#include "client/http_client.h"
#include "client/serving_api.h"

namespace banyan {

struct BenchOptions {
  RequestStyle style;
  double requests_per_s = 0;    // infinite: all at once; 0: the dataset's times, else all at once
  int64_t concurrency_max = 0;  // 0: no limit
  double timeout_s = 6 * 3600;  // per request
  uint64_t seed = 0;            // for arrival times
};

struct RequestRecord {
  bool ok = false;
  std::string error;  // if not ok
  // Times of sending, first token and last token, since the start of the run.
  double begin_s = 0, first_s = 0, last_s = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
};

struct BenchResult {
  std::vector<RequestRecord> records;  // in order of completion
  // Between tokens of a stream; tokens that arrive together share one gap.
  std::vector<float> gaps_ms;
  std::vector<int64_t> tokens_by_second;
  double duration_s = 0;
  int64_t concurrency_peak = 0;
  std::map<std::string, int64_t> failures;  // counts by reason, such as "HTTP 503"
  bool interrupted = false;
};

struct BenchProgress {
  int64_t done = 0, total = 0;  // requests
  int64_t output_tokens = 0;
  double seconds = 0;
};

// Runs until every request has ended. `on_progress` is called ten times a second. `interrupted` is
// polled as often; once it returns true, running requests are cancelled and not recorded.
BenchResult run_bench(boost::asio::io_context& io, HttpClient& client, const Dataset& dataset,
                      const BenchOptions& options,
                      const std::function<void(const BenchProgress&)>& on_progress = {},
                      const std::function<bool()>& interrupted = {});

}  // namespace banyan
