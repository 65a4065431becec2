#include "client/dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "base/signed.h"

namespace banyan {
namespace {

constexpr int64_t kMooncakeBlockTokens = 512;
constexpr int64_t kPromptTokensMax = int64_t{1} << 24;
constexpr double kTimestampMax_ms = 1e12;

// Separate random streams: the purpose is in the upper bits of the counter.
enum Draw : uint64_t { kTokens, kInputLength, kOutputLength, kOrder, kArrival };
constexpr uint64_t kDrawShift = 56;
// Keeps the groups' streams apart from those of the questions.
constexpr uint64_t kGroupStreams = uint64_t{1} << 32;

double draw(uint64_t seed, Draw what, uint64_t index) {
  return uniform(seed, index, uint64_t{what} << kDrawShift);
}

int64_t draw_length(uint64_t seed, Draw what, uint64_t index, int64_t length, double ratio) {
  auto least = std::max<int64_t>(1, std::llround(ratio * length));
  double range = length - least + 1;
  return least + static_cast<int64_t>(draw(seed, what, index) * range);
}

Result<int64_t> integer_at(const Json& object, const char* key, int64_t min, int64_t max,
                           const std::string& where) {
  auto found = object.find(key);
  if (found == object.end()) return corrupt("{}: {} is missing", where, key);
  if (!found->is_number_integer() || *found < min || *found > max) {
    return corrupt("{}: {} is {}; it must be between {} and {}", where, key, found->dump(), min,
                   max);
  }
  return found->get<int64_t>();
}

Result<BenchPrompt> read_trace_line(const Json& object, const std::string& where) {
  BenchPrompt prompt;
  auto time = object.find("timestamp");
  if (time == object.end() || !time->is_number() || *time < 0 || *time > kTimestampMax_ms) {
    return corrupt("{}: timestamp is not a time in milliseconds", where);
  }
  prompt.arrival_s = time->get<double>() / 1000;
  int64_t left = TRY(integer_at(object, "input_length", 1, kPromptTokensMax, where));
  prompt.output_tokens = TRY(integer_at(object, "output_length", 1, kPromptTokensMax, where));
  auto ids = object.find("hash_ids");
  int64_t blocks = (left + kMooncakeBlockTokens - 1) / kMooncakeBlockTokens;
  if (ids == object.end() || !ids->is_array() || std::ssize(*ids) != blocks) {
    return corrupt("{}: hash_ids is not a list of {} ids, one for each {} tokens", where, blocks,
                   kMooncakeBlockTokens);
  }
  for (const Json& id : *ids) {
    if (!id.is_number_unsigned() || id > uint64_t{UINT32_MAX}) {
      return corrupt("{}: hash_ids has {}; its entries must be between 0 and {}", where, id.dump(),
                     UINT32_MAX);
    }
    int64_t tokens = std::min(left, kMooncakeBlockTokens);
    prompt.parts.push_back({id.get<uint64_t>(), tokens});
    left -= tokens;
  }
  return prompt;
}

Result<BenchPrompt> read_conversation(const Json& object, const std::string& where) {
  BenchPrompt prompt;
  auto turns = object.find("turns");
  if (turns == object.end() || !turns->is_array() || turns->empty()) {
    return corrupt("{}: turns must be a list of strings", where);
  }
  for (const Json& turn : *turns) {
    if (!turn.is_string()) return corrupt("{}: turns has {}, not a string", where, turn.dump());
    prompt.turns.push_back(turn.get<std::string>());
  }
  return prompt;
}

template <class ReadLine>
Result<Dataset> read_lines(const std::string& path, size_t prompts_max, ReadLine read_line) {
  std::string text = TRY(read_file(path));
  Dataset dataset;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size() && dataset.prompts.size() < prompts_max;) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    std::string where = fmt::format("{}:{}", path, ++number);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    Json object = TRY(parse_json(line, where));
    if (!object.is_object()) return corrupt("{}: the line is not an object", where);
    dataset.prompts.push_back(TRY(read_line(object, where)));
  }
  if (dataset.prompts.empty()) return corrupt("{}: the file contains no requests", path);
  return dataset;
}

}  // namespace

int64_t BenchPrompt::prompt_tokens() const {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [](int64_t sum, const PromptPart& part) { return sum + part.tokens; });
}

size_t Dataset::drop_longer_than(int64_t tokens_max) {
  return std::erase_if(prompts, [&](const BenchPrompt& prompt) {
    return prompt.prompt_tokens() + prompt.output_tokens > tokens_max;
  });
}

void append_token_ids(const BenchPrompt& prompt, uint64_t seed, int64_t vocabulary,
                      const std::function<void(TokenId)>& append) {
  for (const PromptPart& part : prompt.parts) {
    std::array<uint32_t, 4> random = {};
    for (int64_t i = 0; i < part.tokens; ++i) {
      uint64_t index = i;
      if (index % 4 == 0) random = philox(seed, index / 4, part.stream);
      append(static_cast<TokenId>(random[index % 4] % static_cast<uint64_t>(vocabulary)));
    }
  }
}

std::string prompt_words(const BenchPrompt& prompt, uint64_t seed) {
  constexpr std::array<std::string_view, 16> kWords = {"the", "a",   "and", "to",  "was", "he",
                                                       "she", "it",  "in",  "day", "big", "saw",
                                                       "had", "for", "you", "not"};
  std::string text;
  append_token_ids(prompt, seed, std::ssize(kWords), [&](TokenId id) {
    if (!text.empty()) text += ' ';
    text += at(kWords, id);
  });
  return text;
}

Dataset random_dataset(const RandomShape& shape, uint64_t seed) {
  Dataset dataset{.seed = seed};
  for (uint64_t i = 0; i < static_cast<uint64_t>(shape.prompts); ++i) {
    int64_t input = draw_length(seed, kInputLength, i, shape.input_len, shape.range_ratio);
    int64_t output = draw_length(seed, kOutputLength, i, shape.output_len, shape.range_ratio);
    dataset.prompts.push_back({.parts = {{i, input}}, .output_tokens = output});
  }
  return dataset;
}

Dataset shared_prefix_dataset(const GroupedShape& shape, uint64_t seed) {
  Dataset dataset{.seed = seed};
  uint64_t groups = shape.groups;
  uint64_t count = groups * static_cast<uint64_t>(shape.prompts_per_group);
  for (uint64_t i = 0; i < count; ++i) {
    dataset.prompts.push_back(
        {.parts = {{kGroupStreams + i % groups, shape.system_prompt_len}, {i, shape.question_len}},
         .output_tokens = shape.output_len});
  }
  for (uint64_t i = count; i > 1; --i) {  // Fisher-Yates shuffle
    auto other = static_cast<size_t>(draw(seed, kOrder, i) * i);
    std::swap(dataset.prompts[i - 1], dataset.prompts[other]);
  }
  return dataset;
}

Result<Dataset> read_mooncake(const std::string& path, size_t prompts_max, uint64_t seed) {
  Dataset dataset = TRY(read_lines(path, prompts_max, read_trace_line));
  dataset.seed = seed;
  dataset.timed = true;
  std::ranges::stable_sort(dataset.prompts, {}, &BenchPrompt::arrival_s);
  double begin_s = dataset.prompts.front().arrival_s;
  for (BenchPrompt& prompt : dataset.prompts) prompt.arrival_s -= begin_s;
  return dataset;
}

Result<Dataset> read_conversations(const std::string& path, size_t prompts_max,
                                   int64_t output_len) {
  Dataset dataset = TRY(read_lines(path, prompts_max, read_conversation));
  for (BenchPrompt& prompt : dataset.prompts) prompt.output_tokens = output_len;
  return dataset;
}

std::vector<double> poisson_arrivals(size_t count, double requests_per_s, uint64_t seed) {
  std::vector<double> arrivals_s(count, 0);
  if (std::isinf(requests_per_s)) return arrivals_s;
  for (size_t i = 1; i < count; ++i) {
    // Inter-arrival times are exponential; 1 - u is never 0.
    arrivals_s[i] = arrivals_s[i - 1] - std::log1p(-draw(seed, kArrival, i)) / requests_per_s;
  }
  return arrivals_s;
}

}  // namespace banyan
