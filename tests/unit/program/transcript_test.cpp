// Transcripts of programs: earlier text stays as written, whatever the template does to it.
#include "program/transcript.h"

#include <gtest/gtest.h>

#include "support/scripted_backend.h"

namespace banyan::transcript_test {
namespace {

// A template of the test's own over the scripted backend.
class Templated : public test::ScriptedBackend {
 public:
  using Render = std::function<std::string(const std::vector<ChatMessage>&, bool)>;
  explicit Templated(Render render)
      : ScriptedBackend([](const GenCall&) { return ""; }), render_(std::move(render)) {}

  Result<std::string> render(const std::vector<ChatMessage>& messages, bool answer) const override {
    return render_(messages, answer);
  }

 private:
  Render render_;
};

std::string trim(const std::string& text) {
  size_t begin = text.find_first_not_of(" \n");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
}

// Says what an assistant answered, in a conversation whose first answer is `answer`; gives the two
// prompts.
std::pair<std::string, std::string> two_turns(const Backend& backend, const std::string& answer) {
  Transcript t(backend);
  EXPECT_TRUE(t.begin("user") && t.append("Hi") && t.end() && t.begin("assistant"));
  std::string first = t.prompt().value().text;
  EXPECT_TRUE(t.append(answer) && t.end());
  EXPECT_TRUE(t.begin("user") && t.append("Go on") && t.end() && t.begin("assistant"));
  return {first, t.prompt().value().text};
}

TEST(Transcript, KeepsWhatATemplateWouldChangeOfEarlierAnswers) {
  Templated backend([](const std::vector<ChatMessage>& messages, bool answer) {
    std::string text;
    for (const ChatMessage& m : messages) {
      std::string content = trim(m.content);
      size_t thought = content.find("</think>");  // history without its reasoning
      if (thought != content.npos) content = trim(content.substr(thought + 8));
      text += "[" + m.role + "]" + content + "[end]";
    }
    return text + (answer ? "[assistant]" : "");
  });
  auto [first, second] = two_turns(backend, "<think>hm</think> \n Well. ");
  EXPECT_EQ(first, "[user]Hi[end][assistant]");
  EXPECT_EQ(second, first + "<think>hm</think> \n Well. [end][user]Go on[end][assistant]");
}

TEST(Transcript, IsWrittenAnewWhereATemplateLeavesHistoryOut) {
  Templated backend([](const std::vector<ChatMessage>& messages, bool answer) {
    return messages.back().content + (answer ? ">" : "");
  });
  EXPECT_EQ(two_turns(backend, "Well").second, "Go on>");
}

TEST(Transcript, AnUnfinishedMessageOfAnyRoleIsAPrompt) {
  Templated backend([](const std::vector<ChatMessage>& messages, bool answer) {
    std::string text;
    for (const ChatMessage& m : messages) text += "[" + m.role + "]" + trim(m.content) + "[end]";
    return text + (answer ? "[assistant]" : "");
  });
  Transcript t(backend);
  ASSERT_TRUE(t.begin("user") && t.append("Who "));
  EXPECT_EQ(t.prompt().value().text, "[user]Who ");
  ASSERT_TRUE(t.append("are you?") && t.end());
  EXPECT_EQ(t.text().value(), "[user]Who are you?[end]");
  EXPECT_EQ(t.prefix().value().text, "[user]Who are you?[end]");
}

}  // namespace
}  // namespace banyan::transcript_test
