#include "hub/settings.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/space.h"

namespace banyan {
namespace {

constexpr size_t kNameBytesMax = 96;  // of an owner or a model, as the hub allows

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_on(std::string value) {
  std::ranges::transform(value, value.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
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

// One word of a name: letters, digits, '-', '_' and '.', neither of the last two pairs in a row,
// nor '-' or '.' at an end.
bool is_plain_name(std::string_view name) {
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
  // A line break would begin another header.
  if (settings.token.find_first_of("\r\n") != std::string::npos) settings.token.clear();
  settings.offline =
      is_on(environment("HF_HUB_OFFLINE")) || is_on(environment("TRANSFORMERS_OFFLINE"));
  return settings;
}

Result<HubModel> HubModel::parse(std::string_view text) {
  HubModel model;
  size_t at = text.find('@');
  std::string_view repository = text.substr(0, at);
  if (at != text.npos) model.revision = text.substr(at + 1);
  size_t slash = std::min(repository.find('/'), repository.size());
  model.owner = repository.substr(0, slash);
  model.name = repository.substr(std::min(slash + 1, repository.size()));
  if (!is_plain_name(model.owner) || !is_plain_name(model.name)) {
    return invalid_argument("{} is not the name of a model on a hub, as OWNER/NAME", quote(text));
  }
  if (!is_plain_revision(model.revision)) {
    return invalid_argument("{} is not a branch, a tag or a commit", quote(model.revision));
  }
  return model;
}

}  // namespace banyan
