#include "cli/options/model_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/quote.h"
#include "cli/options/checks.h"
#include "cli/options/speculation_options.h"

namespace banyan::cli {
namespace {

const std::vector<std::string> kLogLevels = {"trace", "debug",    "info", "warn",
                                             "error", "critical", "off"};

constexpr const char* kModelText =
    "Model folder, GGUF file, or OWNER/NAME or OWNER/NAME:QUANTIZATION on a Hugging Face hub";

using Word = std::optional<std::string>;

// Assigns the words without a dash to MODEL and to the word after it. With --model, the first word
// goes to the latter.
void settle_words(const CLI::App& app, std::string& model, Word first, Word second,
                  const std::optional<NextWord>& next) {
  const CLI::Option* config = app.get_config_ptr();  // MODEL overrides `model` of the file
  bool from_option = !model.empty() && !(first && config != nullptr && config->count() > 0);
  if (!from_option && first) model = *std::exchange(first, std::nullopt);
  if (model.empty()) {
    throw CLI::ValidationError(
        fmt::format("no model is given: use `{} MODEL` or --model", app.get_name()));
  }
  if (!second) second = std::exchange(first, std::nullopt);
  if (first) {
    throw CLI::ValidationError(fmt::format("unexpected argument {}, since --model {} is given",
                                           quote(*first), quote(model)));
  }
  if (!second) return;
  if (!next) {
    throw CLI::ValidationError(
        fmt::format("unexpected argument {}; the model is {}", quote(*second), model));
  }
  *next->value = std::move(second);
}

void add_weight_options(CLI::App& app, EngineConfig& config) {
  app.add_option("--quantization,-q", config.quantization,
                 "Quantize the weights while they load: int8, int4, fp8, mxfp4; int4:64 sets the "
                 "group size. weight-only keeps stored integer weights and 16-bit activations")
      ->type_name("NAME");
  OptionGroup group(app, "Weights");
  add_quantization_overrides(app, config.quantization_overrides);
  app.add_option("--dtype", config.dtype, "Type of the weights in memory; auto: as stored")
      ->transform(one_of({"auto", "bf16", "f16", "f32"}, float_aliases()))
      ->type_name("NAME");
  app.add_option("--gguf", config.gguf_path,
                 "Load the weights from this GGUF file, config and tokenizer from MODEL")
      ->type_name("FILE");
  app.add_option_function<std::string>(
         "--load-format",
         [&config](const std::string& name) {
           config.load_format = name == "dummy" ? name : "auto";
         },
         "dummy: seeded random weights; needs only config.json")
      ->transform(one_of({"auto", "dummy"}, {"safetensors", "gguf"}))
      ->default_str(config.load_format)
      ->type_name("NAME");
}

void add_embedding_options(CLI::App& app, EngineConfig& config) {
  app.add_option("--pooling", config.pooling,
                 "Which hidden state is a text's embedding: the last token's, or the mean of all; "
                 "auto: as the model's files say, else the last")
      ->transform(one_of({"auto", "last", "mean"}))
      ->type_name("NAME");
  app.add_flag("--is-embedding", config.embedding_model,
               "The model is made for embeddings, though its files do not say so: documents are "
               "ranked by the cosine of embeddings");
  app.add_flag("--embedding,--embeddings", config.embedding_model, "")->group("");
  for (const char* name : {"--runner", "--task", "--convert"}) {  // vLLM's
    add_hidden_choice(app, name, {"auto", "none", "generate", "pooling", "embed"},
                      [&config](const std::string& value) {
                        config.embedding_model |= value == "pooling" || value == "embed";
                      });
  }
}

void add_text_options(CLI::App& app, EngineConfig& config) {
  OptionGroup group(app, "Text");
  app.add_option("--chat-template,--chat-template-file", config.chat_template,
                 "Jinja file or text that replaces the model's chat template")
      ->default_str("")
      ->type_name("FILE");
  app.add_option("--sampling-defaults", config.sampling_defaults,
                 "Where parameters come from that a request leaves out; model: its "
                 "generation_config.json, openai: temperature 1 and no filters")
      ->transform(one_of({"model", "openai"}))
      ->type_name("NAME");
  add_hidden_choice(app, "--generation-config", {"auto", "vllm"},
                    [&config](const std::string& name) {
                      config.sampling_defaults = name == "vllm" ? "openai" : "model";
                    });
  add_embedding_options(app, config);
}

// llama.cpp's types of keys and of values.
void add_cache_type_options(CLI::App& app, EngineConfig& config) {
  auto given = std::make_shared<std::string>();
  for (const char* name : {"--cache-type-k", "--cache-type-v"}) {
    add_hidden_choice(
        app, name, {"f32", "f16", "bf16", "q8_0"},
        [&app, &config, name, given](const std::string& type) {
          const CLI::Option* own = app.get_option_no_throw("--kv-cache-dtype");
          if (own != nullptr && own->count() > 0) {
            throw CLI::ValidationError(name, "leave it out where --kv-cache-dtype is given");
          }
          if (!given->empty() && *given != type) {
            throw CLI::ValidationError(
                name, fmt::format("{}: keys and values are kept alike, and the other is {}", type,
                                  *given));
          }
          if (given->empty()) {
            config.kv_cache_dtype = type == "q8_0" ? "int8" : type;
            spdlog::info("{} {}: keys and values are kept as {}", name, type,
                         config.kv_cache_dtype);
          }
          *given = type;
        });
  }
}

// A GPU has one kernel table, which --device selects.
void add_device_option(CLI::App& app, EngineConfig& config, const CLI::Option& kernels) {
  app.add_option_function<std::string>(
         "--device",
         [&config, &kernels](const std::string& device) {
           if (device == "cpu" || device == "none" || device == "auto") return;
           if (kernels.count() > 0) {
             throw CLI::ValidationError("--device",
                                        "cuda has kernels of its own: leave --kernels out");
           }
           config.kernels = "cuda";
         },
         "Where the model runs; cuda: an NVIDIA GPU of the Hopper line, in a build with "
         "BANYAN_CUDA")
      ->transform(one_of({"cpu", "cuda"}, {"none", "auto", "cuda0", "cuda:0"}))
      ->type_name("NAME");
}

void add_compute_options(CLI::App& app, EngineConfig& config, const ModelUse& use) {
  add_threads_option(
      app, config.threads,
      "Compute threads; 0: one per processor, or fewer while other programs use them");
  OptionGroup group(app, "Computing");
  if (use.computes) {
    app.add_option("--tp-size,--tensor-parallel-size,--tp", config.tp_size,
                   "Ranks that divide the model: threads of this process with an equal part of "
                   "its processors each, as for the sockets of a machine, or the processes that "
                   "mpirun has started")
        ->type_name("N");
    app.add_flag("!--no-pin-threads", config.pin_threads, "Do not pin threads to processors");
  }
  CLI::Option* kernels =
      app.add_option("--kernels", config.kernels,
                     "Instruction set; auto: the fastest on this processor for the model's "
                     "weights, which inspect explains; fenced: slow, to debug the engine's use of "
                     "device memory; cuda_emulated: slower, to debug the CUDA kernels without a "
                     "GPU")
          ->transform(one_of({"auto", "portable", "avx2", "avx512", "avx512_vnni", "avx512_bf16",
                              "amx", "fenced", "cuda_emulated"}))
          ->type_name("NAME");
  add_device_option(app, config, *kernels);
  app.add_option(
         "--mla-prefill", config.mla_prefill,
         "How MLA models compute prompts; expanded: less arithmetic for long prompts, but more "
         "memory, and generated text is not reused from the cache")
      ->transform(one_of({"absorbed", "expanded"}))
      ->type_name("NAME");
  app.add_option("--moba-block-size", config.moba_block_tokens,
                 "Tokens per MoBA block, instead of the model's own; with --moba-topk, a model "
                 "without MoBA also selects blocks of keys, as an experiment")
      ->check(between(int64_t{1}, int64_t{1} << 20))
      ->type_name("N");
  app.add_option("--moba-topk", config.moba_top_k,
                 "Number of blocks that a token attends to with MoBA, including its own")
      ->check(between(int64_t{1}, int64_t{1} << 12))
      ->type_name("N");
  add_choice_flag(app, "--moba-decode,!--no-moba-decode", config.moba_decode,
                  "MoBA: generated tokens also select blocks, or attend to all keys [as "
                  "config.json's use_moba_decode says]");
  app.add_option("--kv-cache-dtype", config.kv_cache_dtype,
                 "Format of cached keys and values; fp8_e4m3 (or fp8) and int8: half the memory of "
                 "bf16, with rounding; auto: as the weights")
      ->transform(
          one_of({"auto", "bf16", "f16", "f32", "fp8_e4m3", "fp8", "int8"}, float_aliases()))
      ->type_name("NAME");
  app.add_option("--index-dtype", config.index_dtype,
                 "Format of the keys of an index that chooses tokens (DeepSeek V3.2, GLM-5); fp8: "
                 "half the memory of bf16, but it may choose other tokens; auto: as keys and "
                 "values, if those are not quantised")
      ->transform(one_of({"auto", "bf16", "fp8", "fp8_e4m3"}))
      ->type_name("NAME");
  if (!use.generates) return;
  add_speculation_options(app, config);
}

}  // namespace

CLI::Option* add_model_argument(CLI::App& app, std::string& model, std::optional<NextWord> next) {
  auto first = std::make_shared<Word>(), second = std::make_shared<Word>();
  CLI::Option* argument =
      app.add_option_function<std::string>(
             "MODEL", [first](const std::string& word) { *first = word; }, kModelText)
          ->type_name("MODEL");
  if (next) {
    app.add_option_function<std::string>(
           next->name, [second](const std::string& word) { *second = word; }, next->description)
        ->type_name(next->name);
  }
  app.add_option("--model,-m,--model-path,--hf-repo", model, "The same as MODEL")
      ->type_name("MODEL");
  auto revision = std::make_shared<std::string>();
  OptionGroup group(app, "Download");
  app.add_option("--revision", *revision, "Branch, tag or commit of a model on a hub [main]")
      ->default_str("")
      ->type_name("NAME");
  app.add_option_function<std::string>(
         "--hf-token",
         [](const std::string& token) { ::setenv("HF_TOKEN", token.c_str(), /*overwrite=*/1); },
         "Token for a private or gated model on a hub; `ps` shows it, unlike the environment's "
         "HF_TOKEN [HF_TOKEN]")
      ->default_str("")
      ->type_name("TOKEN");
  auto file = std::make_shared<std::string>();
  app.add_option("--hf-file", *file, "GGUF file of a model on a hub; the same as MODEL:FILE")
      ->default_str("")
      ->type_name("FILE");
  app.parse_complete_callback([&app, &model, first, second, next, revision, file] {
    settle_words(app, model, *first, *second, next);
    if (!file->empty()) model += ":" + *file;
    if (!revision->empty()) model += "@" + *revision;
  });
  return argument;
}

void add_log_level(CLI::App& app, const std::string& level) {
  OptionGroup group(app, "Messages");
  app.add_option_function<std::string>(
         "--log-level",
         [](const std::string& name) { spdlog::set_level(spdlog::level::from_str(name)); },
         "Lowest level of messages on stderr")
      ->transform(one_of(kLogLevels, {"warning"}))
      ->default_str(level)
      ->type_name("LEVEL");
}

void add_threads_option(CLI::App& app, int& threads, const char* description) {
  app.add_option("--threads,-t", threads, description)->check(between(0, 1024))->type_name("N");
}

void add_quantization_overrides(CLI::App& app, std::vector<std::string>& overrides) {
  app.add_option("--quantization-override", overrides,
                 "Format (also none, bf16, f16, f32) of matrices whose name matches REGEX; "
                 "may be repeated, the last match wins")
      ->allow_extra_args(false)
      ->default_str("")
      ->type_name("REGEX=NAME");
}

void add_model_options(CLI::App& app, EngineConfig& config, const ModelUse& use) {
  if (use.word) {
    add_model_argument(app, config.model_path, use.next);
  } else {
    app.add_option("--model,-m,--model-path,--hf-repo", config.model_path, kModelText)
        ->type_name("MODEL");
  }
  add_weight_options(app, config);
  add_text_options(app, config);
  add_cache_type_options(app, config);
  app.add_option("--context-length,-c,--ctx-size,--max-model-len", config.context_length_tokens,
                 "Maximum length of prompt and output together, in tokens, such as 8192 or 8K; 0: "
                 "the model's")
      ->transform(with_multiples())
      ->transform({[](std::string& text) -> std::string {  // vLLM's: what the memory holds
                     if (text == "-1" || text == "auto") text = "0";
                     return "";
                   },
                   ""})
      ->check(between(int64_t{0}, int64_t{1} << 31))
      ->type_name("N");
  add_compute_options(app, config, use);
  add_log_level(app, use.log_level);
}

}  // namespace banyan::cli
