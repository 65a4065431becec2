// Streams that continue after Last-Event-ID, in every API with server-sent events.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "api/server_fixture.h"
#include "support/api.h"

namespace banyan::resume_test {
namespace {

using test::Client;
using test::Response;

class Resume : public test::ServerTest {
  test::TemporaryFolder model_;

 protected:
  Resume() { engine = test::tiny_text_model(model_, "{{ messages[0].content }}"); }

  Response post(const std::string& path, const std::string& body, const std::string& more) {
    Client client = this->client();
    client.send(
        fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: one\r\n"
                    "{}Content-Length: {}\r\n\r\n{}",
                    path, more, body.size(), body));
    return client.response();
  }
};

struct Event {
  std::string id, rest;
};

// Whether the value under this key depends on a run's timing or cache.
bool is_of_a_run(std::string_view key) {
  constexpr std::string_view kKeys[] = {"created",       "created_at",      "completed_at",
                                        "cache_n",       "cached_tokens",   "prompt_n",
                                        "tokens_cached", "tokens_evaluated"};
  return std::ranges::find(kKeys, key) != std::end(kKeys) || key.ends_with("latency") ||
         key.ends_with("_ms") || key.ends_with("second");
}

// Ids of Responses are random, so that stored ones cannot be guessed.
void erase_random_ids(std::string& text) {
  for (const char* prefix : {"resp_", "msg_"}) {
    for (size_t at = 0; (at = text.find(prefix, at)) != text.npos;) {
      at += std::string_view(prefix).size();
      size_t end = text.find_first_not_of("0123456789abcdef", at);
      if (end != text.npos && end - at == 32) text.erase(at, 32);
    }
  }
}

// `text` without the numbers that differ between runs.
std::string timeless(const std::string& text) {
  std::string kept;
  size_t from = 0;
  for (size_t colon; (colon = text.find("\":", from)) != text.npos;) {
    size_t quote = text.rfind('"', colon - 1);
    kept += text.substr(from, colon + 2 - from);
    from = colon + 2;
    if (quote == text.npos || !is_of_a_run(text.substr(quote + 1, colon - quote - 1))) continue;
    from = text.find_first_not_of("0123456789.e+-", from);
    if (from == text.npos) return kept;
  }
  return kept + text.substr(from);
}

std::vector<Event> events_of(const std::string& body) {
  std::vector<Event> events;
  for (size_t begin = 0, end; (end = body.find("\n\n", begin)) != body.npos; begin = end + 2) {
    std::string text = body.substr(begin, end - begin);
    Event event;
    if (text.starts_with("id: ")) {
      size_t line = text.find('\n');
      event.id = text.substr(4, line - 4);
      text.erase(0, line + 1);
    }
    erase_random_ids(text);
    event.rest = timeless(text);
    events.push_back(std::move(event));
  }
  return events;
}

TEST_F(Resume, EveryApiGoesOnWhereItWas) {
  start();
  constexpr const char* kMessages = R"("messages":[{"role":"user","content":"Hi"}])";
  struct Case {
    std::string path, fields;
  };
  for (const auto& [path, fields] :
       {Case{"/v1/completions", R"("prompt":"Hi","max_tokens":9)"},
        Case{"/v1/chat/completions", fmt::format(R"({},"max_tokens":9)", kMessages)},
        Case{"/v1/messages", fmt::format(R"("model":"tiny",{},"max_tokens":9)", kMessages)},
        Case{"/v1/responses", R"("input":"Hi","max_output_tokens":16)"},
        Case{"/generate", R"("text":"Hi","sampling_params":{"max_new_tokens":9})"},
        Case{"/completion", R"("prompt":"Hi","n_predict":9)"}}) {
    std::string body = fmt::format(R"({{"stream":true,{}}})", fields);
    for (const Event& event : events_of(post(path, body, "").body)) EXPECT_EQ(event.id, "") << path;
    std::vector<Event> whole = events_of(post(path, body, "Last-Event-ID: 0\r\n").body);
    ASSERT_GT(whole.size(), 2U) << path;
    for (size_t had : {size_t{1}, whole.size() / 2, whole.size() - 1}) {
      std::string header = fmt::format("Last-Event-ID: {}\r\n", whole[had - 1].id);
      std::vector<Event> rest = events_of(post(path, body, header).body);
      ASSERT_EQ(rest.size(), whole.size() - had) << path << " after " << whole[had - 1].id;
      for (size_t i = 0; i < rest.size(); ++i) {
        EXPECT_EQ(rest[i].id, whole[had + i].id) << path;
        EXPECT_EQ(rest[i].rest, whole[had + i].rest) << path;
      }
    }
    EXPECT_EQ(post(path, body, "Last-Event-ID: 1,2,3\r\n").status, 400) << path;
    std::string unstreamed = fmt::format("{{{}}}", fields);
    EXPECT_EQ(post(path, unstreamed, "Last-Event-ID: 0\r\n").status, 200) << path;
    EXPECT_EQ(post(path, unstreamed, "Last-Event-ID: 1\r\n").status, 400) << path;
  }
}

}  // namespace
}  // namespace banyan::resume_test
