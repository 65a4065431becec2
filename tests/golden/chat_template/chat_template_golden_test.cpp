// Templates against what Hugging Face transformers makes of them (tools/make_template_goldens.py):
// small snippets by feature, and the published templates of ../shared over a matrix of
// conversations.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "support/shared.h"
#include "text/chat_template.h"

namespace banyan::chat_template_golden_test {
namespace {

constexpr std::time_t kNow = 1721997296;  // 2024-07-26 12:34:56 UTC, as in the tool

std::string golden_text(const std::string& name) {
  return read_file(test::source_path("tests/golden/chat_template/" + name)).value();
}

Json golden_json(const std::string& name) {
  return parse_json(golden_text(name), name, {.bytes_max = 64 << 20}).value();
}

class UtcEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};
[[maybe_unused]] const auto* const kUtc = ::testing::AddGlobalTestEnvironment(new UtcEnvironment);

Result<std::string> render(const std::string& source, const Json& variables) {
  auto parsed = ChatTemplate::parse(source);
  if (!parsed) return std::unexpected(parsed.error());
  return parsed->render(variables, {.clock = [] { return kNow; }});
}

std::string fnv1a(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

TEST(ChatTemplateGolden, SnippetsRenderAsInPython) {
  Json variables = golden_json("snippet_variables.json");
  std::istringstream lines(golden_text("snippets.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    Json snippet = parse_json(line, "snippet").value();
    std::string source = snippet["template"];
    auto text = render(source, variables);
    if (snippet.contains("error")) {
      EXPECT_FALSE(text.has_value()) << source << "\n-> " << *text << "\nPython raises";
    } else if (text) {
      EXPECT_EQ(*text, snippet["text"].get<std::string>()) << source;
    } else {
      ADD_FAILURE() << source << "\n-> " << text.error().message
                    << "\nPython: " << snippet["text"].get<std::string>();
    }
  }
  EXPECT_GT(count, 1000);
}

void check(const std::string& what, const Result<std::string>& text, const Json& expected) {
  if (expected.is_object()) {
    std::string told = expected["error"];
    EXPECT_FALSE(text.has_value()) << what << "\n-> " << *text << "\nPython raises " << told;
    if (!text && !told.empty()) {
      EXPECT_EQ(text.error().message, told) << what;
    }
    return;
  }
  if (!text) {
    ADD_FAILURE() << what << "\n-> " << text.error().message;
  } else if (expected.is_string()) {
    EXPECT_EQ(*text, expected.get<std::string>()) << what;
  } else {
    EXPECT_EQ(fnv1a(*text), expected[1].get<std::string>())
        << what << ": " << text->size() << " bytes, Python makes " << expected[0] << "\n"
        << *text;
  }
}

TEST(ChatTemplateGolden, PublishedTemplatesRenderAsInPython) {
  REQUIRE_SHARED("data/chat-templates");
  Json conversations = golden_json("conversations.json");
  Json renderings = golden_json("renderings.json");
  EXPECT_GE(renderings.size(), 30u);
  for (const auto& [file, rows] : renderings.items()) {
    auto source = read_file(test::shared_path("data/chat-templates/" + file));
    ASSERT_TRUE(source.has_value()) << file;
    auto parsed = ChatTemplate::parse(*source);
    ASSERT_TRUE(parsed.has_value()) << file << ": " << parsed.error().message;
    for (const auto& [name, expected] : rows.items()) {
      auto text = parsed->render(conversations[name], {.clock = [] { return kNow; }});
      check(file + " / " + name, text, expected);
    }
  }
}

}  // namespace
}  // namespace banyan::chat_template_golden_test
