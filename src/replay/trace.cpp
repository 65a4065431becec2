#include "replay/trace.h"

#include <xxhash.h>

#include <algorithm>
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
constexpr int64_t kRequestTokensMax = int64_t{1} << 24;
constexpr double kTimestampMax_ms = 1e12;
// Blocks and words have smaller ids, generated tokens ids from here on.
constexpr TokenId kOutputBegin = 1 << 30;
constexpr TokenId kUserTurn = 0, kAssistantTurn = 1, kWordsBegin = 2;

TokenId output_of(size_t request) {
  return kOutputBegin + narrow<TokenId>(request);
}

Result<int64_t> integer_at(const Json& object, const char* key, int64_t min, int64_t max,
                           const std::string& where) {
  auto found = object.find(key);
  if (found == object.end()) return corrupt("{}: {} is missing", where, key);
  bool fits = found->is_number_integer() && *found >= min && *found <= max;
  if (!fits) {
    return corrupt("{}: {} is {}; it must be between {} and {}", where, key, found->dump(), min,
                   max);
  }
  return found->get<int64_t>();
}

Result<TraceRequest> read_mooncake_request(const Json& object, const std::string& where) {
  TraceRequest request;
  auto timestamp = object.find("timestamp");
  if (timestamp == object.end() || !timestamp->is_number() || *timestamp < 0 ||
      *timestamp > kTimestampMax_ms) {
    return corrupt("{}: timestamp is not a time in milliseconds", where);
  }
  request.arrival_s = timestamp->get<double>() / 1000;
  request.prompt_tokens = TRY(integer_at(object, "input_length", 1, kRequestTokensMax, where));
  request.output_tokens = TRY(integer_at(object, "output_length", 0, kRequestTokensMax, where));
  auto ids = object.find("hash_ids");
  int64_t blocks = (request.prompt_tokens + kMooncakeBlockTokens - 1) / kMooncakeBlockTokens;
  if (ids == object.end() || !ids->is_array() || std::ssize(*ids) != blocks) {
    return corrupt("{}: hash_ids is not a list of {} ids, one for each {} of {} tokens", where,
                   blocks, kMooncakeBlockTokens, request.prompt_tokens);
  }
  for (const Json& id : *ids) {
    if (!id.is_number_integer() || id < 0 || id >= kOutputBegin) {
      return corrupt("{}: hash_ids has {}; its entries must be between 0 and {}", where, id.dump(),
                     kOutputBegin - 1);
    }
    request.blocks.push_back(id.get<TokenId>());
  }
  return request;
}

void add_words(std::string_view text, std::vector<TokenId>& tokens) {
  constexpr std::string_view kSpace = " \t\r\n";
  for (size_t begin = 0; (begin = text.find_first_not_of(kSpace, begin)) != text.npos;) {
    size_t end = std::min(text.find_first_of(kSpace, begin), text.size());
    uint64_t hash = XXH3_64bits(text.data() + begin, end - begin);
    tokens.push_back(kWordsBegin + static_cast<TokenId>(hash % (kOutputBegin - kWordsBegin)));
    begin = end;
  }
}

Status read_chat(const Json& object, const std::string& where, int64_t output_tokens,
                 Trace& trace) {
  auto turns = object.find("turns");
  if (turns == object.end() || !turns->is_array()) {
    return corrupt("{}: turns must be a list of strings", where);
  }
  std::vector<TokenId> tokens;
  int64_t after = -1;
  for (const Json& turn : *turns) {
    if (!turn.is_string()) return corrupt("{}: turns has {}, not a string", where, turn.dump());
    tokens.push_back(kUserTurn);
    add_words(turn.get_ref<const std::string&>(), tokens);
    tokens.push_back(kAssistantTurn);
    if (std::ssize(tokens) + output_tokens > kRequestTokensMax) {
      return corrupt("{}: the turns have more than {} words", where, kRequestTokensMax);
    }
    TokenId output = output_of(trace.requests.size());
    trace.requests.push_back({.after = after,
                              .blocks = tokens,
                              .prompt_tokens = std::ssize(tokens),
                              .output_tokens = output_tokens,
                              .output = output});
    after = std::ssize(trace.requests) - 1;
    tokens.insert(tokens.end(), as_size(output_tokens), output);
  }
  return {};
}

}  // namespace

std::vector<TokenId> Trace::prompt_of(const TraceRequest& request) const {
  std::vector<TokenId> tokens;
  tokens.reserve(as_size(request.tokens()));
  int64_t left = request.prompt_tokens;
  for (TokenId block : request.blocks) {
    int64_t count = std::min(left, block_tokens);
    tokens.insert(tokens.end(), as_size(count), block);
    left -= count;
  }
  return tokens;
}

int64_t Trace::prompt_tokens() const {
  return std::accumulate(
      requests.begin(), requests.end(), int64_t{0},
      [](int64_t sum, const TraceRequest& request) { return sum + request.prompt_tokens; });
}

int64_t Trace::longest_tokens() const {
  int64_t longest = 0;
  for (const TraceRequest& request : requests) longest = std::max(longest, request.tokens());
  return longest;
}

Result<Trace> read_trace(const std::string& path, int64_t chat_output_tokens) {
  std::string text = TRY(read_file(path));
  Trace trace;
  int64_t number = 0;
  bool chats = false;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    std::string where = fmt::format("{}:{}", path, ++number);
    Json object = TRY(parse_json(line, where));
    if (!object.is_object()) return corrupt("{}: the line is not an object", where);
    if (number == 1) {
      chats = object.contains("turns");
      trace.block_tokens = chats ? 1 : kMooncakeBlockTokens;
    }
    if (chats) {
      TRY(read_chat(object, where, chat_output_tokens, trace));
    } else {
      trace.requests.push_back(TRY(read_mooncake_request(object, where)));
      trace.requests.back().output = output_of(trace.requests.size() - 1);
    }
  }
  if (trace.requests.empty()) return corrupt("{}: the file contains no requests", path);
  if (!chats) std::ranges::stable_sort(trace.requests, {}, &TraceRequest::arrival_s);
  return trace;
}

Trace shared_prefix_trace(const SharedPrefixShape& shape) {
  Trace trace;
  auto requests = as_size(shape.groups * shape.prompts_per_group);
  std::vector<size_t> order(requests);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = requests; i > 1; --i) {  // Fisher and Yates
    std::swap(order[i - 1], order[static_cast<size_t>(uniform(shape.seed, i, 0) * i)]);
  }
  for (size_t i : order) {
    auto group = narrow<TokenId>(i) % narrow<TokenId>(shape.groups);
    auto question = narrow<TokenId>(shape.groups) + narrow<TokenId>(i);
    std::vector<TokenId> tokens(as_size(shape.system_prompt_tokens), group);
    tokens.insert(tokens.end(), as_size(shape.question_tokens), question);
    trace.requests.push_back({.blocks = std::move(tokens),
                              .prompt_tokens = shape.system_prompt_tokens + shape.question_tokens,
                              .output_tokens = shape.output_tokens,
                              .output = output_of(i)});
  }
  return trace;
}

void spread_arrivals(Trace& trace, double requests_per_s, uint64_t seed) {
  double now_s = 0;
  uint64_t draws = 0;
  for (TraceRequest& request : trace.requests) {
    if (request.after >= 0) continue;
    request.arrival_s = now_s;
    now_s -= std::log1p(-uniform(seed, draws++, 1)) / requests_per_s;
  }
}

Trace in_dfs_order(const Trace& trace) {
  std::vector<size_t> order(trace.requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(
      order, {}, [&](size_t i) -> const std::vector<TokenId>& { return trace.requests[i].blocks; });
  std::vector<int64_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  Trace sorted{.block_tokens = trace.block_tokens};
  for (size_t i : order) {
    TraceRequest request = trace.requests[i];
    request.arrival_s = 0;
    if (request.after >= 0) request.after = at(place, request.after);
    sorted.requests.push_back(std::move(request));
  }
  return sorted;
}

}  // namespace banyan
