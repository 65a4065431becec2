// One prompt that a prefill worker computes for this engine.
//
// The worker runs it as a request for no tokens and reports its progress. Units that are computed
// are fetched from it (POST /worker/states), some at a time, into the memory that reads wait with.
// A worker that is lost, or makes no progress, is replaced once; what has arrived stays. Whatever
// fails, reads end, and the engine computes the rest.
//
// Belongs to the thread of the store's io_context.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/tiers/restore_plan.h"
#include "server/route/remote_generator.h"
#include "tier/record_reader.h"
#include "tier/registry.h"

namespace banyan {

// A prompt as the engine describes it (TierPrompt), cut after the last position that may be
// resumed.
struct PrefillPrompt {
  PrefixNamespace name_space;
  std::vector<PrefixToken> tokens;  // whole pages, and the token after them
  std::map<PageKey, int32_t> pages;
  int priority = 0;
};

// What all runs of a store use.
struct PrefillContext {
  RemoteGenerator& workers;
  TierStates states;
  std::function<void(TierDone)> finish;  // of a read
  // Nothing could be fetched from a worker, for this reason.
  std::function<void(const std::string& why)> failed;
};

class PrefillRun : public std::enable_shared_from_this<PrefillRun> {
 public:
  PrefillRun(PrefillContext& context, std::shared_ptr<const PrefillPrompt> prompt);

  void start();
  void read(const TierJob& job);
  // Repeats a request for states that failed, and gives up a worker that is lost. Every kTick.
  void tick();
  static constexpr auto kTick = std::chrono::milliseconds(50);
  // Ends all reads and the run.
  void close();

 private:
  struct Read {
    uint64_t id = 0;
    RecordReader::Place place;
  };
  // By page, and of a page by class.
  using Reads = std::map<std::pair<int32_t, int>, Read>;

  void take(const TokenEvent& event);
  void lose(const Error& error);
  void try_another(const std::string& why);
  void fail(TierOutcome outcome);
  std::shared_ptr<RemoteWorker> worker();
  bool is_lost();
  std::string why_idle();
  void fetch();
  std::vector<RestoreUnit> choose();
  void send(const std::vector<RestoreUnit>& units);
  void take_bytes(int http_status, std::string_view bytes);
  void fetched(int http_status, const Status& outcome);
  void hang_up();
  Reads::iterator find(const TierKey& key);
  void end(Reads::iterator read, TierOutcome outcome);

  PrefillContext& context_;
  const std::shared_ptr<const PrefillPrompt> prompt_;
  std::shared_ptr<Submission> submission_;  // null: none runs
  int attempts_ = 0;                        // to have it computed
  std::string place_;                       // the worker's name
  int64_t computed_ = 0;                    // tokens, by that worker
  bool over_ = false;                       // nothing more arrives

  Reads reads_;  // in progress
  // The request for states that is in progress.
  std::shared_ptr<RemoteWorker> asked_;
  uint64_t fetch_ = 0;    // 0: none
  uint64_t fetches_ = 0;  // so far
  std::vector<std::pair<int32_t, int>> wanted_;
  std::optional<RecordReader> records_;
  std::string refusal_;  // the answer, if it is an error
  int failures_ = 0;     // in a row
  bool pauses_ = false;  // until the next tick
  // In a row: without the worker, without anything from it, and without a step of its engine.
  int lost_ticks_ = 0, silent_ticks_ = 0, still_ticks_ = 0;
  int64_t progress_ = -1;  // the worker's, as last seen
};

}  // namespace banyan
