#include "engine/startup/weight_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace banyan {
namespace {

bool is_index(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

// "model.layers.3.mlp" -> "model.layers.*.mlp"
std::string without_indices(std::string_view name) {
  std::string pattern;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find('.', begin), name.size());
    std::string_view word = name.substr(begin, end - begin);
    pattern += begin == 0 ? "" : ".";
    pattern += is_index(word) ? "*" : word;
    begin = end + 1;
  }
  return pattern;
}

// The names of the parts, with their common scope stated once.
std::string names_of(const std::vector<MatrixRecord::Part>& parts) {
  std::string first = without_indices(parts[0].name);
  if (parts.size() == 1) return first;
  size_t scope = first.rfind('.') + 1;  // 0 without a dot
  std::string names = first.substr(0, scope) + "{" + first.substr(scope);
  for (size_t i = 1; i < parts.size(); ++i) {
    std::string name = without_indices(parts[i].name);
    names += ",";
    names += name.starts_with(first.substr(0, scope)) ? name.substr(scope) : name;
  }
  return names + "}";
}

std::string stored_as(const std::vector<MatrixRecord::Part>& parts) {
  std::vector<std::string_view> kinds;
  for (const MatrixRecord::Part& part : parts) {
    if (std::ranges::find(kinds, part.stored) == kinds.end()) kinds.push_back(part.stored);
  }
  return fmt::format("{}", fmt::join(kinds, " and "));
}

std::string in_memory(const MatrixRecord& record) {
  std::string name(record.form().format->name);
  if (!record.form().format->quantised) return name;
  if (record.form().group == record.matrix.columns) return name + ", a scale for each row";
  return name + fmt::format(", groups of {}", record.form().group);
}

bool is_exact(const MatrixRecord& record) {
  return std::ranges::all_of(record.parts, [&](const MatrixRecord::Part& part) {
    return part.keeps_codes || part.stored == record.form().format->name ||
           (record.form().format->name == "f32");
  });
}

}  // namespace

std::vector<WeightSummary> summarise_weights(std::span<const MatrixRecord> matrices) {
  std::vector<WeightSummary> summaries;
  std::unordered_map<std::string, size_t> index;
  for (const MatrixRecord& record : matrices) {
    WeightSummary one{.names = names_of(record.parts),
                      .matrices = 1,
                      .stored = stored_as(record.parts),
                      .memory = in_memory(record),
                      .format = std::string(record.form().format->name),
                      .exact = is_exact(record),
                      .share = record.share,
                      .bytes = static_cast<int64_t>(record.matrix.bytes)};
    for (const MatrixRecord::Part& part : record.parts)
      one.parameters += part.rows * record.matrix.columns;
    std::string key = one.names + '\n' + one.stored + '\n' + one.memory;
    auto [it, added] = index.emplace(std::move(key), summaries.size());
    if (added) {
      summaries.push_back(std::move(one));
      continue;
    }
    WeightSummary& all = summaries[it->second];
    all.matrices += 1;
    all.parameters += one.parameters;
    all.bytes += one.bytes;
  }
  return summaries;
}

}  // namespace banyan
