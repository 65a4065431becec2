// The engine: token requests in, token events out, driven by its caller.
//
//   auto engine = TRY(Engine::load({.model_path = "models/x"}));
//   TRY(engine->submit({.prompt = {1, 403}}, [](const TokenEvent& e) { ... }));
//   while (engine->step()) {}
//
// One thread owns an engine: load, submit, cancel and step are called from it alone, and sinks run
// on it inside step(). A sink may submit and cancel.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "banyan/config.h"
#include "banyan/model_info.h"
#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

// Weight matrices that are alike.
struct WeightSummary {
  std::string names;     // "model.layers.*.self_attn.{q_proj,k_proj,v_proj}"
  int64_t matrices = 0;  // in memory, where those in braces are one
  std::string stored;    // "bf16", "fp8, blocks of 128 x 128"
  std::string memory;    // "bf16", "int4, groups of 32"
  std::string format;    // of memory, without the groups: "int4"
  bool exact = true;     // memory holds the numbers that are stored
  double share = 1;      // of the tokens that pass through; 0: rows of it are only looked up
  int64_t parameters = 0;
  int64_t bytes = 0;  // in memory
};

// Memory for layer states that are kept alike: src/cache/state_classes.h.
struct StateClassSummary {
  std::string name;        // "pages", "pages of a window of 512 tokens", "slots"
  int64_t unit_bytes = 0;  // of one page or slot, in all layers
  int64_t units = 0;
};

// A model and the plan for its memory, in numbers.
struct EngineInfo : ModelInfo, WeightCounts {
  std::vector<WeightSummary> weights;
  int64_t state_bytes_per_token = 0;
  std::vector<StateClassSummary> state_classes;  // what the next figures are about, one by one
  int64_t state_bytes_per_window_token = 0;      // of states that keep a window only
  int64_t window_tokens = 0;                     // of the longest window; 0: no state has one
  int64_t state_bytes_per_sequence = 0;          // of recurrent state, and of each snapshot of it
  std::string state_format;    // in which attention multiplies what grows with the tokens: "bf16";
                               // "" if nothing does
  std::string kv_cache_dtype;  // what that is kept as: "bf16", "fp8_e4m3"; "" likewise

  std::string kernels;         // the table in use, "avx512"
  std::string kernels_reason;  // why that one: "asked for"
  int threads = 0;
  int page_size_tokens = 0;
  int64_t total_tokens_max = 0;   // that the pages hold
  int64_t window_tokens_max = 0;  // that the pages of the longest window hold
  int64_t slots = 0;              // of recurrent state: one for each sequence, the rest snapshots
                                  // and checkpoints for drafts
  int64_t state_bytes_max = 0;    // when every page and slot is in use
  int64_t prefill_rows_max = 0;   // of one step, not counting one for each sequence that decodes
  int64_t step_bytes = 0;         // activations of the largest step

  // With EngineConfig::state_digest: SHA-256, in hexadecimal, over all that can change a bit of
  // what layers remember, and the parts that it is made of. Engines with equal digests may exchange
  // states.
  std::string state_digest;
  std::vector<std::pair<std::string, std::string>> state_digest_parts;  // name and value
};

// What came of the tokens that one of the ways to propose them proposed.
struct DrafterStats {
  std::string_view name;        // "forced" by a constraint, "ngram"; empty: none
  int64_t drafts = 0;           // times that it proposed tokens which were computed
  int64_t draft_tokens = 0;     // of those, ...
  int64_t accepted_tokens = 0;  // ... and how many were kept
  double time_s = 0;            // spent on proposing
};

// What EngineConfig::cache_storage keeps and does.
struct CacheStorageStats {
  static constexpr size_t kClassesMax = 8;
  // Why units were not loaded: their record is not there (any more), has other bytes than were
  // written, is another's; took too long; device or server failed; are computed sooner.
  enum Miss : uint8_t { kAbsent, kChecksum, kIdentity, kTimeout, kFailed, kCheaperToCompute };
  static constexpr std::array<std::string_view, 6> kMissNames = {
      "absent", "checksum", "identity", "timeout", "failed", "cheaper_to_compute"};

  std::string_view backend;  // "disk"; empty: none
  std::string_view health;   // "on", "read-only", "off"
  // Of each class of EngineInfo::state_classes, as far as the store knows.
  std::array<int64_t, kClassesMax> units = {}, bytes = {};
  int64_t capacity_bytes = 0;     // 0: the server's business
  int64_t evicted_units = 0;      // from the store
  int64_t evicted_unwritten = 0;  // from memory, before they were in the store
  int64_t restored_tokens = 0;    // prompt tokens that were loaded and not computed
  int64_t read_units = 0, read_bytes = 0, written_units = 0, written_bytes = 0;
  double read_s = 0, write_s = 0;  // in the store
  double saved_s = 0;              // of computing, as it was estimated
  std::array<int64_t, kMissNames.size()> misses = {};
  // Something is under way, or is to be done when nothing else is: step() is to be called again
  // within milliseconds though it returned false.
  bool busy = false;
};

struct EngineStats {
  static constexpr size_t kDraftersMax = 6;
  static constexpr size_t kDraftPositions = 8;

  int64_t running = 0;
  int64_t queued = 0;
  int64_t pages_free = 0;    // hold nothing
  int64_t pages_cached = 0;  // hold a prefix that no running sequence uses
  int64_t pages_total = 0;
  int64_t slots_free = 0;    // of recurrent state
  int64_t slots_cached = 0;  // snapshots: the state at the end of a cached prefix
  int64_t slots_total = 0;
  int64_t steps = 0;
  int64_t prompt_tokens = 0;  // computed so far
  int64_t cached_tokens =
      0;  // prompt tokens that were not computed, since a cached prefix was used
  int64_t generated_tokens = 0;
  int64_t drafts = 0;        // times that tokens were proposed ahead of the model for a sequence
  int64_t draft_tokens = 0;  // that were proposed and computed
  int64_t accepted_draft_tokens = 0;  // of them kept: each a step that its sequence did not need
  std::array<DrafterStats, kDraftersMax> drafters;
  // Accepted tokens by their place in a draft; those beyond the last are left out.
  std::array<int64_t, kDraftPositions> accepted_at = {};
  int64_t retracted = 0;  // times that a running sequence went back to the queue for want of pages
  CacheStorageStats storage;
};

// How often each expert of one layer was chosen.
struct ExpertCounts {
  std::string layer;                // "model.layers.3.mlp"
  int64_t rows = 0;                 // tokens that the layer computed
  std::vector<int64_t> experts;     // of those that compute, by number
  std::vector<int64_t> identities;  // of those that return their input

  // Experts that compute, for one token.
  double active_mean() const;
};

class Engine {
 public:
  // Opens config.json and the weights (not the tokenizer) and reserves all memory.
  static Result<std::unique_ptr<Engine>> load(const EngineConfig& config,
                                              const LoadProgress& progress = {});
  ~Engine();

  // Queues a request. Errors: a value out of range (named), a feature that is not supported yet, a
  // prompt that does not fit, a full queue (kExhausted). Never blocks.
  Result<SequenceId> submit(GenerateRequest request, TokenSink sink);

  // Ends a sequence with FinishReason::kCancelled at the next step; unknown ids are ignored.
  void cancel(SequenceId sequence);

  // Forgets every cached prefix that no running sequence uses. EngineConfig::cache_storage keeps
  // what it has.
  void flush_cache();
  // Forgets what EngineConfig::cache_storage keeps, for this model as it runs.
  void clear_cache_storage();

  // Keeps what is cached of this prefix until release(): its pages are evicted only after all those
  // that nobody holds or waits for. Reserves no memory and changes no result. `key` is the caller's
  // choice; an earlier hold of that key ends.
  void hold(uint64_t key, std::vector<TokenId> tokens);
  // Unknown keys are ignored.
  void release(uint64_t key);

  // Runs one batch through the model and delivers its events; with overlap_schedule, launches one
  // and delivers those of the batch before. False when there was nothing to do.
  bool step();

  const EngineInfo& info() const;
  EngineStats stats() const;
  // Of every layer that chooses experts, since the engine began; empty unless
  // EngineConfig::expert_counts. A token counts once for each time that it is computed, whatever
  // was in its step. Safe from every thread.
  std::vector<ExpertCounts> expert_counts() const;

 private:
  friend struct EngineAssembly;  // src/engine/assemble.h
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What Engine::load would load and reserve, without reading the weights. Checks the checkpoint
// against its config.json as strictly as loading does. `progress` is of hashing the weights, with
// EngineConfig::state_digest.
Result<EngineInfo> inspect_model(const EngineConfig& config, const LoadProgress& progress = {});

}  // namespace banyan
