// A collector of OpenTelemetry on loopback that keeps what it is sent, and can refuse it or hang.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/client.h"
#include "base/json.h"

namespace banyan::test {

class TraceCollector {
 public:
  TraceCollector() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bool listens = bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                   listen(listener_, 16) == 0 &&
                   getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    EXPECT_TRUE(listens);
    url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/v1/traces";
    acceptor_ = std::jthread([this] { accept_all(); });
  }
  ~TraceCollector() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (int connection : connections_) shutdown(connection, SHUT_RDWR);
    threads_.clear();
    for (int connection : connections_) close(connection);
    close(listener_);
  }

  std::string url;
  std::atomic<bool> hangs = false;  // takes requests and never answers
  std::atomic<int> refusals = 0;    // so many requests more get `refusal`
  std::atomic<int> refusal = 503;

  // The spans of that name that were taken, once there are so many, or when patience ends.
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
  void accept_all() {
    while (true) {
      int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      connections_.push_back(connection);
      threads_.emplace_back([this, connection] { serve(connection); });
    }
  }

  void serve(int connection) {
    std::string input;
    char buffer[4096];
    while (true) {
      size_t head = input.find("\r\n\r\n");
      size_t length_at = input.find("Content-Length: ");
      size_t length =
          length_at < head ? static_cast<size_t>(std::atol(input.c_str() + length_at + 16)) : 0;
      if (head == input.npos || input.size() < head + 4 + length) {
        ssize_t count = recv(connection, buffer, sizeof buffer, 0);
        if (count <= 0) return;
        input.append(buffer, static_cast<size_t>(count));
        continue;
      }
      answer(connection, input.substr(0, head), input.substr(head + 4, length));
      input.erase(0, head + 4 + length);
    }
  }

  void answer(int connection, const std::string& head, const std::string& body) {
    bool silent = hangs, refuses = !silent && refusals.fetch_sub(1) > 0;
    {
      std::scoped_lock lock(mutex_);
      heads_.push_back(head);
      if (!silent && !refuses) keep(parse_json(body, "spans").value());
    }
    changed_.notify_all();
    if (silent) return;
    std::string status = refuses ? std::to_string(refusal) + " No" : "200 OK";
    std::string bytes = "HTTP/1.1 " + status + "\r\nContent-Length: 2\r\n\r\n{}";
    send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  void keep(const Json& body) {
    for (const Json& resource : body["resourceSpans"]) {
      for (const Json& scope : resource["scopeSpans"]) {
        for (const Json& span : scope["spans"]) spans_.push_back(span);
      }
    }
  }

  int listener_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Json> spans_;
  std::vector<std::string> heads_;
  std::vector<int> connections_;
  std::vector<std::jthread> threads_;
  std::jthread acceptor_;
};

// The value of an attribute as text: OTLP's integers are, too.
inline std::string attribute(const Json& span, const std::string& name) {
  for (const Json& each : span["attributes"]) {
    if (each["key"] != name) continue;
    const Json& value = each["value"].front();
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
  return "none";
}

}  // namespace banyan::test
