#include "hub/gguf_choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/lower.h"
#include "base/quote.h"
#include "hub/plain_path.h"

namespace banyan {
namespace {

constexpr std::string_view kExtension = ".gguf";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view folder_of(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "" : path.substr(0, slash);
}

bool ends_with_word(std::string_view text, std::string_view word) {
  if (!text.ends_with(word)) return false;
  size_t before = text.size() - word.size();
  return before == 0 || text[before - 1] == '-' || text[before - 1] == '.' ||
         text[before - 1] == '/';
}

struct Part {
  std::string_view stem;
  int number = 1, count = 1;
};

// Parses "STEM-00002-of-00003".
Part part_of(std::string_view name) {
  constexpr std::string_view kForm = "-00000-of-00000";
  if (name.size() <= kForm.size()) return {name};
  std::string_view end = name.substr(name.size() - kForm.size());
  auto fits = [](char c, char form) { return form == '0' ? is_digit(c) : c == form; };
  if (!std::ranges::equal(end, kForm, fits)) return {name};
  auto number = [](std::string_view digits) {
    int value = 0;
    for (char c : digits) value = value * 10 + (c - '0');
    return value;
  };
  return {name.substr(0, name.size() - end.size()), number(end.substr(1, 5)),
          number(end.substr(10))};
}

// "q4_k_m", "iq4_xs", "tq1_0", "bf16", "mxfp4_moe", in lower case.
bool is_quantization(const std::string& word) {
  bool plain = std::ranges::all_of(
      word, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || c == '_'; });
  if (!plain) return false;
  for (std::string_view start : {"q", "iq", "tq"}) {
    bool numbered = word.starts_with(start) && word.size() > start.size();
    if (numbered && is_digit(word[start.size()])) return true;
  }
  constexpr std::array kWhole = {"bf16", "f16", "f32", "fp16", "fp32", "fp8", "mxfp4", "nvfp4"};
  return std::ranges::any_of(kWhole, [&](std::string_view name) {
    return word.starts_with(name) && (word.size() == name.size() || word[name.size()] == '_');
  });
}

// The quantization at the end of a name, with a preceding "UD-", since dynamic ones differ from
// plain ones.
std::string quantization_of(std::string_view stem) {
  std::string_view name = last_part(stem);
  std::string low = lower_ascii(name);
  for (size_t at = 0;;) {
    if (is_quantization(low.substr(at))) {
      bool dynamic = ends_with_word(low.substr(0, at), "ud-");
      return std::string(name.substr(dynamic ? at - 3 : at));
    }
    at = low.find_first_of("-._", at);
    if (at++ == low.npos) return "";
  }
}

bool is_of_model(std::string_view file) {
  if (!file.ends_with(kExtension) || !is_plain_path(file)) return false;
  std::string name = lower_ascii(last_part(file));
  return name.find("mmproj") == name.npos && name.find("imatrix") == name.npos;
}

bool is_file_of(const GgufModel& model, std::string_view tag) {
  auto same = [&](std::string_view name) {
    std::string path = lower_ascii(name);
    return path == tag || last_part(path) == tag;
  };
  return same(model.name) || same(model.name + std::string(kExtension)) ||
         std::ranges::any_of(model.files, same);
}

// The models found by the first kind of match that finds any.
std::vector<GgufModel> find_models(const std::vector<GgufModel>& models, std::string_view text) {
  std::string tag = lower_ascii(text);
  const std::array<std::function<bool(const GgufModel&)>, 4> kinds = {
      [&](const GgufModel& model) { return is_file_of(model, tag); },
      [&](const GgufModel& model) { return lower_ascii(model.quantization) == tag; },
      [&](const GgufModel& model) { return ends_with_word(lower_ascii(model.name), tag); },
      [&](const GgufModel& model) {
        return ends_with_word(lower_ascii(folder_of(model.name)), tag);
      }};
  for (const auto& matches : kinds) {
    std::vector<GgufModel> found;
    std::ranges::copy_if(models, std::back_inserter(found), matches);
    if (!found.empty()) return found;
  }
  return {};
}

std::string list_labels(const std::vector<GgufModel>& models) {
  std::set<std::string> labels;
  for (const GgufModel& model : models) labels.insert(model.label());
  return fmt::format("{}", fmt::join(labels, ", "));
}

Result<GgufModel> only_one(const std::vector<GgufModel>& found, std::string_view repository) {
  if (found.size() == 1) return found.front();
  std::vector<std::string> files;
  for (const GgufModel& model : found) files.push_back(model.files.front());
  return invalid_argument("{} matches several GGUF models: {}; pick one as {}:FILE", repository,
                          fmt::join(files, ", "), repository);
}

Result<GgufModel> choose(const std::vector<GgufModel>& models, std::string_view tag,
                         std::string_view repository) {
  if (!tag.empty()) {
    std::vector<GgufModel> found = find_models(models, tag);
    if (!found.empty()) return only_one(found, repository);
    return not_found("{} has no GGUF file {}; it has: {}", repository, quote(tag),
                     list_labels(models));
  }
  for (const char* usual : {"q4_k_m", "q4_0", "q8_0"}) {
    std::vector<GgufModel> found = find_models(models, usual);
    if (!found.empty()) return only_one(found, repository);
  }
  auto known = [](const GgufModel& model) { return is_known_quantization(model.quantization); };
  auto first = std::ranges::find_if(models, known);
  return first == models.end() ? models.front() : *first;
}

}  // namespace

std::vector<GgufModel> gguf_models(const std::set<std::string>& files) {
  std::map<std::pair<std::string, int>, std::map<int, std::string>> parts;
  for (const std::string& file : files) {
    if (!is_of_model(file)) continue;
    std::string_view name = file;
    Part part = part_of(name.substr(0, name.size() - kExtension.size()));
    parts[{std::string(part.stem), part.count}][part.number] = file;
  }
  std::vector<GgufModel> models;
  for (const auto& [key, numbered] : parts) {
    GgufModel model{.name = key.first, .quantization = quantization_of(key.first)};
    for (const auto& [number, file] : numbered) model.files.push_back(file);
    model.whole = std::cmp_equal(numbered.size(), key.second) && numbered.begin()->first == 1 &&
                  numbered.rbegin()->first == key.second;
    models.push_back(std::move(model));
  }
  return models;
}

Result<GgufModel> choose_gguf(const std::set<std::string>& files, std::string_view tag,
                              std::string_view repository) {
  std::vector<GgufModel> models = gguf_models(files);
  if (models.empty()) {
    return unsupported(
        "{} has no GGUF file of a model{}", repository,
        has_safetensors(files) ? fmt::format("; {} alone means its safetensors", repository) : "");
  }
  GgufModel chosen = TRY(choose(models, tag, repository));
  if (chosen.whole) return chosen;
  return corrupt("{} has only some of the parts of {}: {}", repository, chosen.name,
                 fmt::join(chosen.files, ", "));
}

bool is_known_quantization(std::string_view quantization) {
  std::string name = lower_ascii(quantization);
  if (name.starts_with("ud-")) name.erase(0, 3);
  return std::ranges::none_of(std::array{"iq1", "iq2", "iq3", "tq", "nvfp4", "q1"},
                              [&](const char* start) { return name.starts_with(start); });
}

bool has_safetensors(const std::set<std::string>& files) {
  return files.contains("config.json") &&
         (files.contains("model.safetensors") || files.contains("model.safetensors.index.json"));
}

}  // namespace banyan
