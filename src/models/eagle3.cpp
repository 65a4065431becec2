#include "models/eagle3.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/signed.h"
#include "models/config/common.h"
#include "models/config/keys.h"
#include "models/ffn.h"
#include "ops/columns.h"
#include "weights/convert.h"
#include "weights/files/checkpoint.h"
#include "weights/files/config_file.h"

namespace banyan {
namespace {

constexpr std::array<std::string_view, 4> kArchitectures = {
    "LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM", "Eagle3Speculator", "Eagle3DraftModel"};
// Of tokens that a head cannot draft.
constexpr float kNeverDrafted = -1e30f;
constexpr int64_t kDraftTokensMax = 1 << 24;

// ---- config.json -----------------------------------------------------------------------------

struct HeadConfig {
  DecoderConfig decoder;  // of the head: hidden, eps, rope; the model's vocabulary
  GqaConfig attention;
  DenseConfig mlp;
  int64_t target_hidden = 0, draft_vocabulary = 0;
  std::vector<int64_t> layers;  // of the model whose inputs it reads; empty: the usual ones
  bool norm_before_fc = false, norm_before_residual = false, norm_output = false;
};

// Lists that begin with 1 name layers by their output, others by their input.
std::vector<int64_t> read_layers(const ConfigFile& config, const ConfigFile& eagle) {
  constexpr const char* kKey = "eagle_aux_hidden_state_layer_ids";
  const ConfigFile& has_key = eagle.has(kKey) ? eagle : config;
  std::vector<int64_t> layers = has_key.integers(kKey, 0, kLayersMax);
  if (!layers.empty() && layers.front() == 1) {
    for (int64_t& layer : layers) ++layer;
  }
  config.expect(std::ranges::is_sorted(layers), "{} is not in ascending order", kKey);
  if (auto count = config.maybe_integer("num_aux_hidden_states", 1, kLayersMax)) {
    int64_t listed = layers.empty() ? 3 : std::ssize(layers);
    config.expect(*count == listed, "num_aux_hidden_states {} is not {}, the number of layers",
                  *count, listed);
  }
  return layers;
}

// Files of vLLM's speculators have the layer's keys in an object of their own.
HeadConfig read_config(const ConfigFile& config, const Builder& b) {
  constexpr const char* kLayer = "transformer_layer_config";
  ConfigFile layer = config.is_object(kLayer) ? config.object(kLayer) : config;
  ConfigFile eagle = config.object("eagle_config");
  HeadConfig c{.decoder = read_decoder(layer, b)};
  DecoderConfig& decoder = c.decoder;
  config.expect(decoder.layers == 1, "num_hidden_layers = {} is not supported in a head; one is",
                decoder.layers);
  c.attention = read_gqa(layer, decoder, {});
  c.attention.input = 2 * decoder.hidden;
  c.attention.qkv_bias = c.attention.output_bias = layer.flag_or("attention_bias", false);
  read_rotation(layer, c.attention.head_dim, {.context_tokens = 2048}, decoder);
  c.mlp = {.hidden = decoder.hidden,
           .intermediate = layer.integer("intermediate_size", 1, kWidthMax),
           .bias = layer.flag_or("mlp_bias", false)};
  c.target_hidden = config.integer_or("target_hidden_size", decoder.hidden, 1, kWidthMax);
  c.draft_vocabulary =
      config.integer_or("draft_vocab_size", decoder.vocabulary, 1, kDraftTokensMax);
  config.expect(c.draft_vocabulary <= decoder.vocabulary, "draft_vocab_size {} of vocab_size {}",
                c.draft_vocabulary, decoder.vocabulary);
  c.layers = read_layers(config, eagle);
  for (const ConfigFile& file : {config, eagle}) {
    c.norm_before_fc |= file.flag_or("norm_before_fc", false);
    c.norm_before_residual |= file.flag_or("norm_before_residual", false);
    c.norm_output |= file.flag_or("norm_output", false);
    file.only("use_aux_norm", {false});
    file.only("fc_norm", {false});
  }
  for (const char* key :
       {"use_aux_hidden_state", "use_input_layernorm_in_first_layer", "use_last_layernorm"}) {
    eagle.only(key, {true});
  }
  eagle.only("use_mtp_layernorm", {false});
  eagle.only("parallel_draft_step", {1});
  config.ignore_object("speculators_config");
  config.ignore({"speculators_model_type", "speculators_version", "pretraining_tp"});
  return c;
}

// The layers whose inputs the head reads.
std::vector<int> layers_of(const ConfigFile& config, const HeadConfig& c, int64_t count) {
  std::vector<int64_t> layers = c.layers;
  if (layers.empty()) layers = {2, count / 2, count - 3};
  bool fits = layers.front() >= 0 && layers.back() <= count && std::ranges::is_sorted(layers);
  config.expect(fits, "it reads layers {} of a model that has {}", fmt::join(layers, ", "), count);
  return {layers.begin(), layers.end()};
}

// What the head was trained for must be this model.
void check_target(const ConfigFile& config, const HeadConfig& c, const ModelInfo& model) {
  config.expect(c.target_hidden == model.hidden,
                "the head is for hidden states of {} columns; those of {} have {}", c.target_hidden,
                model.architecture, model.hidden);
  config.expect(c.decoder.vocabulary == model.vocabulary,
                "the head is for a vocabulary of {} tokens; that of {} has {}",
                c.decoder.vocabulary, model.architecture, model.vocabulary);
}

// ---- The vocabulary --------------------------------------------------------------------------

// Spreads logits over the draft vocabulary to the model's.
class DraftVocabulary {
 public:
  // `tokens` has the model's token of each draft token. A queue of null is a dry load.
  DraftVocabulary(const Builder& b, const DeviceQueue* queue, std::span<const int32_t> tokens,
                  int64_t vocabulary)
      : vocabulary_(vocabulary), never_(b.constant({1, 1}, std::array{kNeverDrafted})) {
    std::vector<int32_t> columns(as_size(vocabulary), static_cast<int32_t>(tokens.size()));
    for (size_t i = 0; i < tokens.size(); ++i) {
      columns[as_size(tokens[i])] = static_cast<int32_t>(i);
    }
    if (queue == nullptr) return;
    columns_ = DeviceBlock(*queue, columns.size() * sizeof(int32_t));
    queue->upload(columns_.data(), columns.data(), columns_.size());
    queue->synchronise();  // before `columns` ends
  }

  // [T, draft tokens] -> [T, vocabulary]
  Tensor operator()(Step& s, Tensor logits) const {
    int64_t rows = logits.dim(0), own = logits.dim(1);
    Tensor padded = s.allocate({rows, own + 1});
    s.copy(logits, padded.columns(0, own));
    for (int64_t row = 0; row < rows; ++row) {
      s.copy(never_, padded.rows(row, 1).columns(own, 1));
    }
    const auto* columns = reinterpret_cast<const int32_t*>(columns_.data());
    return select_columns(s, padded, columns, vocabulary_);
  }

 private:
  int64_t vocabulary_;
  Tensor never_;         // [1, 1], the logit of tokens without a column
  DeviceBlock columns_;  // [vocabulary] column of each token; the one after the last: none
};

// The model's token of each draft token, from d2t: it has what to add to the draft token.
Result<std::vector<int32_t>> read_tokens(const WeightSource* source, const HeadConfig& c) {
  std::vector<int32_t> tokens(as_size(c.draft_vocabulary));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i);
  const TensorInfo* d2t = source != nullptr ? source->find("d2t") : nullptr;
  if (d2t == nullptr) {
    if (source == nullptr || c.draft_vocabulary == c.decoder.vocabulary) return tokens;
    return corrupt("d2t is missing: it says which tokens the {} of the draft vocabulary are",
                   c.draft_vocabulary);
  }
  if (d2t->dtype != DType::kI64 || d2t->shape != std::vector{c.draft_vocabulary}) {
    return corrupt("d2t is {} [{}], not I64 [{}]", dtype_name(d2t->dtype),
                   fmt::join(d2t->shape, ", "), c.draft_vocabulary);
  }
  std::vector<int64_t> offsets(tokens.size());
  TRY(source->read(*d2t, 0, std::as_writable_bytes(std::span(offsets))));
  std::vector<bool> taken(as_size(c.decoder.vocabulary));
  for (size_t i = 0; i < tokens.size(); ++i) {
    bool fits = offsets[i] > -kDraftTokensMax && offsets[i] < kDraftTokensMax;
    int64_t token = fits ? tokens[i] + offsets[i] : -1;
    fits = token >= 0 && token < c.decoder.vocabulary && !at(taken, token);
    if (!fits) return corrupt("d2t[{}] = {} is no token, or that of another one", i, offsets[i]);
    at(taken, token) = true;
    tokens[i] = static_cast<int32_t>(token);
  }
  return tokens;
}

// ---- The head --------------------------------------------------------------------------------

class Eagle3Model final : public Model {
 public:
  // `b` is the scope of the head's checkpoint, `layer` that of its layer. `own_head`: it has an
  // output head of its own.
  Eagle3Model(const Builder& b, const Builder& layer, const HeadConfig& c, std::vector<int> layers,
              std::unique_ptr<Model> target, bool own_head,
              std::optional<DraftVocabulary> vocabulary)
      : Model(target->info()),
        target_(std::move(target)),
        layers_(std::move(layers)),
        hidden_(c.decoder.hidden),
        features_(std::ssize(layers_) * c.target_hidden),
        norm_before_residual_(c.norm_before_residual),
        norm_output_(c.norm_output),
        join_(b, {{"fc", hidden_}}, features_, b.has("fc.bias")),
        token_norm_(layer / "input_layernorm", hidden_, c.decoder.eps),
        hidden_norm_(layer / "hidden_norm", hidden_, c.decoder.eps),
        rope_(b, c.decoder.rope),
        attention_(layer / "self_attn", c.attention),
        mlp_(layer, residual_of(c.decoder), {.in = "post_attention_layernorm"},
             Ffn(layer / "mlp", c.mlp)),
        norm_(b / "norm", hidden_, c.decoder.eps),
        vocabulary_(std::move(vocabulary)) {
    if (c.norm_before_fc) input_norm_.emplace(b / "input_norm", features_, c.decoder.eps);
    if (b.has("embed_tokens.weight")) {
      embedding_ = b.matrix({"embed_tokens", c.decoder.vocabulary}, hidden_, MatrixUse::kLookUp);
    }
    if (own_head) head_ = Linear(b, {{"lm_head", c.draft_vocabulary}}, hidden_, false);
  }

  // A caller that asks for layers of its own gets these and no features.
  Outputs forward(Step& s) const override {
    if (!s.auxiliary_layers.empty()) {
      Outputs outputs = target_->forward(s);
      outputs.features = {};
      return outputs;
    }
    s.auxiliary_layers = layers_;
    Outputs outputs = target_->forward(s);
    s.auxiliary_layers = {};
    outputs.features = std::exchange(outputs.auxiliary, {});
    return outputs;
  }
  Tensor logits(Step& s, Tensor hidden) const override { return target_->logits(s, hidden); }
  Tensor embed(Step& s) const override { return target_->embed(s); }

  bool predicts() const override { return true; }
  int64_t predicted_width() const override { return hidden_; }
  Tensor predict(Step& s, Tensor from) const override {
    int64_t rows = from.dim(0);
    Tensor g = from.dim(1) == features_ ? joined(s, from) : from;
    Tensor embedded =
        embedding_ ? gather_rows(s, *embedding_, known_tokens(s), rows) : target_->embed(s);
    Tensor normed = hidden_norm_(s, g), x = s.allocate({rows, 2 * hidden_});
    s.copy(token_norm_(s, embedded), x.columns(0, hidden_));
    s.copy(normed, x.columns(hidden_, hidden_));
    Tensor residual = norm_before_residual_ ? normed : g;
    Tensor m = mlp_(s, add(s, residual, attention_(s, x, rope_(s))));
    return norm_output_ ? norm_(s, m) : m;
  }
  Tensor predicted_logits(Step& s, Tensor predicted) const override {
    Tensor normed = norm_output_ ? predicted : norm_(s, predicted);
    if (!head_) return target_->logits(s, normed);
    Tensor logits = (*head_)(s, normed);
    return vocabulary_ ? (*vocabulary_)(s, logits) : logits;
  }

 private:
  Tensor joined(Step& s, Tensor features) const {
    return join_(s, input_norm_ ? (*input_norm_)(s, features) : features);
  }

  std::unique_ptr<Model> target_;
  std::vector<int> layers_;
  int64_t hidden_, features_;
  bool norm_before_residual_, norm_output_;
  std::optional<RmsNorm> input_norm_;
  Linear join_;
  RmsNorm token_norm_, hidden_norm_;
  Rope rope_;
  GqaAttention attention_;
  Residual<Ffn> mlp_;
  RmsNorm norm_;
  std::optional<PackedMatrix> embedding_;  // none: the model's
  std::optional<Linear> head_;             // none: the model's
  std::optional<DraftVocabulary> vocabulary_;
};

// Reads the head's config, declares its weights and puts it around `target`.
Result<std::unique_ptr<Model>> load_head(const ConfigFile& config, const Builder& b,
                                         const LoadOptions& options,
                                         std::unique_ptr<Model> target) {
  HeadConfig c = read_config(config, b);
  check_target(config, c, target->info());
  std::vector<int> layers = layers_of(config, c, std::ssize(target->info().layers));
  bool own_embedding = b.has("embed_tokens.weight");
  config.expect(own_embedding || c.decoder.hidden == c.target_hidden,
                "embed_tokens is missing, and the model's has {} columns where the head needs {}",
                c.target_hidden, c.decoder.hidden);
  bool part = c.draft_vocabulary != c.decoder.vocabulary;
  bool own_head = part || options.source == nullptr || b.has("lm_head.weight");
  if (!own_head && own_embedding) config.only("tie_word_embeddings", {false});
  refuse_variants(config);
  TRY(config.finish());
  std::vector<int32_t> tokens = TRY(read_tokens(options.source, c));
  std::optional<DraftVocabulary> vocabulary;
  if (part || b.has("d2t")) {
    vocabulary.emplace(b, options.dry ? nullptr : options.queue, tokens, c.decoder.vocabulary);
  }
  for (const char* name : {"d2t", "t2d"}) b.ignore(name);
  bool numbered = b.has("layers.0.hidden_norm.weight");
  Builder layer = numbered ? b / "layers" / 0 : b / "midlayer";
  return std::make_unique<Eagle3Model>(b, layer, c, std::move(layers), std::move(target), own_head,
                                       std::move(vocabulary));
}

Status add_head(const EngineConfig& config, LoadOptions options, LoadedModel& loaded) {
  ConfigFile file = TRY(ConfigFile::load(config.draft_model_path));
  std::string architecture = TRY(file.architecture());
  if (!is_eagle3(architecture)) {
    return unsupported("config.json: architecture \"{}\" is not an EAGLE-3 head; supported: {}",
                       architecture, fmt::join(kArchitectures, ", "));
  }
  std::optional<Checkpoint> checkpoint;
  if (options.source != nullptr) checkpoint = TRY(Checkpoint::open(config.draft_model_path));
  options.source = checkpoint ? &*checkpoint : nullptr;
  options.quant = TRY(read_quant_config(file));
  QuantizationPlan plan = TRY(QuantizationPlan::create(config.draft_quantization, {}));
  options.plan = &plan;
  WeightLoader loader(options);
  Builder b = Builder(loader).without_adapters();
  for (const StateSpec& state : loaded.states) b.state(state);  // the head's ids come after
  loaded.model = TRY(load_head(file, b, options, std::move(loaded.model)));
  TRY(loader.finish());
  for (const std::string& key : unknown_keys(file)) {
    if (options.dry) spdlog::warn("{}: key {} has no effect", config.draft_model_path, quote(key));
  }
  loaded.head_weights = loader.take_store();
  loaded.states = loader.take_states();
  loaded.counts.weight_bytes += loader.counts().weight_bytes;
  for (MatrixRecord& matrix : loader.take_matrices()) {
    for (MatrixRecord::Part& of : matrix.parts) of.name = "eagle3." + of.name;
    loaded.matrices.push_back(std::move(matrix));
  }
  for (const auto& [key, value] : file.values()) loaded.config_values["eagle3." + key] = value;
  return {};
}

}  // namespace

bool is_eagle3(std::string_view architecture) {
  return std::ranges::find(kArchitectures, architecture) != kArchitectures.end();
}

Status add_eagle3(const EngineConfig& config, LoadOptions options, LoadedModel& loaded) {
  Status added = add_head(config, std::move(options), loaded);
  if (added) return {};
  return make_error(added.error().code,
                    fmt::format("EAGLE-3 head {} for {}: {}", config.draft_model_path,
                                config.model_path, added.error().message));
}

Result<std::optional<Eagle3Info>> inspect_eagle3(const std::string& folder) {
  Result<ConfigFile> found = ConfigFile::load(folder);
  Result<std::string> architecture = found ? found->architecture() : "";
  if (!architecture || !is_eagle3(*architecture)) return std::nullopt;
  const ConfigFile& file = *found;
  Checkpoint checkpoint = TRY(Checkpoint::open(folder));
  WeightLoader loader({.source = &checkpoint, .dry = true});
  Builder b(loader);
  HeadConfig c = read_config(file, b);
  TRY(file.finish());
  TRY(read_tokens(&checkpoint, c));
  Eagle3Info info{.architecture = *architecture,
                  .hidden = c.decoder.hidden,
                  .target_hidden = c.target_hidden,
                  .vocabulary = c.decoder.vocabulary,
                  .draft_vocabulary = c.draft_vocabulary,
                  .layers = c.layers,
                  .own_embedding = b.has("embed_tokens.weight")};
  for (const TensorInfo* tensor : checkpoint.tensors()) {
    if (!is_float_dtype(tensor->dtype)) continue;
    int64_t count = 1;
    for (int64_t extent : tensor->shape) count *= extent;
    info.parameters += count;
    info.weight_bytes += tensor->bytes.size();
  }
  return info;
}

}  // namespace banyan
