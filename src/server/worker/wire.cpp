#include "server/worker/wire.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "llm/thinking_budget.h"
#include "server/fields/token_filter.h"

namespace banyan {
namespace {

// ---- One list of members for both directions ----------------------------------------------------

template <class Visit>
void visit_members(SamplingParams& s, Visit visit) {
  visit("temperature", s.temperature);
  visit("top_p", s.top_p);
  visit("top_k", s.top_k);
  visit("min_p", s.min_p);
  visit("typical_p", s.typical_p);
  visit("xtc_probability", s.xtc_probability);
  visit("xtc_threshold", s.xtc_threshold);
  visit("frequency_penalty", s.frequency_penalty);
  visit("presence_penalty", s.presence_penalty);
  visit("repetition_penalty", s.repetition_penalty);
  visit("dry_multiplier", s.dry_multiplier);
  visit("dry_base", s.dry_base);
  visit("dry_allowed_length", s.dry_allowed_length);
  visit("dry_penalty_last_n", s.dry_penalty_last_n);
  visit("dry_breakers", s.dry_breakers);
  visit("logit_bias", s.logit_bias);
  visit("seed", s.seed);
  visit("sample_index", s.sample_index);
}

template <class Visit>
void visit_members(GenerationOptions& o, Visit visit) {
  visit("max_new_tokens", o.max_new_tokens);
  visit("min_new_tokens", o.min_new_tokens);
  visit("stop_token_ids", o.stop_token_ids);
  visit("logprobs", o.logprobs);
  visit("top_logprobs", o.top_logprobs);
  visit("logprob_token_ids", o.logprob_token_ids);
  visit("prompt_logprobs_begin", o.prompt_logprobs_begin);
  visit("prediction_token_ids", o.prediction_token_ids);
  visit("draft_tokens_max", o.draft_tokens_max);
  visit("priority", o.priority);
  visit("timeout_s", o.timeout_s);
  visit("age_s", o.age_s);
  visit("cache_salt", o.cache_salt);
  visit("extra_key", o.extra_key);
  visit("adapter", o.adapter);
}

template <class Visit>
void visit_members(GrammarSource& g, Visit visit) {
  visit("kind", g.kind);
  visit("text", g.text);
  visit("strict", g.json.strict);
  visit("flexible_whitespace", g.json.flexible_whitespace);
  visit("after", g.after);
}

template <class Visit>
void visit_members(EarlyStops& e, Visit visit) {
  visit("tokens_min", e.tokens_min);
  visit("stops", e.stops);
}

template <class Visit>
void visit_members(TokenRules& r, Visit visit) {
  visit("allowed", r.allowed);
  visit("banned", r.banned);
}

template <class Visit>
void visit_members(ThinkingRules& r, Visit visit) {
  visit("begin", r.begin);
  visit("end", r.end);
  visit("call", r.call);
  visit("ending", r.ending);
  visit("tokens_max", r.tokens_max);
  visit("inside", r.inside);
  visit("again", r.again);
}

template <class Visit>
void visit_members(ConstraintSource& c, Visit visit) {
  visit("grammar", c.grammar);
  visit("early", c.early);
  visit("tokens", c.tokens);
  visit("thinking", c.thinking);
}

template <class Visit>
void visit_members(WireRequest& w, Visit visit) {
  visit("prompt", w.request.prompt);
  visit("resume_tokens", w.request.resume_tokens);
  visit("sampling", w.request.sampling);
  visit("options", w.request.options);
  visit("constraint", w.constraint);
}

// ---- Writing ------------------------------------------------------------------------------------

template <class T>
Json to_json(const std::vector<T>& values);
Json to_json(const std::vector<std::pair<TokenId, float>>& biases);
template <class T>
Json to_json(const std::optional<T>& value);
template <class T>
Json to_json(const std::shared_ptr<const T>& value);
Json to_json(const std::shared_ptr<const DryBreakers>& breakers);

// Absent members stay out.
template <class T>
Json to_json(const T& value) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<int>(value);
  } else {
    Json object = Json::object();
    T copy = value;
    visit_members(copy, [&](const char* name, auto& member) {
      Json json = to_json(member);
      if (!json.is_null()) object[name] = std::move(json);
    });
    return object;
  }
}

template <class T>
Json to_json(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(to_json(value));
  return list;
}

Json to_json(const std::vector<std::pair<TokenId, float>>& biases) {
  Json list = Json::array();
  for (auto [token, bias] : biases) list.push_back(Json::array({token, bias}));
  return list;
}

template <class T>
Json to_json(const std::optional<T>& value) {
  return value ? to_json(*value) : Json();
}

template <class T>
Json to_json(const std::shared_ptr<const T>& value) {
  return value ? to_json(*value) : Json();
}

// Each breaker as the list of its tokens.
Json to_json(const std::shared_ptr<const DryBreakers>& breakers) {
  if (!breakers) return {};
  Json list = Json::array();
  for (const auto& [first, tails] : *breakers) {
    for (const std::vector<TokenId>& tail : tails) {
      Json tokens = Json::array({first});
      for (TokenId token : tail) tokens.push_back(token);
      list.push_back(std::move(tokens));
    }
  }
  return list;
}

// ---- Reading ------------------------------------------------------------------------------------

Status wrong(std::string_view name, std::string_view expected) {
  return invalid_argument("{}: {} is expected", name, expected);
}

Status read(const Json& json, std::string_view name, bool& value) {
  if (!json.is_boolean()) return wrong(name, "true or false");
  value = json.get<bool>();
  return {};
}

Status read(const Json& json, std::string_view name, std::string& value) {
  if (!json.is_string()) return wrong(name, "a text");
  value = json.get<std::string>();
  return {};
}

template <std::integral T>
Status read(const Json& json, std::string_view name, T& value) {
  if (!json.is_number_integer()) return wrong(name, "an integer");
  bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<uint64_t>())
                                        : std::in_range<T>(json.get<int64_t>());
  if (!fits) return wrong(name, "a smaller integer");
  value = json.is_number_unsigned() ? static_cast<T>(json.get<uint64_t>())
                                    : static_cast<T>(json.get<int64_t>());
  return {};
}

template <std::floating_point T>
Status read(const Json& json, std::string_view name, T& value) {
  if (!json.is_number()) return wrong(name, "a number");
  value = static_cast<T>(json.get<double>());
  return {};
}

Status read(const Json& json, std::string_view name, GrammarSource::Kind& kind) {
  int number = 0;
  TRY(read(json, name, number));
  if (number < 0 || number > static_cast<int>(GrammarSource::Kind::kStructuralTag)) {
    return wrong(name, "a kind of grammar");
  }
  kind = static_cast<GrammarSource::Kind>(number);
  return {};
}

template <class T>
Status read(const Json& json, std::string_view name, std::vector<T>& values);
template <class T>
Status read(const Json& json, std::string_view name, std::optional<T>& value);
template <class T>
Status read(const Json& json, std::string_view name, std::shared_ptr<const T>& value);
Status read(const Json& json, std::string_view name, std::shared_ptr<const DryBreakers>& value);
Status read(const Json& json, std::string_view name,
            std::vector<std::pair<TokenId, float>>& biases);

// An object. Absent members keep their default; none may be unknown.
template <class T>
  requires requires(T& t) { visit_members(t, [](const char*, auto&) {}); }
Status read(const Json& json, std::string_view name, T& value) {
  if (!json.is_object()) return wrong(name, "an object");
  Status outcome;
  std::vector<std::string_view> known;
  visit_members(value, [&](const char* member, auto& into) {
    known.emplace_back(member);
    auto found = json.find(member);
    if (outcome && found != json.end()) outcome = read(*found, member, into);
  });
  TRY(outcome);
  for (const auto& [key, ignored] : json.items()) {
    if (std::ranges::find(known, key) == known.end()) {
      return invalid_argument("{}: {} is no member of it", name, key);
    }
  }
  return {};
}

template <class T>
Status read(const Json& json, std::string_view name, std::vector<T>& values) {
  if (!json.is_array()) return wrong(name, "a list");
  values.reserve(json.size());
  for (const Json& item : json) TRY(read(item, name, values.emplace_back()));
  return {};
}

template <class T>
Status read(const Json& json, std::string_view name, std::optional<T>& value) {
  return read(json, name, value.emplace());
}

template <class T>
Status read(const Json& json, std::string_view name, std::shared_ptr<const T>& value) {
  auto made = std::make_shared<T>();
  TRY(read(json, name, *made));
  value = std::move(made);
  return {};
}

Status read(const Json& json, std::string_view name, std::shared_ptr<const DryBreakers>& value) {
  std::vector<std::vector<TokenId>> all;
  TRY(read(json, name, all));
  auto made = std::make_shared<DryBreakers>();
  for (std::vector<TokenId>& tokens : all) {
    if (tokens.empty()) return wrong(name, "a token in each");
    std::vector<TokenId> tail(tokens.begin() + 1, tokens.end());
    (*made)[tokens[0]].push_back(std::move(tail));
  }
  value = std::move(made);
  return {};
}

Status read(const Json& json, std::string_view name,
            std::vector<std::pair<TokenId, float>>& biases) {
  if (!json.is_array()) return wrong(name, "a list");
  for (const Json& item : json) {
    if (!item.is_array() || item.size() != 2) return wrong(name, "pairs of token and bias");
    auto& [token, bias] = biases.emplace_back();
    TRY(read(item[0], name, token));
    TRY(read(item[1], name, bias));
  }
  return {};
}

// Rules that the code which follows them takes for granted.
Status check(const WireRequest& wire) {
  const ConstraintSource& c = wire.constraint;
  if (c.grammar && c.tokens) return invalid_argument("constraint: a grammar or tokens, not both");
  if (!c.tokens) return {};
  for (const std::vector<TokenId>& sequence : c.tokens->banned) {
    if (sequence.empty()) return wrong("banned", "a token in each");
  }
  bool negative = std::ranges::any_of(c.tokens->allowed, [](TokenId id) { return id < 0; });
  if (negative) return wrong("allowed", "a token of the vocabulary");
  return {};
}

// ---- Lines --------------------------------------------------------------------------------------

constexpr int kHasToken = 1, kFromPrompt = 2, kDrafted = 4;

void append_logprobs(std::span<const TokenLogprob> logprobs, std::string& out) {
  auto at = std::back_inserter(out);
  out += '[';
  for (size_t i = 0; i < logprobs.size(); ++i) {
    fmt::format_to(at, "{}{},{}", i > 0 ? "," : "", logprobs[i].token,
                   std::bit_cast<uint32_t>(logprobs[i].logprob));
  }
  out += ']';
}

}  // namespace

std::string write_request(const WireRequest& request) {
  Json body = to_json(request);
  body["version"] = kWorkerProtocol;
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<WireRequest> read_request(const Json& body) {
  if (!body.is_object()) return invalid_argument("the body is no object");
  auto version = body.find("version");
  if (version == body.end() || *version != kWorkerProtocol) {
    return invalid_argument("version: this worker speaks {}; run router and workers of one build",
                            kWorkerProtocol);
  }
  Json members = body;
  members.erase("version");
  WireRequest wire;
  TRY(read(members, "the body", wire));
  TRY(check(wire));
  return wire;
}

void append_event(const TokenEvent& e, std::string& out) {
  int flags = (e.has_token ? kHasToken : 0) | (e.from_prompt ? kFromPrompt : 0) |
              (e.drafted ? kDrafted : 0);
  fmt::format_to(std::back_inserter(out), "[{},{},{},{},{},{},{},{},{},{},{},", e.position, flags,
                 e.token, std::bit_cast<uint32_t>(e.logprob), static_cast<int>(e.finish),
                 e.matched_stop, e.cached_tokens, e.restored_tokens,
                 static_cast<int64_t>(e.queued_s * 1e9), e.drafts, e.draft_tokens);
  append_logprobs(e.top, out);
  out += ',';
  append_logprobs(e.chosen, out);
  fmt::format_to(std::back_inserter(out), ",{},{}]\n", static_cast<int>(e.error.code),
                 Json(e.error.message).dump(-1, ' ', false, Json::error_handler_t::replace));
}

void append_rejection(const Error& error, std::string& out) {
  Json line = {{"rejected", Json::array({static_cast<int>(error.code), error.message})}};
  out += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

struct LineReader::Parser {
  simdjson::dom::parser json;
};

LineReader::LineReader() : parser_(std::make_unique<Parser>()) {}
LineReader::~LineReader() = default;

namespace {

using simdjson::dom::element;

// The integers of a list, in order; `good` is false once one is missing.
struct Integers {
  simdjson::dom::array::iterator at, end;
  bool good = true;

  element next() {
    if (at == end) {
      good = false;
      return {};
    }
    element item = *at;
    ++at;
    return item;
  }
  int64_t integer() {
    element item = next();
    int64_t value = 0;
    if (good) good = item.get(value) == simdjson::SUCCESS;
    return value;
  }
  float logprob() { return std::bit_cast<float>(static_cast<uint32_t>(integer())); }
};

bool read_logprobs(element item, std::vector<TokenLogprob>& into) {
  into.clear();
  simdjson::dom::array list;
  if (item.get(list) != simdjson::SUCCESS) return false;
  Integers values{list.begin(), list.end()};
  while (values.good && values.at != values.end) {
    auto token = static_cast<TokenId>(values.integer());
    into.push_back({token, values.logprob()});
  }
  return values.good;
}

bool read_error(Integers& values, Error& error) {
  int64_t code = values.integer();
  element text = values.next();
  std::string_view message;
  if (!values.good || text.get(message) != simdjson::SUCCESS) return false;
  if (code < 0 || code > static_cast<int>(ErrorCode::kIo)) return false;
  error = {static_cast<ErrorCode>(code), std::string(message)};
  return true;
}

bool read_event(Integers values, WireLine& line) {
  TokenEvent& e = line.event;
  e = {};
  e.position = values.integer();
  int64_t flags = values.integer();
  e.has_token = (flags & kHasToken) != 0;
  e.from_prompt = (flags & kFromPrompt) != 0;
  e.drafted = (flags & kDrafted) != 0;
  e.token = static_cast<TokenId>(values.integer());
  e.logprob = values.logprob();
  int64_t finish = values.integer();
  if (finish < 0 || finish > static_cast<int>(FinishReason::kError)) return false;
  e.finish = static_cast<FinishReason>(finish);
  e.matched_stop = static_cast<TokenId>(values.integer());
  e.cached_tokens = values.integer();
  e.restored_tokens = values.integer();
  e.queued_s = static_cast<double>(values.integer()) * 1e-9;
  e.drafts = values.integer();
  e.draft_tokens = values.integer();
  element top = values.next(), chosen = values.next();
  if (!values.good || !read_logprobs(top, line.top) || !read_logprobs(chosen, line.chosen)) {
    return false;
  }
  e.top = line.top;
  e.chosen = line.chosen;
  return read_error(values, e.error);
}

bool read_notice(element json, WireLine& line) {
  bool resumable = false;
  if (json["resumable"].get(resumable) == simdjson::SUCCESS) {
    line.kind = WireLine::Kind::kResumable;
    return resumable;
  }
  simdjson::dom::array rejected;
  if (json["rejected"].get(rejected) != simdjson::SUCCESS) return false;
  line.kind = WireLine::Kind::kRejected;
  Integers values{rejected.begin(), rejected.end()};
  return read_error(values, line.event.error);
}

}  // namespace

Status LineReader::read(std::string_view text, WireLine& line) {
  line.kind = WireLine::Kind::kEvent;
  element json;
  bool good = parser_->json.parse(text.data(), text.size()).get(json) == simdjson::SUCCESS;
  simdjson::dom::array list;
  if (good && json.get(list) == simdjson::SUCCESS) {
    good = read_event({list.begin(), list.end()}, line);
  } else if (good) {
    good = json.is_object() && read_notice(json, line);
  }
  if (good) return {};
  return corrupt("a line of {} bytes from a worker is none of its protocol", text.size());
}

}  // namespace banyan
