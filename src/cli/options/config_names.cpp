#include "cli/options/config_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace banyan::cli {
namespace {

struct ConfigName {
  std::string_view name;
  const char* option;
};

// Those whose option is not the name with dashes. Of several options, the one that was typed.
constexpr std::array kNames = std::to_array<ConfigName>({
    {"memory_fraction", "--mem-fraction-static"},
    {"page_size_tokens", "--page-size"},
    {"running_max", "--max-running-requests"},
    {"queued_max", "--max-queued-requests"},
    {"chunked_prefill_tokens", "--chunked-prefill-size"},
    {"chunked_prefill_tokens", "--ubatch-size"},
    {"total_tokens_max", "--max-total-tokens"},
    {"context_length_tokens", "--context-length"},
    {"top_logprobs_max", "--max-logprobs"},
    {"snapshot_fraction", "--recurrent-state-memory-ratio"},
    {"scheduler_steps", "--num-scheduler-steps"},
    {"draft_tokens_max", "--draft-max"},
    {"draft_tokens_min", "--draft-min"},
    {"draft_topk", "--speculative-eagle-topk"},
    {"draft_vocabulary", "--speculative-draft-vocabulary"},
    {"ngram_tokens_min", "--speculative-ngram-min-match-window-size"},
    {"ngram_tokens_max", "--speculative-ngram-max-match-window-size"},
    {"moba_block_tokens", "--moba-block-size"},
    {"moba_top_k", "--moba-topk"},
    {"moba_decode", "--moba-decode"},
    {"max_new_tokens", "--max-tokens"},
    {"connections_max", "--max-connections"},
    {"body_bytes_max", "--max-request-bytes"},
    {"responses_max", "--max-stored-responses"},
    {"grammar_timeout_s", "--grammar-timeout"},
    {"response_ttl_s", "--response-ttl"},
    {"watchdog_timeout_s", "--watchdog-timeout"},
    {"drain_delay_s", "--drain-delay"},
    {"drain_timeout_s", "--drain-timeout"},
});

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' ||
         c == '/';
}

// The word that set the option, or "".
std::string typed(const CLI::Option& option, std::span<const std::string> words) {
  for (const std::string& word : words) {
    std::string name = word.substr(0, word.find('='));
    if (name.starts_with('-') && option.check_name(name)) return name;
  }
  return "";
}

std::string option_of(std::string_view name, const CLI::App& app,
                      std::span<const std::string> words) {
  std::string first;
  for (const ConfigName& known : kNames) {
    if (known.name != name) continue;
    const CLI::Option* option = app.get_option_no_throw(known.option);
    if (option == nullptr) continue;
    if (std::string word = typed(*option, words); !word.empty()) return word;
    if (first.empty()) first = known.option;
  }
  return first;
}

// The option whose name is that of the value with dashes.
std::string option_like(std::string name, const CLI::App& app, std::span<const std::string> words) {
  std::ranges::replace(name, '_', '-');
  const CLI::Option* option = app.get_option_no_throw("--" + name);
  if (option == nullptr) return "";
  std::string word = typed(*option, words);
  return word.empty() ? "--" + name : word;
}

}  // namespace

std::string with_option_names(const std::string& message, const CLI::App& app,
                              std::span<const std::string> words) {
  std::string out;
  for (size_t begin = 0; begin < message.size();) {
    size_t end = begin;
    while (end < message.size() && in_name(message[end])) ++end;
    std::string name = message.substr(begin, end - begin);
    std::string option = option_of(name, app, words);
    bool says_value = begin == 0 && message.substr(end).starts_with(" is ");
    if (option.empty() && says_value) option = option_like(name, app, words);
    out += option.empty() ? name : option;
    if (end < message.size()) out += message[end++];
    begin = end;
  }
  return out;
}

}  // namespace banyan::cli
