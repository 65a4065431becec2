#include "banyan/engine.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "base/os/affinity.h"
#include "base/units.h"
#include "engine/assemble.h"
#include "engine/drafters/draft_model.h"
#include "engine/drafters/registry.h"
#include "engine/loop.h"
#include "engine/ranks/group.h"
#include "engine/tiers/open.h"

namespace banyan {
namespace {

Status check_scheduler_steps(const EngineConfig& config, const Runner& runner,
                             std::span<const NamedDrafter> drafters) {
  bool ahead = std::ranges::any_of(
      drafters, [](const NamedDrafter& drafter) { return drafter.drafter->drafts_ahead(); });
  if (config.scheduler_steps == 1 || ahead) return {};
  if (runner.predicts()) {
    return unsupported(
        "scheduler_steps is {}, but on this device the host has to know where the rows of this "
        "model's attention are (it is in chunks or blocks), so that no step follows one unread",
        config.scheduler_steps);
  }
  return invalid_argument(
      "scheduler_steps is {}, but nothing here drafts while a step is in flight: the model's own "
      "layer or a head would (--speculative-algorithm NEXTN or EAGLE3)",
      config.scheduler_steps);
}

}  // namespace

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::load(const EngineConfig& config,
                                             const LoadProgress& progress) {
  return EngineAssembly::load(config, registered_families(), progress);
}

TreeView EngineAssembly::tree_view(const Engine& engine, const TreeViewLimits& limits) {
  return view(engine.impl_->scheduler().tree(), limits);
}

EngineAssembly::Parts EngineAssembly::parts(Engine& engine) {
  return engine.impl_->parts();
}

KvAnnouncer* EngineAssembly::announcer(Engine& engine) {
  return engine.impl_->announcer();
}

void EngineAssembly::trace(Engine& engine, std::shared_ptr<TraceLog> log) {
  engine.impl_->trace(std::move(log));
}

void EngineAssembly::end_trace(Engine& engine, TraceLog& log) {
  engine.impl_->end_trace(log);
}

Result<SequenceId> EngineAssembly::submit_recorded(Engine& engine, GenerateRequest request,
                                                   TokenSink sink, std::vector<TokenId> recorded) {
  int64_t vocabulary = engine.info().vocabulary;
  for (TokenId token : recorded) {
    if (token >= 0 && token < vocabulary) continue;
    return invalid_argument("the recorded output has token {}, which is outside the vocabulary, {}",
                            token, vocabulary);
  }
  return guard([&] {
    return engine.impl_->submit(std::move(request), std::move(sink), std::move(recorded));
  });
}

SpeculationStats EngineAssembly::speculation(const Engine& engine) {
  return engine.impl_->speculation();
}

void EngineAssembly::emulate_acceptance(Engine& engine, double rate) {
  engine.impl_->emulate_acceptance(rate);
}

void EngineAssembly::observe_drafts(Engine& engine, DraftObserver observer) {
  engine.impl_->observe_drafts(std::move(observer));
}

const Scheduler& EngineAssembly::scheduler(const Engine& engine) {
  return engine.impl_->scheduler();
}

int64_t EngineAssembly::overlapped_steps(const Engine& engine) {
  return engine.impl_->overlapped_steps();
}

Result<std::unique_ptr<Engine>> EngineAssembly::load(const EngineConfig& config,
                                                     std::span<const Family> families,
                                                     const LoadProgress& progress,
                                                     std::vector<NamedDrafter> drafters,
                                                     Storage storage) {
  return guard([&]() -> Result<std::unique_ptr<Engine>> {
    EngineConfig chosen = config;
    chosen.drafters = TRY(chosen_drafters(config));
    TRY(chosen.validate());
    TRY(choose_adapter_limits(chosen));
    bool tiered = config.cache_storage.on() || storage.last;
    chosen.state_digest = config.state_digest || tiered;
    std::shared_ptr<const DraftFilter> filter;
    if (!config.draft_filter_path.empty())
      filter = TRY(DraftFilter::load(config.draft_filter_path));
    auto ranks = TRY(RankGroup::create(chosen, families));
    Comm& comm = ranks != nullptr ? ranks->comm() : lone_rank();
    Rank part = comm.processors();
    ProcessorShare share(part.index, part.count);
    std::unique_ptr<Runner> draft;
    if (loads_draft_model(chosen)) draft = TRY(load_draft_model(chosen, families));
    if (ranks != nullptr) ranks->load();
    auto runner = TRY(Runner::load(chosen, progress, families, comm, draft.get()));
    if (ranks != nullptr) runner->lead();
    std::unique_ptr<TierSetup> tiers;
    if (tiered) tiers = TRY(open_tiers(chosen, *runner, std::move(storage)));
    for (NamedDrafter& drafter : make_drafters(chosen, {*runner, std::move(draft)})) {
      drafters.push_back(std::move(drafter));
    }
    TRY(check_scheduler_steps(chosen, *runner, drafters));
    auto impl =
        std::make_unique<Engine::Impl>(chosen, std::move(ranks), std::move(runner),
                                       std::move(drafters), std::move(filter), std::move(tiers));
    if (chosen.adapters_max > 0) {
      spdlog::info("{} are reserved for {} adapters of rank {}",
                   format_bytes(impl->info().adapter_bytes), chosen.adapters_max,
                   chosen.adapter_rank_max);
    }
    for (const AdapterSource& source : chosen.adapters) {
      TRY(impl->adapters().add(*TRY(impl->pack_adapter(source))));
    }
    return std::unique_ptr<Engine>(new Engine(std::move(impl)));
  });
}

Result<SequenceId> Engine::submit(GenerateRequest request, TokenSink sink) {
  return guard([&] { return impl_->submit(std::move(request), std::move(sink)); });
}
void Engine::cancel(SequenceId sequence) {
  impl_->cancel(sequence);
}
void Engine::flush_cache() {
  impl_->flush_cache();
}
void Engine::clear_cache_storage() {
  impl_->clear_cache_storage();
}
Result<std::shared_ptr<const PackedAdapter>> Engine::pack_adapter(
    const AdapterSource& source) const {
  return guard([&] { return impl_->pack_adapter(source); });
}
Status Engine::add_adapter(const std::shared_ptr<const PackedAdapter>& adapter) {
  return impl_->adapters().add(*adapter);
}
Status Engine::remove_adapter(const std::string& name) {
  return impl_->adapters().remove(name);
}
std::vector<AdapterInfo> Engine::adapters() const {
  return impl_->adapters().list();
}
void Engine::hold(uint64_t key, std::vector<TokenId> tokens) {
  impl_->hold(key, std::move(tokens));
}
void Engine::release(uint64_t key) {
  impl_->release(key);
}
bool Engine::step() {
  return impl_->step();
}
const EngineInfo& Engine::info() const {
  return impl_->info();
}
EngineStats Engine::stats() const {
  return impl_->stats();
}
std::vector<ExpertCounts> Engine::expert_counts() const {
  return impl_->expert_counts();
}

}  // namespace banyan
