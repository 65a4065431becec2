// The engine: token requests in, token events out. The caller drives it.
//
//   auto engine = TRY(Engine::load({.model_path = "models/x"}));
//   TRY(engine->submit({.prompt = {1, 403}}, [](const TokenEvent& e) { ... }));
//   while (engine->step()) {}
//
// One thread owns an engine: only that thread may call load, submit, cancel and step. Sinks run on
// it inside step(); a sink may submit and cancel.
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

// A group of weight matrices with the same shape and format.
struct WeightSummary {
  std::string names;     // "model.layers.*.self_attn.{q_proj,k_proj,v_proj}"
  int64_t matrices = 0;  // in memory; fused ones, in braces, count as one
  std::string stored;    // "bf16", "fp8, blocks of 128 x 128"
  std::string memory;    // "bf16", "int4, groups of 32"
  std::string format;    // of `memory`, without the groups: "int4"
  bool exact = true;     // memory holds exactly the stored values
  double share = 1;      // fraction of tokens that pass through it; 0: a lookup table
  int64_t parameters = 0;
  int64_t bytes = 0;  // in memory
};

// Memory of one class of layer states (src/cache/state_classes.h).
struct StateClassSummary {
  std::string name;        // "pages", "pages of a window of 512 tokens", "slots"
  int64_t unit_bytes = 0;  // one page or slot, over all layers
  int64_t units = 0;
};

// A model and its memory plan, in numbers.
struct EngineInfo : ModelInfo, WeightCounts {
  std::vector<WeightSummary> weights;
  int64_t state_bytes_per_token = 0;
  std::vector<StateClassSummary> state_classes;  // the classes that the next figures describe
  int64_t state_bytes_per_window_token = 0;      // of states with a window
  int64_t index_bytes_per_token = 0;             // of keys that an index chooses by
  int64_t window_tokens = 0;                     // of the longest window; 0: no state has one
  int64_t state_bytes_per_sequence = 0;          // of recurrent state; each snapshot takes as much
  std::string state_format;    // in which attention multiplies what grows with the tokens: "bf16";
                               // "" if nothing does
  std::string kv_cache_dtype;  // what that is kept as: "bf16", "fp8_e4m3"; "" likewise

  std::string kernels;         // the table in use, "avx512"
  std::string kernels_reason;  // why that one: "asked for"
  int threads = 0;             // threads and bytes are those of all ranks together
  int tp_size = 1;             // ranks
  int page_size_tokens = 0;
  int64_t total_tokens_max = 0;   // capacity of the pages
  int64_t window_tokens_max = 0;  // capacity of the longest window's pages
  int64_t slots = 0;              // of recurrent state: one per sequence, then snapshots
  int64_t state_bytes_max = 0;    // with every page and slot in use
  int64_t prefill_rows_max = 0;   // per step, beyond one row per decoding sequence
  int64_t step_bytes = 0;         // activation memory of the largest step
  // Room for LoRA adapters: how many, of which rank, and the memory of all.
  int adapters_max = 0, adapter_rank_max = 0;
  int64_t adapter_bytes = 0;
  bool overlap_schedule = false;  // whether steps are launched before the last one is read

  // With EngineConfig::state_digest: SHA-256, in hexadecimal, over everything that can change a bit
  // of the layer states, and its inputs. Engines with equal digests may exchange states.
  std::string state_digest;
  std::vector<std::pair<std::string, std::string>> state_digest_parts;  // name and value
};

// A loaded LoRA adapter.
struct AdapterInfo {
  std::string name, path;
  // SHA-256, in hexadecimal, over all that it changes in a result: its matrices and their scaling,
  // and the form in which they are kept. Cached prefixes are kept apart by it, not by the name.
  std::string digest;
  int64_t rank = 0;       // the largest of its modules
  int64_t modules = 0;    // matrices of the model that it adapts
  int64_t running = 0;    // sequences with rows of the last step
  int64_t sequences = 0;  // those and the ones that wait
};

// An adapter that is read, checked and packed for one model.
class PackedAdapter;

// Drafts of one drafter and their acceptance.
struct DrafterStats {
  std::string_view name;        // "forced" (by a constraint), "ngram", ...; empty: unused
  int64_t drafts = 0;           // drafts that were verified
  int64_t draft_tokens = 0;     // tokens in those drafts
  int64_t accepted_tokens = 0;  // tokens that were accepted
  // Branches of those drafts that were verified, and those that had the tokens that were drawn.
  int64_t branches = 0, followed_branches = 0;
  double time_s = 0;  // spent drafting
};

// One store of EngineConfig::cache_storage.
struct CacheLayerStats {
  static constexpr size_t kClassesMax = 8;
  std::string_view backend;  // "disk"
  std::string_view health;   // "on", "read-only", "off"
  // Of each class of EngineInfo::state_classes, as far as the store knows.
  std::array<int64_t, kClassesMax> units = {}, bytes = {};
  int64_t capacity_bytes = 0;   // 0: decided by the server
  int64_t evicted_units = 0;    // from the store
  int64_t restored_tokens = 0;  // prompt tokens loaded instead of computed
  int64_t read_units = 0, read_bytes = 0, written_units = 0, written_bytes = 0;
  double read_s = 0, write_s = 0;  // in the store
};

// The state of EngineConfig::cache_storage.
struct CacheStorageStats {
  static constexpr size_t kLayersMax = 3;
  // Why units were not loaded: their record does not exist (any more), has other bytes than were
  // written, or belongs to something else; loading took too long; the device or server failed; or
  // computing is faster.
  enum Miss : uint8_t { kAbsent, kChecksum, kIdentity, kTimeout, kFailed, kCheaperToCompute };
  static constexpr std::array<std::string_view, 6> kMissNames = {
      "absent", "checksum", "identity", "timeout", "failed", "cheaper_to_compute"};

  std::array<CacheLayerStats, kLayersMax> layers;  // in the order in which they are asked
  size_t layer_count = 0;                          // 0: nothing is kept
  int64_t evicted_unwritten = 0;                   // evicted from memory before they were stored
  int64_t restored_tokens = 0;                     // from all layers
  double saved_s = 0;                              // estimated computing time saved
  std::array<int64_t, kMissNames.size()> misses = {};
  // There is work in progress, or work for idle times: call step() again within milliseconds even
  // if it returned false.
  bool busy = false;
};

struct EngineStats {
  static constexpr size_t kDraftersMax = 6;
  static constexpr size_t kDraftPositions = 8;

  int64_t running = 0;
  int64_t queued = 0;
  int64_t pages_free = 0;    // empty
  int64_t pages_cached = 0;  // hold a prefix that no running sequence uses
  int64_t pages_total = 0;
  int64_t slots_free = 0;    // of recurrent state
  int64_t slots_cached = 0;  // hold snapshots: the state at the end of a cached prefix
  int64_t slots_total = 0;
  int64_t steps = 0;
  int64_t prompt_tokens = 0;  // computed so far
  int64_t cached_tokens =
      // Prompt tokens found in the cache and not computed.
      0;
  int64_t generated_tokens = 0;
  int64_t drafts = 0;                 // drafts verified, over all sequences
  int64_t draft_tokens = 0;           // draft tokens verified
  int64_t accepted_draft_tokens = 0;  // each saved its sequence one step
  std::array<DrafterStats, kDraftersMax> drafters;
  // Accepted tokens by position in the draft; positions past the last are not counted.
  std::array<int64_t, kDraftPositions> accepted_at = {};
  int64_t retracted = 0;  // times that a running sequence returned to the queue for lack of pages
  CacheStorageStats storage;
};

// How often each expert of one layer was chosen.
struct ExpertCounts {
  std::string layer;                // "model.layers.3.mlp"
  int64_t rows = 0;                 // tokens that passed through the layer
  std::vector<int64_t> experts;     // tokens per expert that computes
  std::vector<int64_t> identities;  // tokens per zero-computation expert

  // Mean number of computing experts per token.
  double active_mean() const;
};

class Engine {
 public:
  // Reads config.json and the weights (not the tokenizer) and reserves all memory.
  static Result<std::unique_ptr<Engine>> load(const EngineConfig& config,
                                              const LoadProgress& progress = {});
  ~Engine();

  // Queues a request. Never blocks. Errors: a value out of range, an unsupported feature, a prompt
  // that does not fit, a full queue (kExhausted).
  Result<SequenceId> submit(GenerateRequest request, TokenSink sink);

  // Ends a sequence at the next step, with FinishReason::kCancelled. Unknown ids are ignored.
  void cancel(SequenceId sequence);

  // Forgets every cached prefix that no running sequence uses. EngineConfig::cache_storage keeps
  // what it has.
  void flush_cache();
  // Removes what EngineConfig::cache_storage keeps for this model and configuration.
  void clear_cache_storage();

  // Loads an adapter in two steps. The first reads, checks and packs it, which may take seconds;
  // any thread may do that, at any time. The second copies it to its room. Errors name the file,
  // the tensor and the wrong value; kExhausted: as many adapters are loaded as there is room for.
  Result<std::shared_ptr<const PackedAdapter>> pack_adapter(const AdapterSource& source) const;
  Status add_adapter(const std::shared_ptr<const PackedAdapter>& adapter);
  // From now on requests with that name are refused. Those submitted before keep the adapter, and
  // its room is free once the last of them has ended. kNotFound names the adapters that exist.
  Status remove_adapter(const std::string& name);
  // The adapters that requests may name, sorted by name. Thread-safe.
  std::vector<AdapterInfo> adapters() const;

  // Pins the cached part of this prefix until release(): its pages are evicted only after all pages
  // that are neither held nor waited for. Reserves no memory and changes no result. The caller
  // chooses `key`; holding the same key again replaces the earlier hold.
  void hold(uint64_t key, std::vector<TokenId> tokens);
  // Unknown keys are ignored.
  void release(uint64_t key);

  // Runs one batch through the model and delivers its events. With overlap_schedule, launches one
  // batch and delivers the events of the previous one. Returns false when there was nothing to do.
  bool step();

  const EngineInfo& info() const;
  EngineStats stats() const;
  // Counts for every layer with experts, since load; empty without EngineConfig::expert_counts. A
  // token counts once each time it is computed, independent of the batch. Thread-safe.
  std::vector<ExpertCounts> expert_counts() const;

 private:
  friend struct EngineAssembly;  // src/engine/assemble.h
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The plan of Engine::load (weights and memory) without reading the weights. Checks the checkpoint
// against its config.json as strictly as loading does. `progress` reports hashing of the weights,
// with EngineConfig::state_digest.
Result<EngineInfo> inspect_model(const EngineConfig& config, const LoadProgress& progress = {});

}  // namespace banyan
