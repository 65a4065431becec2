#include "cli/options/speculation_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/quote.h"
#include "cli/options/checks.h"

namespace banyan::cli {
namespace {

// Other engines' names of drafters in lower case, and the name here; "": none.
constexpr std::array kMethods = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"none", ""},
    {"ngram", "ngram"},
    {"ngram-simple", "ngram"},
    {"prompt_lookup", "ngram"},
    {"suffix", "suffix"},
    {"mtp", "mtp"},
    {"nextn", "mtp"},
    {"eagle", "mtp"},  // SGLang's name for a model's own layer as well
    {"deepseek_mtp", "mtp"},
    {"longcat_flash_mtp", "mtp"},
    {"draft-mtp", "mtp"},
    {"eagle3", "eagle3"},
    {"draft-eagle3", "eagle3"},
    {"draft", "draft"},
    {"standalone", "draft"},
    {"draft_model", "draft"},
    {"draft-simple", "draft"},
});
constexpr std::string_view kSupported =
    "NGRAM, SUFFIX, NEXTN, EAGLE3, STANDALONE, or several with commas";

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

std::optional<std::string_view> find_method(std::string_view name) {
  std::string small = in_small_letters(name);
  for (auto [method, drafter] : kMethods) {
    if (method == small) return drafter;
  }
  return std::nullopt;
}

void set_methods(const char* option, const std::string& names, EngineConfig& config) {
  config.drafters.clear();
  for (size_t begin = 0; begin <= names.size();) {
    size_t end = std::min(names.find(',', begin), names.size());
    std::string name = names.substr(begin, end - begin);
    auto drafter = find_method(name);
    if (!drafter) {
      throw CLI::ValidationError(
          option, fmt::format("{} is not supported; supported: {}", quote(name), kSupported));
    }
    if (!drafter->empty()) config.drafters.emplace_back(*drafter);
    begin = end + 1;
  }
}

// {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}
void read_speculative_config(const std::string& text, EngineConfig& config) {
  const char* option = "--speculative-config";
  auto fail = [&](std::string why) { throw CLI::ValidationError(option, std::move(why)); };
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) fail("it must be a JSON object, like {\"method\": \"ngram\"}");
  auto count = [&](const std::string& key, const Json& value) {
    bool fits = value.is_number_integer() && value >= 0 && value <= 1024;
    if (!fits) fail(fmt::format("{} must be an integer from 0 to 1024", key));
    return value.get<int>();
  };
  auto text_of = [&](const std::string& key, const Json& value) {
    if (!value.is_string()) fail(fmt::format("{} must be a string", key));
    return value.get<std::string>();
  };
  if (!json.contains("method")) fail("\"method\" is missing");
  for (const auto& [key, value] : json.items()) {
    if (key == "method") {
      set_methods(option, text_of(key, value), config);
    } else if (key == "num_speculative_tokens") {
      config.draft_tokens_max = count(key, value);
    } else if (key == "prompt_lookup_max") {
      config.ngram_tokens_max = count(key, value);
    } else if (key == "prompt_lookup_min") {
      config.ngram_tokens_min = count(key, value);
    } else if (key == "model") {
      config.draft_model_path = text_of(key, value);
    } else if (key == "quantization") {
      config.draft_quantization = text_of(key, value);
    } else {
      fail(
          fmt::format("{} is not supported; supported: method, num_speculative_tokens, "
                      "prompt_lookup_min, prompt_lookup_max, model, quantization",
                      quote(key)));
    }
  }
}

// How long drafts are, and how far steps run ahead of their verification.
void add_draft_lengths(CLI::App& app, EngineConfig& config) {
  app.add_option("--draft-max,--spec-draft-n-max,--draft-n,--speculative-num-draft-tokens",
                 config.draft_tokens_max, "Maximum draft tokens of a sequence per step; 0: none")
      ->check(between(0, 1024))
      ->type_name("N");
  app.add_option("--draft-min,--spec-draft-n-min,--draft-n-min", config.draft_tokens_min,
                 "Skip drafts shorter than this, unless a grammar forces the tokens")
      ->check(between(0, 1024))
      ->type_name("N");
  app.add_option("--speculative-eagle-topk,--speculative-ngram-max-bfs-breadth", config.draft_topk,
                 "SUFFIX, NEXTN, EAGLE3, STANDALONE: draft a tree, with up to N tokens for the "
                 "same position, where the others are likely enough; 1: chains. NGRAM, and models "
                 "with recurrent layers, have chains")
      ->check(between(1, 8))
      ->type_name("N");
  app.add_option("--speculative-ngram-min-match-window-size", config.ngram_tokens_min,
                 "NGRAM: minimum number of last tokens that must match")
      ->check(between(2, 32))
      ->type_name("N");
  app.add_option("--speculative-ngram-max-match-window-size", config.ngram_tokens_max,
                 "NGRAM: among matches of at least this length, use the latest")
      ->check(between(2, 32))
      ->type_name("N");
  app.add_option(
         "--num-scheduler-steps", config.scheduler_steps,
         "NEXTN, EAGLE3: steps in flight, each launched before the drafts of the one before "
         "it are verified; same output, faster only on devices")
      ->check(between(1, 16))
      ->type_name("N");
}

}  // namespace

void add_speculation_options(CLI::App& app, EngineConfig& config) {
  app.add_flag_callback(
      "--disable-jump-forward", [&config] { config.jump_forward = false; },
      "Run a step for every token even if a grammar leaves no choice; the output is the same");
  for (const char* name : {"--speculative-algorithm", "--spec-type"}) {
    auto* option = app.add_option_function<std::string>(
        name, [name, &config](const std::string& value) { set_methods(name, value, config); },
        fmt::format(
            "Speculative decoding: draft tokens and keep those that the model would draw; the "
            "output does not change: {}. NGRAM drafts what followed the last tokens "
            "earlier in the text, SUFFIX also what followed them in the prefix cache, NEXTN "
            "uses the model's own multi-token prediction layer (MTP), EAGLE3 a head trained for "
            "the model and STANDALONE a smaller model with the same vocabulary "
            "(--speculative-draft-model-path)",
            kSupported));
    option->default_str("")->type_name("NAME");
    if (std::string_view(name) == "--spec-type") option->group("");
  }
  app.add_option_function<std::string>(
         "--speculative-config",
         [&config](const std::string& text) { read_speculative_config(text, config); },
         "The same as JSON, with vLLM's names: method, num_speculative_tokens, prompt_lookup_min, "
         "prompt_lookup_max, model, quantization")
      ->default_str("")
      ->type_name("JSON");
  app.add_option("--speculative-draft-model-path,--model-draft,--spec-draft-model",
                 config.draft_model_path,
                 "STANDALONE, EAGLE3: folder of the draft model or head, or OWNER/NAME on a "
                 "Hugging Face hub")
      ->default_str("")
      ->type_name("MODEL");
  app.add_option("--speculative-draft-model-quantization", config.draft_quantization,
                 "STANDALONE, EAGLE3: quantize the draft model's or head's weights, as "
                 "--quantization does")
      ->type_name("NAME");
  app.add_option("--speculative-draft-filter", config.draft_filter_path,
                 "Safetensors file of a trained filter (C2T) that says which draft tokens are "
                 "worth verifying, in place of what is learned while running; "
                 "tools/train_draft_filter.py trains one")
      ->default_str("")
      ->type_name("FILE");
  app.add_option("--speculative-draft-vocabulary", config.draft_vocabulary,
                 "NEXTN: draft only the first N tokens of the vocabulary, which are the frequent "
                 "ones; 0: all")
      ->check(between(0, 1 << 24))
      ->type_name("N");
  add_draft_lengths(app, config);
}

}  // namespace banyan::cli
