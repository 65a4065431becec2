#include "eval/suite.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/lower.h"
#include "base/quote.h"
#include "base/space.h"
#include "eval/answers.h"

namespace banyan {
namespace {

bool same_text(const SuiteCase& asked, const SuiteReply& reply) {
  return asked.answer.is_string() && trim_space(reply.content) == asked.answer.get<std::string>();
}

bool same_number(const SuiteCase& asked, const SuiteReply& reply) {
  std::string answer =
      asked.answer.is_string() ? asked.answer.get<std::string>() : asked.answer.dump();
  std::optional<std::string> number = last_number(reply.content);
  return number && number == last_number(answer);
}

// Ignores the order of keys.
bool same_json(const Json& a, const Json& b) {
  return nlohmann::json(a) == nlohmann::json(b);
}

bool same_value(const SuiteCase& asked, const SuiteReply& reply) {
  Result<Json> value = parse_json(reply.content, "the answer");
  return value && same_json(*value, asked.answer);
}

bool same_call(const SuiteCase& asked, const SuiteReply& reply) {
  return same_json(reply.call, asked.answer);
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  return lower_ascii(text).contains(lower_ascii(part));
}

bool says_one_of(const SuiteCase& asked, const SuiteReply& reply) {
  return std::ranges::any_of(asked.answer, [&](const Json& text) {
    return text.is_string() && contains_ignoring_case(reply.content, text.get<std::string>());
  });
}

// A story of sufficient length that ends properly and mentions the expected text in its first two
// sentences.
bool tells_of(const SuiteCase& asked, const SuiteReply& reply) {
  constexpr size_t kCharactersMin = 200;
  std::string_view story = trim_space(reply.content);
  if (!asked.answer.is_string() || story.size() < kCharactersMin) return false;
  if (!std::string_view(".!?\"").contains(story.back())) return false;
  size_t begin = 0;
  for (int sentence = 0; sentence < 2 && begin < story.size(); ++sentence) {
    begin = std::min(story.find_first_of(".!?", begin), story.size() - 1) + 1;
  }
  return contains_ignoring_case(story.substr(0, begin), asked.answer.get<std::string>());
}

// Suites not listed compare texts.
struct Judge {
  std::string_view suite;
  bool (*is_right)(const SuiteCase&, const SuiteReply&);
};
constexpr auto kJudges = std::to_array<Judge>({
    {"arithmetic", same_number},
    {"everyday-facts", says_one_of},
    {"everyday-rest", says_one_of},
    {"everyday-stories", tells_of},
    {"everyday-sums", same_number},
    {"everyday-talk", says_one_of},
    {"extraction", same_value},
    {"tools", same_call},
});

Result<SuiteCase> read_case(const Json& line, const std::string& where) {
  auto field = [&](const char* name) { return line.contains(name) ? line[name] : Json(); };
  SuiteCase made{.messages = field("messages"),
                 .tools = field("tools"),
                 .answer = field("answer"),
                 .about = field("about")};
  if (!field("suite").is_string()) return corrupt("{}: suite is not a string", where);
  made.suite = field("suite").get<std::string>();
  if (!made.messages.is_array() || made.messages.empty()) {
    return corrupt("{}: messages is not a list of messages", where);
  }
  if (!made.tools.is_null() && !made.tools.is_array()) {
    return corrupt("{}: tools is not a list", where);
  }
  Json think = field("think");
  if (!think.is_null() && !think.is_boolean()) return corrupt("{}: think is not a flag", where);
  made.think = think == true;
  if (!line.contains("answer")) return corrupt("{}: answer is missing", where);
  if (is_scored(made.suite) && !made.answer.is_string()) {
    return corrupt("{}: answer is not a string", where);
  }
  if (Json schema = field("schema"); !schema.is_null()) {
    if (!schema.is_object()) return corrupt("{}: schema is not an object", where);
    made.schema = schema.dump();
  }
  return made;
}

}  // namespace

Result<std::vector<SuiteCase>> read_suite(std::string_view text, const std::string& name) {
  std::vector<SuiteCase> cases;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = trim_space(text.substr(begin, end - begin));
    begin = end + 1;
    std::string where = fmt::format("{}:{}", name, ++number);
    if (line.empty()) continue;
    Json object = TRY(parse_json(line, where));
    if (!object.is_object()) return corrupt("{}: the line is not an object", where);
    cases.push_back(TRY(read_case(object, where)));
    if (cases.back().suite != cases.front().suite) {
      return corrupt("{}: suite is {}, but earlier lines have {}", where, quote(cases.back().suite),
                     quote(cases.front().suite));
    }
  }
  if (cases.empty()) return corrupt("{}: the file contains no cases", name);
  return cases;
}

bool is_right(const SuiteCase& asked, const SuiteReply& reply) {
  for (const Judge& judge : kJudges) {
    if (judge.suite == asked.suite) return judge.is_right(asked, reply);
  }
  return same_text(asked, reply);
}

bool is_scored(std::string_view suite) {
  return suite == "stories";
}

}  // namespace banyan
