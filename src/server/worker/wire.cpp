#include "server/worker/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "llm/thinking_budget.h"
#include "server/fields/token_filter.h"
#include "server/json/endpoint.h"
#include "server/worker/id_list.h"

namespace banyan {
namespace {

// ---- One list of members for both directions ----------------------------------------------------

// T is const for writing and not const for reading.
template <class T, class U>
concept Maybe = std::same_as<std::remove_const_t<T>, U>;

template <Maybe<SamplingParams> T, class Visit>
void visit_members(T& s, Visit visit) {
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
  visit("repeat_last_n", s.repeat_last_n);
  visit("dry_multiplier", s.dry_multiplier);
  visit("dry_base", s.dry_base);
  visit("dry_allowed_length", s.dry_allowed_length);
  visit("dry_penalty_last_n", s.dry_penalty_last_n);
  visit("dry_breakers", s.dry_breakers);
  visit("logit_bias", s.logit_bias);
  visit("seed", s.seed);
  visit("sample_index", s.sample_index);
}

template <Maybe<GenerationOptions> T, class Visit>
void visit_members(T& o, Visit visit) {
  visit("max_new_tokens", o.max_new_tokens);
  visit("min_new_tokens", o.min_new_tokens);
  visit("stop_token_ids", o.stop_token_ids);
  visit("logprobs", o.logprobs);
  visit("top_logprobs", o.top_logprobs);
  visit("logprob_token_ids", o.logprob_token_ids);
  visit("prompt_logprobs_begin", o.prompt_logprobs_begin);
  visit("prompt_progress", o.prompt_progress);
  visit("pooling", o.pooling);
  visit("prediction_token_ids", o.prediction_token_ids);
  visit("draft_tokens_max", o.draft_tokens_max);
  visit("drafter", o.drafter);
  visit("priority", o.priority);
  visit("timeout_s", o.timeout_s);
  visit("age_s", o.age_s);
  visit("cache_salt", o.cache_salt);
  visit("extra_key", o.extra_key);
  visit("adapter", o.adapter);
}

template <Maybe<GrammarSource> T, class Visit>
void visit_members(T& g, Visit visit) {
  visit("kind", g.kind);
  visit("text", g.text);
  visit("strict", g.json.strict);
  visit("flexible_whitespace", g.json.flexible_whitespace);
  visit("disable_additional_properties", g.json.disable_additional_properties);
  visit("after", g.after);
}

template <Maybe<EarlyStops> T, class Visit>
void visit_members(T& e, Visit visit) {
  visit("tokens_min", e.tokens_min);
  visit("stops", e.stops);
}

template <Maybe<TokenRules> T, class Visit>
void visit_members(T& r, Visit visit) {
  visit("allowed", r.allowed);
  visit("banned", r.banned);
}

template <Maybe<ThinkingRules> T, class Visit>
void visit_members(T& r, Visit visit) {
  visit("begin", r.begin);
  visit("end", r.end);
  visit("call", r.call);
  visit("ending", r.ending);
  visit("tokens_max", r.tokens_max);
  visit("inside", r.inside);
  visit("again", r.again);
}

template <Maybe<ConstraintSource> T, class Visit>
void visit_members(T& c, Visit visit) {
  visit("grammar", c.grammar);
  visit("early", c.early);
  visit("tokens", c.tokens);
  visit("thinking", c.thinking);
}

template <Maybe<WireRequest> T, class Visit>
void visit_members(T& w, Visit visit) {
  visit("version", w.version);
  visit("sampling", w.request.sampling);
  visit("options", w.request.options);
  visit("constraint", w.constraint);
  visit("name", w.name);
}

// ---- Writing ------------------------------------------------------------------------------------

template <class T>
bool is_absent(const T&) {
  return false;
}
template <class T>
bool is_absent(const std::optional<T>& value) {
  return !value;
}
template <class T>
bool is_absent(const std::shared_ptr<T>& value) {
  return !value;
}

template <class T>
void append_value(const std::vector<T>& values, std::string& out);
template <class T>
void append_value(const std::optional<T>& value, std::string& out);
template <class T>
void append_value(const std::shared_ptr<const T>& value, std::string& out);
void append_value(const std::pair<TokenId, float>& bias, std::string& out);
void append_value(const std::shared_ptr<const DryBreakers>& breakers, std::string& out);

template <class T>
void append_value(const T& value, std::string& out) {
  auto to = std::back_inserter(out);
  if constexpr (std::is_floating_point_v<T>) {
    double number = value;
    std::isfinite(number) ? fmt::format_to(to, "{}", number) : fmt::format_to(to, "null");
  } else if constexpr (std::is_same_v<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    out += fmt::format_int(value).str();
  } else if constexpr (std::is_enum_v<T>) {
    fmt::format_to(to, "{}", static_cast<int>(value));
  } else if constexpr (std::is_same_v<T, std::string>) {
    out += dump_json(value);
  } else {
    out += '{';
    visit_members(value, [&](const char* name, const auto& member) {
      if (is_absent(member)) return;  // keeps its default
      fmt::format_to(to, "{}\"{}\":", out.back() == '{' ? "" : ",", name);
      append_value(member, out);
    });
    out += '}';
  }
}

template <class T>
void append_value(const std::vector<T>& values, std::string& out) {
  out += '[';
  for (const T& value : values) {
    if (&value != values.data()) out += ',';
    append_value(value, out);
  }
  out += ']';
}

void append_value(const std::pair<TokenId, float>& bias, std::string& out) {
  out += '[';
  append_value(bias.first, out);
  out += ',';
  append_value(bias.second, out);
  out += ']';
}

template <class T>
void append_value(const std::optional<T>& value, std::string& out) {
  append_value(*value, out);
}

template <class T>
void append_value(const std::shared_ptr<const T>& value, std::string& out) {
  append_value(*value, out);
}

// Each breaker as the list of its tokens.
void append_value(const std::shared_ptr<const DryBreakers>& breakers, std::string& out) {
  std::vector<std::vector<TokenId>> all;
  for (const auto& [first, tails] : *breakers) {
    for (const std::vector<TokenId>& tail : tails) {
      all.push_back({first});
      all.back().insert(all.back().end(), tail.begin(), tail.end());
    }
  }
  std::ranges::sort(all);  // equal requests are equal bytes, and have one digest
  append_value(all, out);
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
  auto number = json.get<double>();
  if (std::fabs(number) > std::numeric_limits<T>::max()) return wrong(name, "a smaller number");
  value = static_cast<T>(number);
  return {};
}

template <class Enum>
Status read_enum(const Json& json, std::string_view name, Enum last, std::string_view expected,
                 Enum& value) {
  int number = 0;
  TRY(read(json, name, number));
  if (number < 0 || number > static_cast<int>(last)) return wrong(name, expected);
  value = static_cast<Enum>(number);
  return {};
}

Status read(const Json& json, std::string_view name, GrammarSource::Kind& kind) {
  return read_enum(json, name, GrammarSource::Kind::kStructuralTag, "a kind of grammar", kind);
}

Status read(const Json& json, std::string_view name, Pooling& pooling) {
  return read_enum(json, name, Pooling::kMean, "a kind of pooling", pooling);
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

// Reads an object. Absent members keep their default; unknown ones are errors.
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
      return invalid_argument("{}: unknown member {}", name, key);
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

// Checks what the code below relies on.
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
constexpr std::string_view kNoMessage = "\"\"";

void append_bits(float value, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}", std::bit_cast<uint32_t>(value));
}

void append_logprobs(std::span<const TokenLogprob> logprobs, std::string& out) {
  out += '[';
  for (size_t i = 0; i < logprobs.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{},", i > 0 ? "," : "", logprobs[i].token);
    append_bits(logprobs[i].logprob, out);
  }
  out += ']';
}

}  // namespace

std::string write_request(const WireRequest& request) {
  const GenerateRequest& r = request.request;
  std::string body;
  body.reserve(2048 + sizeof(TokenId) * (r.prompt.size() + r.resume_tokens.size()));
  append_value(request, body);
  body += '\n';
  append_ids(r.prompt, body);
  append_ids(r.resume_tokens, body);
  return body;
}

Result<WireRequest> read_request(std::string_view body) {
  std::string_view head = body.substr(0, body.find('\n'));
  body.remove_prefix(std::min(head.size() + 1, body.size()));
  Parsed<Json> json = parse_body(head);
  if (!json) return std::unexpected(std::move(json).error().error);
  if (!json->is_object()) return invalid_argument("the body does not begin with an object");
  auto version = json->find("version");
  if (version == json->end() || *version != kWorkerProtocol) {
    return invalid_argument("version: this worker has {}; run router and workers of one build",
                            kWorkerProtocol);
  }
  WireRequest wire;
  TRY(read(*json, "the body", wire));
  TRY(check(wire));
  wire.request.prompt = TRY(take_ids(body, "prompt"));
  wire.request.resume_tokens = TRY(take_ids(body, "resume_tokens"));
  if (!body.empty()) return invalid_argument("the body: {} bytes follow its end", body.size());
  return wire;
}

Digest request_digest(const WireRequest& request) {
  WireRequest plain = request;
  plain.name.clear();
  plain.request.resume_tokens.clear();
  GenerationOptions& options = plain.request.options;
  options.age_s = options.timeout_s = 0;
  std::string body = write_request(plain);
  return Hasher().bytes(std::as_bytes(std::span(body))).finish();
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
  out += ",[";
  for (size_t i = 0; i < e.embedding.size(); ++i) {
    if (i > 0) out += ',';
    append_bits(e.embedding[i], out);
  }
  fmt::format_to(std::back_inserter(out), "],{},", static_cast<int>(e.error.code));
  out += e.error.message.empty() ? kNoMessage : dump_json(e.error.message);
  out += "]\n";
}

void append_rejection(const Error& error, std::string& out) {
  Json line = {{"rejected", Json::array({static_cast<int>(error.code), error.message})}};
  out += dump_json(line) + "\n";
}

namespace {

// The rest of a line; `good` becomes false once something is missing.
struct Scanner {
  const char *at, *end;
  bool good = true;

  void skip(char c) {
    good = good && at != end && *at == c;
    if (good) ++at;
  }
  bool finds(char c) const { return good && at != end && *at == c; }
  int64_t last_integer() {
    int64_t value = 0;
    if (!good) return value;
    auto [next, error] = std::from_chars(at, end, value);
    good = error == std::errc();
    at = next;
    return value;
  }
  int64_t integer() {
    int64_t value = last_integer();
    skip(',');
    return value;
  }
};

float float_of(int64_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

void read_logprobs(Scanner& scanner, std::vector<TokenLogprob>& into) {
  into.clear();
  scanner.skip('[');
  while (scanner.good && !scanner.finds(']')) {
    if (!into.empty()) scanner.skip(',');
    auto token = static_cast<TokenId>(scanner.integer());
    into.push_back({token, float_of(scanner.last_integer())});
  }
  scanner.skip(']');
  scanner.skip(',');
}

void read_embedding(Scanner& scanner, std::vector<float>& into) {
  into.clear();
  scanner.skip('[');
  while (scanner.good && !scanner.finds(']')) {
    if (!into.empty()) scanner.skip(',');
    into.push_back(float_of(scanner.last_integer()));
  }
  scanner.skip(']');
  scanner.skip(',');
}

bool set_error(int64_t code, std::string message, Error& error) {
  if (code < 0 || code > static_cast<int>(ErrorCode::kIo)) return false;
  error = {static_cast<ErrorCode>(code), std::move(message)};
  return true;
}

// Reads the last two elements of a line.
bool read_error(Scanner& scanner, Error& error) {
  int64_t code = scanner.integer();
  std::string_view text(scanner.at, scanner.end);
  if (!scanner.good || !text.ends_with(']')) return false;
  text.remove_suffix(1);
  if (text == kNoMessage) return set_error(code, {}, error);
  Result<Json> message = parse_json(text, "a message");
  return message && message->is_string() && set_error(code, message->get<std::string>(), error);
}

bool read_event(std::string_view text, WireLine& line) {
  Scanner scanner{text.data(), text.data() + text.size()};
  TokenEvent& e = line.event;
  e = {};
  scanner.skip('[');
  e.position = scanner.integer();
  int64_t flags = scanner.integer();
  e.has_token = (flags & kHasToken) != 0;
  e.from_prompt = (flags & kFromPrompt) != 0;
  e.drafted = (flags & kDrafted) != 0;
  e.token = static_cast<TokenId>(scanner.integer());
  e.logprob = float_of(scanner.integer());
  int64_t finish = scanner.integer();
  if (finish < 0 || finish > static_cast<int>(FinishReason::kError)) return false;
  e.finish = static_cast<FinishReason>(finish);
  e.matched_stop = static_cast<TokenId>(scanner.integer());
  e.cached_tokens = scanner.integer();
  e.restored_tokens = scanner.integer();
  e.queued_s = scanner.integer() * 1e-9;
  e.drafts = scanner.integer();
  e.draft_tokens = scanner.integer();
  read_logprobs(scanner, line.top);
  read_logprobs(scanner, line.chosen);
  read_embedding(scanner, line.embedding);
  e.top = line.top;
  e.chosen = line.chosen;
  e.embedding = line.embedding;
  return read_error(scanner, e.error);
}

bool read_notice(const Json& json, WireLine& line) {
  if (json.contains("resumable")) {
    line.kind = WireLine::Kind::kResumable;
    return json["resumable"] == true;
  }
  Json rejected = json.value("rejected", Json());
  bool good = rejected.is_array() && rejected.size() == 2 && rejected[0].is_number_integer() &&
              rejected[1].is_string();
  line.kind = WireLine::Kind::kRejected;
  return good &&
         set_error(rejected[0].get<int64_t>(), rejected[1].get<std::string>(), line.event.error);
}

}  // namespace

Status read_line(std::string_view text, WireLine& line) {
  line.kind = WireLine::Kind::kEvent;
  bool good = false;
  if (text.starts_with('[')) {
    good = read_event(text, line);
  } else {
    Result<Json> json = parse_json(text, "a line");
    good = json && json->is_object() && read_notice(*json, line);
  }
  if (good) return {};
  return corrupt("a worker sent a line of {} bytes that is not part of the protocol", text.size());
}

}  // namespace banyan
