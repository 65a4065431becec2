// Internal access to an engine, for the layers next to it only. Builds one from parts other than
// those of Engine::load (tests bring model families that no checkpoint can name) and looks inside
// it. Not for programs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "banyan/engine.h"
#include "base/trace_log.h"
#include "cache/tree_view.h"
#include "engine/drafters/draft_control.h"
#include "engine/drafters/drafter.h"
#include "engine/tiers/rates.h"
#include "models/registry.h"
#include "tier/registry.h"
#include "tier/store.h"

namespace banyan {

class Runner;
class KvAnnouncer;
class Scheduler;

struct EngineAssembly {
  // Makes a store for the states of the loaded model.
  using MakeStore = std::function<Result<std::unique_ptr<TierStore>>(const TierStates&)>;

  // Replaces the store that EngineConfig::cache_storage names, and the clock.
  struct Storage {
    std::unique_ptr<TierStore> store;  // null: the configured store
    MakeStore last;                    // asked for what that one lacks; empty: none
    std::function<int64_t()> now_ns;
    std::optional<LoadCost> load;  // instead of measuring
  };

  // Engine::load, where config.json names one of `families`. `drafters` are asked before those that
  // the config names.
  static Result<std::unique_ptr<Engine>> load(const EngineConfig& config,
                                              std::span<const Family> families,
                                              const LoadProgress& progress = {},
                                              std::vector<NamedDrafter> drafters = {},
                                              Storage storage = {});

  // What the prefix cache holds. On the thread that owns the engine.
  static TreeView tree_view(const Engine& engine, const TreeViewLimits& limits);

  // For what fills the cache by itself (engine/context_fill.h), on the thread that owns the engine.
  struct Parts {
    Scheduler& scheduler;
    const Runner& runner;
  };
  static Parts parts(Engine& engine);

  // Announces what the prefix cache has, gains and loses, from the first call on; returns the same
  // announcer each time. Null without EngineConfig::state_digest, from which page keys are made. On
  // the thread that owns the engine, which must outlive the announcer.
  static KvAnnouncer* announcer(Engine& engine);

  // Records what runs in `log` until that ends, another log replaces it, or end_trace() is called.
  // On the thread that owns the engine.
  static void trace(Engine& engine, std::shared_ptr<TraceLog> log);
  // Ends `log`, whether or not it is still being written.
  static void end_trace(Engine& engine, TraceLog& log);

  // What the engine has measured to choose the lengths of drafts, on the thread that owns it.
  static SpeculationStats speculation(const Engine& engine);

  // For benchmarks: like Engine::submit, but the output is `recorded`, whatever the logits are;
  // what follows it is drawn. Drafters do not see it.
  static Result<SequenceId> submit_recorded(Engine& engine, GenerateRequest request, TokenSink sink,
                                            std::vector<TokenId> recorded);
  // For benchmarks: of the tokens that drafters with a model propose for recorded outputs, so many
  // are right (engine/drafters/emulated.h).
  static void emulate_acceptance(Engine& engine, double rate);

  // For the training of a filter: engine/drafters/draft_filter.h.
  static void observe_drafts(Engine& engine, DraftObserver observer);

  // For tests that check invariants between steps.
  static const Scheduler& scheduler(const Engine& engine);
  // Steps that were launched while another was in flight.
  static int64_t overlapped_steps(const Engine& engine);
};

}  // namespace banyan
