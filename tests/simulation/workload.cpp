#include "simulation/workload.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string_view>

#include "base/random.h"
#include "kernels/select.h"
#include "support/chance.h"
#include "support/drive.h"
#include "support/models/adapters.h"
#include "support/models/eagle3_head.h"
#include "support/models/grown_checkpoint.h"
#include "support/models/hybrid_model.h"
#include "support/shared.h"
#include "support/stripes.h"

namespace banyan::test {
namespace {

constexpr int kVocabulary = kWorkloadVocabulary;
constexpr int kContextTokens = 96;

class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}

  double real() { return uniform(seed_, draws_++, 0); }
  int below(int end) { return static_cast<int>(real() * end); }
  int between(int first, int last) { return first + below(last - first + 1); }
  bool chance(double p) { return real() < p; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<int>(values.size()))];
  }

 private:
  uint64_t seed_;
  uint64_t draws_ = 0;
};

constexpr int kLayerSets = 15;  // of four kinds, not none

// A folder with the config of a hybrid; the bits of `kinds` say which kinds of layers it has.
const std::string& hybrid_folder(int kinds) {
  static std::array<std::unique_ptr<TemporaryFolder>, 256> folders;
  std::unique_ptr<TemporaryFolder>& folder = folders[static_cast<size_t>(kinds)];
  if (folder == nullptr) {
    folder = std::make_unique<TemporaryFolder>();
    hybrid_config(*folder, {.full = (kinds & 1) != 0,
                            .window = (kinds & 2) != 0,
                            .lightning = (kinds & 4) != 0,
                            .delta = (kinds & 8) != 0,
                            .near = (kinds & 16) != 0,
                            .block_means = (kinds & 32) != 0,
                            .notes = (kinds & 64) != 0,
                            .nsa = (kinds & 128) != 0,
                            .context_tokens = kContextTokens});
  }
  return folder->path();
}

void choose_golden(Random& r, EngineConfig& config) {
  bool latent = r.chance(0.5);
  std::string name =
      latent
          ? r.one_of({"deepseek-v3", "longcat-flash", "ling3-tiny", "kimi-linear", "mistral4",
                      "deepseek-v32", "glm-moe-dsa"})
          : r.one_of({"llama2-mha", "mistral-window", "llama32-tied-sharded", "qwen3-tied",
                      "gpt-oss", "gemma3", "minimax-m2", "minimax-m3", "qwen3-next", "qwen3-5-moe",
                      "lfm2-moe", "granite-hybrid", "nemotron-h", "llama4", "gemma4"});
  config.model_path = golden_folder(name);
  if (latent) config.mla_prefill = r.one_of({"absorbed", "expanded"});
  // Attention to blocks of keys, of a model's own and of others.
  if (!latent && r.chance(0.5)) {
    config.moba_block_tokens = r.one_of({1, 2, 4, 8, 16, 64});
    config.moba_top_k = r.between(1, 4);
    if (r.chance(0.5)) name = "ring-sparse";
    // A layer that attends to all positions.
    if (name == "mistral-window" || name == "minimax-m3") name = "qwen3-tied";
    config.model_path = golden_folder(name);
  }
  config.kv_cache_dtype = r.one_of({"auto", "auto", "int8", "fp8_e4m3"});
}

EngineConfig random_config(Random& r, bool hybrid, bool made_up) {
  // Made-up mixers compute on the host.
  std::vector<std::string> kernels = made_up ? available_kernels() : all_kernels();
  EngineConfig config;
  if (made_up) {
    config.model_path = hybrid_folder(r.one_of({1, 2, 3, 7, 9, 15}) + 16 * r.one_of({7, 6, 1, 8}));
    config.load_format = "dummy";
  } else if (hybrid) {
    config.model_path = hybrid_folder(1 + r.below(kLayerSets));
    config.load_format = "dummy";
  } else {
    choose_golden(r, config);
  }
  config.kernels = kernels[static_cast<size_t>(r.below(static_cast<int>(kernels.size())))];
  // Emulation takes twenty times as long as portable kernels, which are not the fastest.
  if (config.kernels == "cuda_emulated" && !r.chance(0.02)) {
    config.kernels = available_kernels().back();
  }
  config.threads = r.chance(0.95) ? 1 : r.between(2, 3);
  config.context_length_tokens = kContextTokens;
  config.page_size_tokens = r.one_of({1, 2, 4, 4, 4, 16, 64});
  config.total_tokens_max =
      std::max(config.page_size_tokens * 2, r.between(96, r.chance(0.5) ? 150 : 400));
  config.running_max = r.between(1, 8);
  config.queued_max = r.one_of({1, 3, 256});
  config.chunked_prefill_tokens = r.one_of({1, 2, 3, 7, 16, 64, 512});
  config.schedule_policy = r.one_of({"fcfs", "lpm", "lpm", "priority"});
  config.aging_period = r.between(1, 5);
  config.radix_cache = r.chance(0.85);
  config.snapshot_interval_tokens = r.between(1, 40);
  config.jump_forward = r.chance(0.95);
  config.draft_tokens_max = r.one_of({1, 3, 32, 32});
  config.measure_drafts = false;  // a seed's run must not depend on the clock
  config.snapshot_fraction = r.one_of({0.0, 0.0, 0.3});  // 0: a single snapshot
  return config;
}

void add_dry(Random& r, SamplingParams& p) {
  p.dry_multiplier = static_cast<float>(4 * r.real());
  p.dry_allowed_length = r.below(3);
  if (r.chance(0.3)) p.dry_penalty_last_n = r.below(30);
  DryBreakers breakers;
  for (int i = r.below(6); i > 0; --i) breakers[r.below(kVocabulary)].push_back({});
  if (r.chance(0.3)) breakers[r.below(kVocabulary)].push_back({r.below(kVocabulary)});
  p.dry_breakers = std::make_shared<DryBreakers>(std::move(breakers));
}

SamplingParams random_sampling(Random& r) {
  SamplingParams p;
  p.temperature = r.chance(0.3) ? 0 : static_cast<float>(0.2 + 2 * r.real());
  if (r.chance(0.3)) p.top_k = r.between(1, 40);
  if (r.chance(0.3)) p.top_p = static_cast<float>(0.1 + 0.9 * r.real());
  if (r.chance(0.2)) p.min_p = static_cast<float>(0.3 * r.real());
  if (r.chance(0.2)) p.frequency_penalty = static_cast<float>(4 * r.real() - 2);
  if (r.chance(0.2)) p.presence_penalty = static_cast<float>(4 * r.real() - 2);
  if (r.chance(0.2)) p.repetition_penalty = static_cast<float>(0.5 + r.real());
  if (p.has_penalties() && r.chance(0.5)) p.repeat_last_n = r.below(30);
  if (r.chance(0.1)) p.typical_p = static_cast<float>(0.2 + 0.8 * r.real());
  if (r.chance(0.1)) {
    p.xtc_probability = static_cast<float>(r.real());
    p.xtc_threshold = static_cast<float>(0.2 * r.real());
  }
  if (r.chance(0.2)) add_dry(r, p);
  if (r.chance(0.1)) p.logit_bias = {{r.below(kVocabulary), static_cast<float>(9 * r.real())}};
  p.seed = static_cast<uint64_t>(r.below(3));
  p.sample_index = static_cast<uint32_t>(r.below(2));
  return p;
}

// Prompts are cut from one text, so that many share a beginning and some differ.
std::vector<TokenId> random_prompt(Random& r, const std::vector<TokenId>& text) {
  std::vector<TokenId> prompt(text.begin(), text.begin() + r.between(0, 40));
  for (int own = r.between(prompt.empty() ? 1 : 0, 12); own > 0; --own) {
    prompt.push_back(r.below(kVocabulary));
  }
  return prompt;
}

Arrival random_arrival(Random& r, int index, const EngineConfig& config,
                       const std::vector<TokenId>& text) {
  Arrival arrival;
  GenerateRequest& request = arrival.request;
  request.prompt = random_prompt(r, text);
  request.sampling = random_sampling(r);
  request.options.max_new_tokens = r.chance(0.1) ? 0 : r.chance(0.1) ? 1000 : r.between(1, 24);
  if (r.chance(0.2)) request.options.stop_token_ids = {r.below(kVocabulary), r.below(kVocabulary)};
  if (r.chance(0.3)) request.options.top_logprobs = r.between(1, 6);
  if (r.chance(0.2)) {
    request.options.prompt_logprobs_begin = r.between(0, static_cast<int>(request.prompt.size()));
  }
  if (r.chance(0.1)) {
    arrival.constraint_modulus = r.between(2, 9);
  } else if (r.chance(0.4)) {
    arrival.constraint_seed = static_cast<uint64_t>(r.between(1, 1000));
  }
  arrival.step = r.chance(0.5) ? 0 : r.below(40);
  if (index > 0 && r.chance(0.4)) {
    arrival.after = r.below(index);
    arrival.continues = r.chance(0.6);
  }
  if (config.schedule_policy == "priority") request.options.priority = r.between(-2, 2);
  request.options.client = std::array{"", "a", "b"}[static_cast<size_t>(index % 3)];
  if (r.chance(0.1)) request.options.cache_salt = "salt";
  if (r.chance(0.1)) request.options.extra_key = "key";
  if (r.chance(0.1))
    request.options.min_new_tokens =
        r.between(0, static_cast<int>(std::min<int64_t>(request.options.max_new_tokens, 12)));
  if (r.chance(0.1))
    request.options.logprob_token_ids = {r.below(kVocabulary), r.below(kVocabulary)};
  if (r.chance(0.15)) arrival.cancel_after_tokens = r.between(1, 10);
  if (r.chance(0.15)) arrival.cancel_step = r.below(50);
  if (r.chance(0.3)) arrival.holds = true;
  if (arrival.holds && r.chance(0.6)) arrival.release_step = r.below(80);
  return arrival;
}

}  // namespace

std::shared_ptr<TokenConstraint> Arrival::fresh_constraint() const {
  if (constraint_modulus > 0) return std::make_shared<Stripes>(constraint_modulus);
  if (constraint_seed > 0) return std::make_shared<Chance>(constraint_seed, kVocabulary);
  return nullptr;
}

bool has_device_memory(const EngineConfig& config) {
  return std::ranges::count(available_kernels(), config.kernels) == 0;
}

namespace {

bool is_golden(const EngineConfig& config, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names, [&](std::string_view name) {
    return config.model_path.ends_with("/" + std::string(name));
  });
}

// Steps that follow unverified drafts, where the host does not divide rows by their positions.
void run_ahead(uint64_t seed, EngineConfig& config) {
  if (config.moba_block_tokens > 0) return;
  config.scheduler_steps = 1 + static_cast<int>(5 * uniform(seed, 6, 1));
  if (config.scheduler_steps > 1 && uniform(seed, 7, 1) < 0.7) config.draft_topk = 1;
}

// An EAGLE-3 head of random weights, for a model of random weights. False: none.
bool add_head(uint64_t seed, EngineConfig& config) {
  if (!is_golden(config, {"llama2-mha", "qwen3-tied", "mistral-window", "gpt-oss", "gemma3",
                          "qwen3-next", "lfm2-moe", "minimax-m2", "mistral4", "glm-moe-dsa"}) ||
      uniform(seed, 5, 1) > 0.25) {
    return false;
  }
  config.drafters.emplace_back("eagle3");
  config.load_format = "dummy";
  config.draft_model_path =
      random_head_folder(config.model_path.substr(config.model_path.rfind('/') + 1));
  run_ahead(seed, config);
  return true;
}

// An EAGLE-3 head, or an MTP layer if the family has one and the checkpoint may lack it; and a
// draft model, often the model itself, which is mostly right.
void add_models(uint64_t seed, Workload& workload) {
  EngineConfig& config = workload.config;
  if (add_head(seed, config)) return;
  if (is_golden(config, {"deepseek-v3", "longcat-flash", "ling3-tiny", "deepseek-v32"}) &&
      uniform(seed, 2, 1) < 0.4) {
    config.drafters.emplace_back("mtp");
    config.load_format = "dummy";
    run_ahead(seed, config);
  }
  if (uniform(seed, 3, 1) > 0.12) return;
  config.drafters.emplace_back("draft");
  config.draft_model_path = config.model_path;
  double other = uniform(seed, 4, 1);
  if (other < 0.5) return;
  config.draft_model_path =
      workload.hybrid ? hybrid_folder(1 + static_cast<int>(30 * (other - 0.5)) % kLayerSets)
      : other < 0.7   ? golden_folder("mistral-window")
      : other < 0.8   ? golden_folder("llama32-tied-sharded")
                      : golden_folder("qwen3-next");
}

// Ranks divide the model, as threads.
void add_ranks(uint64_t seed, EngineConfig& config) {
  bool divisible = is_golden(
      config, {"llama2-mha", "mistral-window", "qwen3-tied", "gpt-oss", "gemma3", "minimax-m2",
               "qwen3-next", "deepseek-v3", "longcat-flash", "ling3-tiny", "kimi-linear"});
  if (divisible && uniform(seed, 8, 1) < 0.05) config.tp_size = 2;
}

// Two adapters of that model, of other weights.
const std::vector<AdapterSource>& adapters_of(const std::string& golden) {
  static std::map<std::string, std::vector<AdapterSource>> all;
  static std::deque<TemporaryFolder> folders;
  std::vector<AdapterSource>& adapters = all[golden];
  for (int seed : {1, 2}) {
    if (adapters.size() == 2) break;
    std::string path = TestAdapter(golden, seed).save(folders.emplace_back());
    adapters.push_back({std::to_string(seed), path});
  }
  return adapters;
}

void add_adapters(uint64_t seed, Workload& workload) {
  EngineConfig& config = workload.config;
  if (!is_golden(config, {"qwen3-tied", "qwen3-next"}) || config.tp_size > 1) return;
  if (uniform(seed, 9, 1) > 0.3) return;
  config.adapters = adapters_of(config.model_path.substr(config.model_path.rfind('/') + 1));
  for (size_t i = 0; i < workload.arrivals.size(); ++i) {
    auto choice = static_cast<size_t>(3 * uniform(seed, i, 7));
    if (choice > 0) workload.arrivals[i].request.options.adapter = config.adapters[choice - 1].name;
  }
}

// Drawn independently of everything else.
void add_drafters(uint64_t seed, Workload& workload) {
  double choice = uniform(seed, 1, 1);
  EngineConfig& config = workload.config;
  workload.liar = choice < 0.4;
  if (choice < 0.05 || (choice > 0.4 && choice < 0.7)) config.drafters.emplace_back("ngram");
  if (choice > 0.6 && choice < 0.8) config.drafters.emplace_back("suffix");
  config.draft_tokens_min = choice > 0.75 ? 2 : 1;
  config.draft_topk = 1 + static_cast<int>(4 * uniform(seed, 2, 1));
  config.ngram_tokens_max = choice > 0.5 ? 32 : 2;
  add_models(seed, workload);
  uint64_t i = 0;
  for (Arrival& arrival : workload.arrivals) {
    GenerationOptions& options = arrival.request.options;
    if (uniform(seed, ++i, 2) < 0.1) options.draft_tokens_max = static_cast<int>(i % 4);
    if (uniform(seed, i, 3) > 0.1) continue;
    for (uint64_t j = 0; j < i * 3; ++j) {
      options.prediction_token_ids.push_back(static_cast<TokenId>(kVocabulary * uniform(i, j, 4)));
    }
  }
}

}  // namespace

Workload random_workload(uint64_t seed, bool made_up) {
  Random r(seed);
  Workload workload{.config = {}, .hybrid = r.chance(0.5) || made_up, .arrivals = {}};
  workload.config = random_config(r, workload.hybrid, made_up);
  workload.config.overlap_schedule = uniform(seed, 0, 1) < 0.5;
  std::vector<TokenId> text;
  for (int i = 0; i < 40; ++i) text.push_back(r.below(kVocabulary));
  for (int i = r.between(2, 14); i > 0; --i) {
    std::vector<Arrival>& arrivals = workload.arrivals;
    if (!arrivals.empty() && r.chance(0.15)) {  // another sample of the same prompt
      arrivals.push_back(arrivals[static_cast<size_t>(r.below(static_cast<int>(arrivals.size())))]);
      ++arrivals.back().request.sampling.sample_index;
      continue;
    }
    arrivals.push_back(random_arrival(r, static_cast<int>(arrivals.size()), workload.config, text));
  }
  add_drafters(seed, workload);
  if (!has_device_memory(workload.config)) add_ranks(seed, workload.config);
  add_adapters(seed, workload);
  return workload;
}

void add_storage(uint64_t seed, Workload& workload) {
  EngineConfig& config = workload.config;
  config.tp_size = 1;
  config.radix_cache = true;
  auto draw = [&, i = uint64_t{0}](int end) mutable {
    return static_cast<size_t>(end * uniform(seed, i++, 5));
  };
  constexpr std::array<const char*, 3> kWrites = {"write_back", "write_through",
                                                  "write_through_selective"};
  constexpr std::array<const char*, 3> kPrefetches = {"timeout", "best_effort", "wait_complete"};
  config.cache_storage.backend = "disk";
  config.cache_storage.write_policy = kWrites[draw(3)];
  config.cache_storage.prefetch_policy = kPrefetches[draw(3)];
  config.cache_storage.prefetch_tokens_min = static_cast<int64_t>(1 + draw(9));
  if (draw(3) == 0) config.cache_storage.prefetch_timeout_s = 1e-4;
  config.cache_storage.flush_s = draw(4) == 0 ? 0 : 1;
  if (draw(4) == 0) workload.flush_every = static_cast<int>(5 + draw(30));
  if (draw(8) == 0) workload.clear_every = static_cast<int>(10 + draw(30));
  if (has_device_memory(config)) config.cache_storage.host_ratio = 1 + 2 * uniform(seed, 100, 5);
}

}  // namespace banyan::test
