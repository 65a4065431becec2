#include "engine/runner.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os/affinity.h"
#include "base/quote.h"
#include "base/signed.h"
#include "base/units.h"
#include "dist/gather.h"
#include "engine/startup/kernel_choice.h"
#include "engine/startup/memory_plan.h"
#include "engine/startup/state_identity.h"
#include "engine/startup/weight_summary.h"
#include "kernels/select.h"
#include "ops/linear.h"

namespace banyan {
namespace {

// Memory that emulation assumes: so much that the requested number of tokens decides.
constexpr int64_t kEmulatedBytes = int64_t{1} << 60;

std::vector<float> copy_out(const DeviceQueue& queue, Tensor x) {
  HostView view(queue, x.f32(), x.bytes());
  queue.synchronise();
  return {view.as<float>(), view.as<float>() + x.count()};
}

// Splits x [any, parts * width] into parts [any, width].
std::vector<std::vector<float>> columns_of(const std::vector<float>& x, int64_t parts,
                                           int64_t width) {
  std::vector<std::vector<float>> columns(as_size(parts));
  for (int64_t begin = 0; begin < std::ssize(x); begin += width) {
    std::vector<float>& part = at(columns, begin / width % parts);
    part.insert(part.end(), x.begin() + begin, x.begin() + begin + width);
  }
  return columns;
}

void copy_states(const Step& s) {
  s.pools.copy(s.kernels, s.launch, s.batch.copies, s.inputs.copies);
}

int thread_count(const EngineConfig& config) {
  return config.threads > 0 ? config.threads : usable_processors();
}

// Kernels that an emulator never calls, under a name that no computed state belongs to.
ModelKernels emulated_kernels() {
  static const KernelTable kTable = [] {
    KernelTable table = **select_kernels("portable");
    table.name = "emulated";
    return table;
  }();
  return {.table = &kTable, .reason = "steps are emulated"};
}

std::unexpected<Error> no_room(const EngineConfig& config, const EngineInfo& info,
                               int64_t available_bytes) {
  std::string adapters;
  if (info.adapter_bytes > 0) {
    adapters = fmt::format(" and {} for adapters (--max-loaded-loras, --max-lora-rank)",
                           format_bytes(info.adapter_bytes));
  }
  return exhausted(
      "{} of memory are left after the weights{}; {:.0f}% of the rest, minus {} for the "
      "activations "
      "of a step, is too little for the states of {} tokens at {} each; free memory, try "
      "--quantization int4, ask for fewer tokens, use smaller prefill chunks "
      "(--chunked-prefill-size) or raise --mem-fraction-static",
      format_bytes(available_bytes - info.adapter_bytes), adapters, 100 * config.memory_fraction,
      format_bytes(info.step_bytes),
      std::max<int64_t>(config.total_tokens_max, config.page_size_tokens),
      format_bytes(info.state_bytes_per_token));
}

void add_identity(const EngineConfig& config, const LoadedModel& model, const KernelTable& kernels,
                  EngineInfo& info) {
  if (!config.state_digest) return;
  StateIdentity identity = identify_states(config, model, kernels);
  info.state_digest = identity.digest().value().hex();
  info.state_digest_parts = std::move(identity.parts);
}

}  // namespace

Result<EngineInfo> inspect_model(const EngineConfig& asked, const LoadProgress& progress) {
  TRY(asked.validate());
  EngineConfig config = asked;
  TRY(choose_adapter_limits(config));
  ThreadPool threads(config.state_digest ? thread_count(config) : 1);
  auto [kernels, reason] = TRY(kernels_of(config, registered_families()));
  LoadedModel model = TRY(load_model(
      config, {.kernels = kernels, .threads = &threads, .dry = true, .progress = progress}));
  // The weights are not allocated yet.
  DeviceQueue queue(*kernels->device);
  int64_t available = queue.available_bytes() - model.counts.weight_bytes;
  EngineInfo info = TRY(plan_memory(config, model, *kernels, thread_count(config), available));
  info.kernels_reason = std::move(reason);
  add_identity(config, model, *kernels, info);
  return info;
}

Result<std::unique_ptr<Runner>> Runner::load(const EngineConfig& config,
                                             const LoadProgress& progress,
                                             std::span<const Family> families, Comm& comm,
                                             const Runner* neighbour) {
  std::unique_ptr<Runner> runner(new Runner);
  runner->comm_ = &comm;
  // A rank that fails must not leave the others waiting for it.
  auto on_all = [&](auto stage) { return agree(comm, guard(stage)); };
  TRY(on_all([&] { return runner->prepare(config, families, neighbour); }));
  TRY(on_all([&] { return runner->load_weights(config, progress, families); }));
  if (comm.exchanges()) TRY(runner->compare_ranks(config));
  TRY(on_all([&] { return runner->plan(config, neighbour); }));
  if (comm.exchanges()) runner->share_units(config);
  TRY(on_all([&] { return runner->reserve(config); }));
  if (comm.exchanges()) {
    TRY(on_all([&] { return runner->describe_ranks(config, families); }));
  }
  return runner;
}

Runner::~Runner() {
  if (calls_ != nullptr) calls_->send(RankCall::kUnload);
}

void Runner::lead() {
  calls_ = std::make_unique<RankCalls>(*comm_);
}

// What one rank may refuse before others take memory.
Status Runner::prepare(const EngineConfig& config, std::span<const Family> families,
                       const Runner* neighbour) {
  TRY(config.validate());
  bool emulated = config.emulated_steps.has_value();
  auto [kernels, reason] = TRY(emulated ? emulated_kernels() : kernels_of(config, families));
  kernels_ = kernels;
  info_.kernels_reason = std::move(reason);
  queue_ = std::make_unique<DeviceQueue>(*kernels_->device);
  if (neighbour != nullptr) {
    threads_ = neighbour->threads_;
  } else {
    threads_ = std::make_shared<ThreadPool>(thread_count(config));
    if (config.pin_threads && !emulated) pin_workers(*threads_);
  }
  if (config.threads == 0 && !emulated && kernels->device->host_memory) {
    sharing_ = std::make_unique<Sharing>(threads_->workers());
  }
  if (comm_->rank().alone()) return {};
  LoadedModel part = TRY(load_dry(config, families, comm_->rank()));
  return check_weights_fit(config, part.counts.weight_bytes * comm_->ranks_here(),
                           queue_->available_bytes());
}

// The part of `rank`, without weights.
Result<LoadedModel> Runner::load_dry(const EngineConfig& config, std::span<const Family> families,
                                     Rank rank) {
  EngineConfig undigested = config;
  undigested.state_digest = false;
  return load_model(undigested, {.kernels = kernels_,
                                 .threads = threads_.get(),
                                 .dry = true,
                                 .quiet = true,
                                 .rank = rank,
                                 .families = families});
}

Status Runner::load_weights(const EngineConfig& config, const LoadProgress& progress,
                            std::span<const Family> families) {
  model_ = TRY(load_model(config, {.kernels = kernels_,
                                   .queue = queue_.get(),
                                   .threads = threads_.get(),
                                   .dry = config.emulated_steps.has_value(),
                                   .quiet = comm_->rank().index > 0,
                                   .rank = comm_->rank(),
                                   .progress = progress,
                                   .families = families}));
  return {};
}

// Ranks on different machines may have other files, processors or libraries.
Status Runner::compare_ranks(const EngineConfig& config) {
  StateIdentity identity = identify_states(config, model_, *kernels_);
  Status same;
  for (const auto& [name, value] : identity.parts) {
    if (name == "matrices" || name == "states") continue;  // each has its own
    std::vector<Digest> all = gather(*comm_, Hasher().text(name).text(value).finish());
    if (same && all[as_size(comm_->rank().index)] != all[0]) {
      same = invalid_argument(
          "{} {} here, and something else on rank 0; all need the same program, model folder and "
          "--kernels",
          name, quote(value));
    }
  }
  return agree(*comm_, same);
}

Status Runner::plan(const EngineConfig& config, const Runner* neighbour) {
  int64_t available = kEmulatedBytes;
  if (!config.emulated_steps) available = queue_->available_bytes() / comm_->ranks_here();
  if (neighbour != nullptr) {  // pools are committed on first touch
    available -= neighbour->info_.state_bytes_max + neighbour->info_.step_bytes;
  }
  std::string reason = std::move(info_.kernels_reason);
  info_ = TRY(plan_memory(config, model_, *kernels_, thread_count(config), available));
  info_.kernels_reason = std::move(reason);
  info_.overlap_schedule = config.overlap_schedule.value_or(!queue_->ops().host_memory);
  add_identity(config, model_, *kernels_, info_);
  if (info_.total_tokens_max == 0) return no_room(config, info_, available);
  return {};
}

// All ranks get the units of the one that has fewest.
void Runner::share_units(const EngineConfig& config) {
  UnitCounts units = unit_counts(info_);
  for (const UnitCounts& other : gather(*comm_, units)) {
    for (size_t c = 0; c < units.size(); ++c) units[c] = std::min(units[c], other[c]);
  }
  set_units(config, model_, units, info_);
}

// Makes info_ that of all ranks together.
Status Runner::describe_ranks(const EngineConfig& config, std::span<const Family> families) {
  constexpr std::array kSums = {
      &EngineInfo::state_bytes_per_token, &EngineInfo::state_bytes_per_window_token,
      &EngineInfo::index_bytes_per_token, &EngineInfo::state_bytes_per_sequence,
      &EngineInfo::state_bytes_max,       &EngineInfo::step_bytes};
  std::array<int64_t, kSums.size()> mine;
  for (size_t i = 0; i < mine.size(); ++i) mine[i] = info_.*kSums[i];
  std::vector<std::array<int64_t, kSums.size()>> all = gather(*comm_, mine);
  for (size_t i = 0; i < mine.size(); ++i) {
    info_.*kSums[i] = 0;
    for (const auto& other : all) info_.*kSums[i] += other[i];
  }
  info_.threads *= comm_->rank().count;
  info_.tp_size = comm_->rank().count;
  LoadedModel whole = TRY(load_dry(config, families, {}));
  static_cast<WeightCounts&>(info_) = whole.counts;
  info_.weights = summarise_weights(whole.matrices);
  return {};
}

// The memory of pools and steps.
Status Runner::reserve(const EngineConfig& config) {
  UnitCounts units = unit_counts(info_);
  for (int i = 0; i < std::max(2, config.scheduler_steps); ++i) flights_.emplace_back(*queue_);
  if (config.emulated_steps) {
    emulator_ = std::make_unique<StepEmulator>(*config.emulated_steps, info_.vocabulary);
    units.fill(1);
  }
  pools_ = std::make_unique<StatePools>(
      TRY(StatePools::create(model_.states, info_.page_size_tokens, units, *queue_)));
  if (emulator_ != nullptr) return {};
  adapters_ = adapter_room(config, model_, *kernels_);
  if (adapters_ != nullptr) adapters_->reserve(*queue_);
  for (std::unique_ptr<Image>& image : images_) image = std::make_unique<Image>(*queue_);
  aside_ = std::make_unique<Image>(*queue_);
  prediction_ = std::make_unique<Drawn>(*queue_);
  arena_ = Arena(as_size(info_.step_bytes), *queue_);
  if (config.expert_counts && !model_.expert_layers.empty()) {
    const ExpertLayer& last = model_.expert_layers.back();
    int64_t counts = last.counts_begin + last.experts + last.identity_experts;
    expert_counts_.resize(as_size(counts));
    device_expert_counts_ = DeviceBlock(*queue_, as_size(counts) * sizeof(int64_t));
  }
  return {};
}

Step Runner::make_step(Arena& arena, const Batch& batch, const StepInputs& inputs,
                       std::span<const int> auxiliary_layers) {
  return {.kernels = traced_ ? traced_->enter() : *kernels_,
          .launch = {.queue = queue_->handle(), .threads = threads_.get()},
          .arena = arena,
          .pools = *pools_,
          .batch = batch,
          .inputs = inputs,
          .comm = *comm_,
          .adapters = adapters_ ? &adapters_->table() : nullptr,
          .expert_counts = reinterpret_cast<int64_t*>(device_expert_counts_.data()),
          .trace = traced_ ? &traced_->log() : nullptr,
          .auxiliary_layers = auxiliary_layers};
}

// Of a layer that drafts: it has no adapters.
Step Runner::make_draft_step(const Batch& batch, const StepInputs& inputs) {
  Step step = make_step(arena_, batch, inputs);
  step.adapters = nullptr;
  return step;
}

Result<std::shared_ptr<const PackedAdapter>> Runner::pack_adapter(
    const AdapterSource& source) const {
  if (adapters_ != nullptr) return adapters_->pack(source);
  return unsupported(
      "adapter {}: there is no room for adapters; it is reserved when the model is loaded "
      "(--lora-paths, --max-loaded-loras)",
      quote(source.name));
}

void Runner::trace(TraceLog* log) {
  traced_ = log != nullptr ? std::make_unique<TracedKernels>(*kernels_, *log) : nullptr;
}

std::vector<ExpertCounts> Runner::expert_counts() const {
  std::vector<ExpertCounts> all;
  if (expert_counts_.empty()) return all;
  for (const ExpertLayer& layer : model_.expert_layers) {
    std::vector<int64_t> counts(as_size(layer.experts + layer.identity_experts));
    for (size_t i = 0; i < counts.size(); ++i) {
      // C++20's atomic_ref does not accept const objects; this only reads.
      auto& count = const_cast<int64_t&>(expert_counts_[as_size(layer.counts_begin) + i]);
      counts[i] = std::atomic_ref(count).load(std::memory_order_relaxed);
    }
    int64_t chosen = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    auto middle = counts.begin() + layer.experts;
    all.push_back({.layer = layer.name,
                   .rows = chosen / layer.top_k,
                   .experts = {counts.begin(), middle},
                   .identities = {middle, counts.end()}});
  }
  return all;
}

double ExpertCounts::active_mean() const {
  auto chosen = std::accumulate(experts.begin(), experts.end(), int64_t{0});
  return rows > 0 ? static_cast<double>(chosen) / rows : 0;
}

void Runner::launch(const Batch& batch, const DrawBatch& draws) {
  CHECK(in_flight() < 2 && draws.rows.size() == batch.logit_rows.size());
  auto told = tell(RankCall::kLaunch, batch, draws);
  if (emulator_ != nullptr) {
    emulator_->launch(batch, draws);
    ++launched_;
    return;
  }
  const DrawResult* drawn = nullptr;
  if (in_flight() > 0) drawn = image(launched_ - 1).draws.drawn();
  Image& now = image(launched_);
  Flight& flight = at(flights_, launched_ % flights_max());
  const DrawArgs& args = now.draws.load(draws, flight.drawn.results);
  arena_.rewind(0);
  Step step = make_step(arena_, batch, now.inputs.load(batch));
  step.drawn = drawn;
  flight.drafted.results.rows.clear();
  compute(step, args);
  end_launch(now, flight);
}

// On a CPU, with as many threads as are fastest while others use the processors too.
void Runner::compute(Step& step, const DrawArgs& draws) {
  if (sharing_ == nullptr) return run_step(step, draws);
  constexpr double kLookEvery = 0.5;
  double began_s = trace_clock_ns() * 1e-9;
  int64_t rows = step.batch.rows();
  if (began_s - sharing_->looked_s > kLookEvery) {
    sharing_->choice.set_free(sharing_->others.free_processors());
    sharing_->looked_s = began_s = trace_clock_ns() * 1e-9;
  }
  int threads = sharing_->choice.threads_for(rows);
  if (threads < threads_->workers() && !std::exchange(sharing_->told, true)) {
    spdlog::info("other programs use these processors too: some steps take fewer threads than {}",
                 threads_->workers());
  }
  threads_->use(threads);
  run_step(step, draws);
  sharing_->choice.observe(rows, trace_clock_ns() * 1e-9 - began_s);
}

void Runner::end_launch(const Image& image, Flight& flight) {
  flight.drawn.download.start(image.draws, flight.drawn.results);
  flight.mark = queue_->mark();
  ++launched_;
}

void Runner::run_step(Step& step, const DrawArgs& draws) {
  run_step(step, [&](Step& s, int64_t first, Tensor logits, const LogitStats& stats) {
    draw(s, logits, stats, draws, first);
  });
}

const DrawResults& Runner::collect() {
  CHECK(in_flight() > 0);
  auto told = tell(RankCall::kCollect);
  if (emulator_ != nullptr) {
    ++collected_;
    return emulator_->collect();
  }
  Flight& flight = at(flights_, collected_++ % flights_max());
  queue_->wait(flight.mark);
  for (Drawn* drawn : {&flight.drawn, &flight.drafted}) drawn->download.finish(drawn->results);
  publish_expert_counts();
  return flight.drawn.results;
}

const DrawResults& Runner::collected_drafts() const {
  return at(flights_, (collected_ - 1) % flights_max()).drafted.results;
}

void Runner::run(const Batch& batch, ConsumeLogits consume) {
  CHECK(emulator_ == nullptr && calls_ == nullptr);
  arena_.rewind(0);
  Step step = make_step(arena_, batch, aside_->inputs.load(batch));
  run_step(step, [&](Step&, int64_t first, Tensor logits, const LogitStats& stats) {
    consume_on_host(first, logits, stats, consume);
  });
  publish_expert_counts();
}

void Runner::run_step(Step& step, ConsumeStepLogits consume) {
  copy_states(step);
  Outputs outputs = model_.model->forward(step);
  auto count = std::ssize(step.batch.logit_rows);
  size_t mark = arena_.mark();
  features_ = outputs.features;
  after_features_ = mark;
  download_hidden(step, outputs.hidden);
  for (int64_t first = 0; first < count; first += kLogitRowsMax) {
    int64_t rows = std::min(kLogitRowsMax, count - first);
    Tensor hidden = select_rows(step, outputs.hidden, step.inputs.logit_rows + first, rows);
    Tensor logits = model_.model->logits(step, hidden);
    consume(step, first, logits, logit_stats(step, logits));
    arena_.rewind(mark);
  }
}

// Enqueues the copy of the hidden states that the host gets, for the step that is being launched.
void Runner::download_hidden(Step& step, Tensor hidden) {
  auto count = std::ssize(step.batch.hidden_rows);
  Drawn& drawn = at(flights_, launched_ % flights_max()).drawn;
  drawn.results.hidden = {};
  if (count == 0) return;
  int64_t width = hidden.dim(1);
  size_t bytes = as_size(count * width) * sizeof(float);
  if (drawn.hidden.size() < bytes) drawn.hidden = HostBlock(*queue_, std::bit_ceil(bytes));
  auto* to = reinterpret_cast<float*>(drawn.hidden.data());
  drawn.results.hidden = {to, as_size(count * width)};
  size_t mark = arena_.mark();
  for (int64_t first = 0; first < count; first += kLogitRowsMax) {
    int64_t rows = std::min(kLogitRowsMax, count - first);
    Tensor block = select_rows(step, hidden, step.inputs.hidden_rows + first, rows);
    queue_->download(to + first * width, block.data(), block.bytes());
    arena_.rewind(mark);
  }
}

// ---- Steps that follow steps whose drafts are not verified --------------------------------------

bool Runner::can_follow() const {
  if (emulator_ != nullptr || !predicts()) return false;
  return queue_->ops().host_memory || std::ranges::none_of(model_.states, &StateSpec::host_plans);
}

// Where the spans of the step launched last continue, for kernels to fill in `batch`.
FollowDraftsArgs Runner::follow(const StepImage& after, const Batch& batch) {
  const Image& last = image(launched_ - 1);
  FollowDraftsArgs args = after.unknown(batch);
  args.launch = {.queue = queue_->handle(), .threads = threads_.get()};
  args.before = last.inputs.inputs().spans.device;
  args.tokens = last.inputs.inputs().tokens;
  args.drawn = last.draws.drawn();
  return args;
}

void Runner::launch_following(const Batch& before, const Batch& batch, const DrawBatch& draws,
                              const DraftPasses& passes) {
  CHECK(in_flight() > 0 && in_flight() < flights_max() && can_follow());
  CHECK(std::ssize(before.logit_rows) == before.rows(), "rows that do not draw");
  auto told = tell(RankCall::kLaunchFollowing, before, batch, draws, passes.drafts, passes.row,
                   passes.draws);
  Image& now = image(launched_);
  Flight& flight = at(flights_, launched_ % flights_max());
  // Every upload first: a GPU launches the kernels after them, of drafts, verification and step,
  // as one graph.
  const DrawArgs& drafts = aside_->draws.load(passes.draws, flight.drafted.results);
  aside_->inputs.load(passes.row);
  const DrawArgs& args = now.draws.load(draws, flight.drawn.results);
  const StepInputs& inputs = now.inputs.load(batch);
  upload_samples(before.rows());
  predict_after(before, passes);
  for (int64_t i = 0; i < passes.drafts; ++i) draw_draft(i, passes, drafts);
  arena_.rewind(0);
  Step step = make_step(arena_, batch, inputs);
  FollowDraftsArgs next = follow(now.inputs, batch);
  next.draws = now.draws.rows();
  next.drafted = drafts.results;
  next.vocabulary = info_.vocabulary;
  step.kernels.follow_drafts(next);
  compute(step, args);
  flight.drafted.download.start(aside_->draws, flight.drafted.results);
  end_launch(now, flight);
}

// Tokens that stand for what each of `rows` rows has drawn.
void Runner::upload_samples(int64_t rows) {
  size_t bytes = as_size(rows) * sizeof(TokenId);
  if (samples_.size() >= bytes) return;
  std::vector<TokenId> tokens(as_size(rows));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = Batch::kSampleOfRow - narrow<TokenId>(i);
  samples_ = DeviceBlock(*queue_, bytes);
  queue_->upload(samples_.data(), tokens.data(), bytes);
}

// Runs the layer over all rows of the step launched last, each with the token that it drew, and
// keeps the output of each span's last accepted one. What it writes for the rows after that is
// written again before anything reads it.
void Runner::predict_after(const Batch& before, const DraftPasses& passes) {
  arena_.rewind(after_features_);
  StepInputs inputs = image(launched_ - 1).inputs.inputs();
  Step step = make_draft_step(before, inputs);
  auto spans = std::ssize(before.spans);
  predicted_ = step.allocate({spans, model_.model->predicted_width()});
  after_predicted_ = arena_.mark();
  inputs.tokens = reinterpret_cast<const TokenId*>(samples_.data());
  step.drawn = image(launched_ - 1).draws.drawn();
  Tensor outputs = model_.model->predict(step, features_);
  auto* last_rows = arena_.allocate_array<int32_t>(spans);
  FollowDraftsArgs args = follow(aside_->inputs, passes.row);
  args.offset = -1;
  args.last_rows = last_rows;
  args.next_tokens = nullptr;
  step.kernels.follow_drafts(args);
  step.copy(select_rows(step, outputs, last_rows, spans), predicted_);
}

// Draws the next token of all drafts from the kept outputs. Before all but the first, the layer
// runs over the one before.
void Runner::draw_draft(int64_t number, const DraftPasses& passes, const DrawArgs& draws) {
  arena_.rewind(after_predicted_);
  Step step = make_draft_step(passes.row, aside_->inputs.inputs());
  auto spans = std::ssize(passes.row.spans);
  FollowDraftsArgs args = follow(aside_->inputs, passes.row);
  args.offset = number - 1;
  args.draws = aside_->draws.rows() + number * spans;
  args.ahead = 2;
  args.next_tokens = nullptr;
  step.kernels.follow_drafts(args);
  if (number > 0) {
    step.drawn = draws.results + (number - 1) * spans;
    step.copy(model_.model->predict(step, predicted_), predicted_);
  }
  draw_kept(step, spans, draws, number * spans,
            [&](int64_t first, int64_t count) { return predicted_.rows(first, count); });
}

// Kept outputs are stored right after the step's features. Copy the rows that this call reads
// from them before they are overwritten.
void Runner::predict(const Batch& batch, std::span<const int32_t> from, bool again) {
  CHECK(in_flight() == 0 && std::ssize(from) == batch.rows());
  auto told = tell(RankCall::kPredict, batch, from, again);
  auto kept = std::ssize(batch.logit_rows);
  arena_.rewind(again ? after_predicted_ : after_features_);
  Step step = make_draft_step(batch, aside_->inputs.load(batch));
  if (!again) {
    predicted_ = step.allocate({std::max<int64_t>(kept, 1), model_.model->predicted_width()});
    after_predicted_ = arena_.mark();
  }
  Tensor inputs =
      select_rows(step, again ? predicted_ : features_, step.upload(from), std::ssize(from));
  Tensor outputs = model_.model->predict(step, inputs);
  if (kept == 0) return;
  Tensor last = select_rows(step, outputs, step.inputs.logit_rows, kept);
  step.copy(last, predicted_.rows(0, kept));
}

const DrawResults& Runner::draw_predicted(std::span<const int32_t> rows, const DrawBatch& draws) {
  static const Batch kNone;
  auto told = tell(RankCall::kDrawPredicted, rows, draws);
  arena_.rewind(after_predicted_);
  Step step = make_draft_step(kNone, aside_->inputs.load(kNone));
  const int32_t* chosen = step.upload(rows);
  const DrawArgs& args = aside_->draws.load(draws, prediction_->results);
  draw_kept(step, std::ssize(rows), args, 0, [&](int64_t first, int64_t count) {
    return select_rows(step, predicted_, chosen + first, count);
  });
  prediction_->download.start(aside_->draws, prediction_->results);
  queue_->synchronise();
  prediction_->download.finish(prediction_->results);
  return prediction_->results;
}

// Draws from `count` kept outputs, a block of kept(first, rows) at a time, by the rows of `draws`
// from `first_draw` on.
void Runner::draw_kept(Step& step, int64_t count, const DrawArgs& draws, int64_t first_draw,
                       FunctionRef<Tensor(int64_t first, int64_t rows)> kept) {
  size_t mark = arena_.mark();
  for (int64_t first = 0; first < count; first += kLogitRowsMax) {
    Tensor outputs = kept(first, std::min(kLogitRowsMax, count - first));
    Tensor logits = model_.model->predicted_logits(step, outputs);
    draw(step, logits, logit_stats(step, logits), draws, first_draw + first);
    arena_.rewind(mark);
  }
}

void Runner::consume_on_host(int64_t first, Tensor logits, const LogitStats& stats,
                             ConsumeLogits consume) {
  auto rows = as_size(logits.dim(0));
  HostView all(*queue_, logits.data(), logits.bytes());
  HostView argmax(*queue_, stats.argmax, rows * sizeof(int32_t));
  HostView log_sum_exp(*queue_, stats.log_sum_exp, rows * sizeof(float));
  queue_->synchronise();
  Tensor on_host(const_cast<float*>(all.as<float>()), DType::kF32, {logits.dim(0), logits.dim(1)});
  consume(first, on_host, {argmax.as<int32_t>(), log_sum_exp.as<float>()});
}

void Runner::publish_expert_counts() {
  if (expert_counts_.empty()) return;
  HostView counts(*queue_, device_expert_counts_.data(), device_expert_counts_.size());
  queue_->synchronise();
  for (size_t i = 0; i < expert_counts_.size(); ++i) {
    std::atomic_ref(expert_counts_[i]).store(counts.as<int64_t>()[i], std::memory_order_relaxed);
  }
}

Runner::Hidden Runner::run_hidden(const Batch& batch, std::span<const int> layers) {
  CHECK(emulator_ == nullptr && calls_ == nullptr);
  const AdapterTable* adapters = adapters_ ? &adapters_->table() : nullptr;
  Arena arena(measure_step_bytes(model_, *kernels_, batch.rows(), layers, adapters), *queue_);
  Step step = make_step(arena, batch, aside_->inputs.load(batch), layers);
  copy_states(step);
  Outputs outputs = model_.model->forward(step);
  Hidden hidden;
  if (!layers.empty()) {
    hidden.layers =
        columns_of(copy_out(*queue_, outputs.auxiliary), std::ssize(layers), outputs.hidden.dim(1));
  }
  hidden.final = copy_out(*queue_, outputs.hidden);
  return hidden;
}

}  // namespace banyan
