#include "hub/settings.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/lower.h"
#include "base/quote.h"
#include "base/space.h"
#include "hub/plain_path.h"

namespace banyan {
namespace {

constexpr size_t kNameBytesMax = 96;  // of an owner or model name, as on the hub

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_on(const std::string& text) {
  std::string value = lower_ascii(text);
  constexpr std::array kOn = {"1", "on", "yes", "true"};
  return std::ranges::find(kOn, value) != kOn.end();
}

std::string home_folder() {
  if (std::string home = environment("HF_HOME"); !home.empty()) return home;
  if (std::string cache = environment("XDG_CACHE_HOME"); !cache.empty()) {
    return cache + "/huggingface";
  }
  std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/huggingface";
}

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// One word of a name: letters, digits, '-', '_' and '.'. No "--" or "..", and no '-' or '.' at
// either end.
bool is_plain_name_of_model(std::string_view name) {
  auto plain = [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; };
  return !name.empty() && name.size() <= kNameBytesMax && std::ranges::all_of(name, plain) &&
         name.find("--") == name.npos && name.find("..") == name.npos && name.front() != '.' &&
         name.front() != '-' && name.back() != '.' && name.back() != '-';
}

bool is_plain_revision(std::string_view revision) {
  auto plain = [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.' || c == '/';
  };
  return !revision.empty() && revision.size() <= 200 && std::ranges::all_of(revision, plain) &&
         revision.find("..") == revision.npos && revision.find("//") == revision.npos &&
         is_letter_or_digit(revision.front()) && is_letter_or_digit(revision.back());
}

// Removes the host that llama.cpp, ollama and browsers put in front.
std::string_view without_host(std::string_view text) {
  std::string low = lower_ascii(text);
  size_t scheme = low.starts_with("https://") ? 8 : 0;
  for (std::string_view host : {"hf.co/", "huggingface.co/"}) {
    if (low.compare(scheme, host.size(), host) == 0) return text.substr(scheme + host.size());
  }
  return text;
}

// ollama's tag for a model without one.
bool is_latest(std::string_view tag) {
  return lower_ascii(tag) == "latest";
}

}  // namespace

HubSettings hub_settings() {
  HubSettings settings;
  std::string home = home_folder();
  settings.endpoint = environment("HF_ENDPOINT");
  if (settings.endpoint.empty()) settings.endpoint = "https://huggingface.co";
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  settings.cache = environment("HF_HUB_CACHE");
  if (settings.cache.empty()) settings.cache = environment("HUGGINGFACE_HUB_CACHE");
  if (settings.cache.empty() && !home.empty()) settings.cache = home + "/hub";
  settings.token = environment("HF_TOKEN");
  if (settings.token.empty()) settings.token = environment("HUGGING_FACE_HUB_TOKEN");
  std::string file = environment("HF_TOKEN_PATH");
  if (file.empty() && !home.empty()) file = home + "/token";
  if (settings.token.empty() && !file.empty()) {
    settings.token = read_file(file, 4096).value_or("");
  }
  settings.token = std::string(trim_space(settings.token));
  // A line break would inject another header.
  if (settings.token.find_first_of("\r\n") != std::string::npos) settings.token.clear();
  settings.offline =
      is_on(environment("HF_HUB_OFFLINE")) || is_on(environment("TRANSFORMERS_OFFLINE"));
  return settings;
}

// Parses what follows OWNER/NAME.
Status HubModel::read_mark(char mark, std::string_view value) {
  if (mark == '@') {
    revision = value;
    if (is_plain_revision(value)) return {};
    return invalid_argument("{} is not a branch, a tag or a commit", quote(value));
  }
  if (!is_plain_path(value)) {
    return invalid_argument("{} is neither a quantization nor a GGUF file", quote(value));
  }
  gguf = is_latest(value) ? "" : value;
  return {};
}

Result<HubModel> HubModel::parse(std::string_view text) {
  HubModel model;
  std::string_view rest = without_host(text);
  model.with_host = rest.size() < text.size();
  size_t end = std::min(rest.find_first_of("@:"), rest.size());
  std::string_view repository = rest.substr(0, end);
  rest.remove_prefix(end);
  size_t slash = std::min(repository.find('/'), repository.size());
  model.owner = repository.substr(0, slash);
  model.name = repository.substr(std::min(slash + 1, repository.size()));
  if (!is_plain_name_of_model(model.owner) || !is_plain_name_of_model(model.name)) {
    return invalid_argument("{} is not a model name of the form OWNER/NAME", quote(text));
  }
  std::string marks;
  while (!rest.empty()) {
    char mark = rest.front();
    if (marks.find(mark) != marks.npos) {
      return invalid_argument("{} has {} twice; one {} is enough", quote(text), quote({&mark, 1}),
                              mark == '@' ? "revision" : "GGUF file");
    }
    marks += mark;
    end = std::min(rest.find_first_of("@:", 1), rest.size());
    TRY(model.read_mark(mark, rest.substr(1, end - 1)));
    rest.remove_prefix(end);
  }
  return model;
}

}  // namespace banyan
