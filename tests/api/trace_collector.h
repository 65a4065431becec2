// An OpenTelemetry collector on loopback that stores what it receives, and can refuse or hang.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "api/client.h"
#include "base/json.h"
#include "support/servers/loopback_server.h"

namespace banyan::test {

class TraceCollector {
 public:
  ~TraceCollector() { server_.stop(); }

  std::string url() const { return server_.url() + "/v1/traces"; }
  std::atomic<bool> hangs = false;  // accepts requests and never answers
  std::atomic<int> refusals = 0;    // this many more requests get `refusal`
  std::atomic<int> refusal = 503;

  // The accepted spans of that name, once there are that many, or after a timeout.
  std::vector<Json> spans(const std::string& name, size_t count) {
    auto named = [&] {
      std::vector<Json> found;
      for (const Json& span : spans_) {
        if (span["name"] == name) found.push_back(span);
      }
      return found;
    };
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                      [&] { return named().size() >= count; });
    return named();
  }
  // Waits for a request, answered or not.
  bool was_asked() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                             [this] { return !heads_.empty(); });
  }
  std::vector<std::string> heads() {
    std::scoped_lock lock(mutex_);
    return heads_;
  }

 private:
  bool answer(int connection, const std::string& head, const std::string& body) {
    bool silent = hangs, refuses = !silent && refusals.fetch_sub(1) > 0;
    {
      std::scoped_lock lock(mutex_);
      heads_.push_back(head);
      if (!silent && !refuses) keep(parse_json(body, "spans").value());
    }
    changed_.notify_all();
    if (silent) return true;
    std::string status = refuses ? std::to_string(refusal) + " No" : "200 OK";
    send_all(connection, "HTTP/1.1 " + status + "\r\nContent-Length: 2\r\n\r\n{}");
    return true;
  }

  void keep(const Json& body) {
    for (const Json& resource : body["resourceSpans"]) {
      for (const Json& scope : resource["scopeSpans"]) {
        for (const Json& span : scope["spans"]) spans_.push_back(span);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Json> spans_;
  std::vector<std::string> heads_;
  LoopbackServer server_{[this](int connection, const std::string& head, const std::string& body) {
    return answer(connection, head, body);
  }};
};

// The value of an attribute as text, which OTLP also uses for integers.
inline std::string attribute(const Json& span, const std::string& name) {
  for (const Json& each : span["attributes"]) {
    if (each["key"] != name) continue;
    const Json& value = each["value"].front();
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
  return "none";
}

}  // namespace banyan::test
