// Streams that are gone on with by Last-Event-ID, in every API that has server-sent events.
#include <fmt/format.h>

#include <regex>
#include <vector>

#include "api/server_fixture.h"
#include "support/api.h"

namespace banyan {
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

// What a run says of its own time is not the same in the next one.
std::string timeless(const std::string& text) {
  static const std::regex kTimes(
      R"re("(created|created_at|completed_at|cached_tokens|[a-z_]*latency|[a-z_]*_ms|[a-z_]*second|cache_n|prompt_n|tokens_cached|tokens_evaluated)":[0-9.e+-]+)re");
  return std::regex_replace(text, kTimes, "");
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
}  // namespace banyan
