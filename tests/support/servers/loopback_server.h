// An HTTP server on loopback whose answers are bytes that the test supplies: valid, invalid, or
// none.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace banyan::test {

// The value of a field of a request's head; empty if it has none.
std::string header_field(const std::string& head, std::string_view name);

void send_all(int connection, std::string_view bytes);

class LoopbackServer {
 public:
  // Answers one request on `connection`; the connection ends unless it returns true. Runs on a
  // thread of each connection, until stop().
  using Answer =
      std::function<bool(int connection, const std::string& head, const std::string& body)>;

  explicit LoopbackServer(Answer answer);
  ~LoopbackServer() { stop(); }
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;

  // Ends every connection and waits for their threads. Whatever `answer` uses may go afterwards.
  void stop();

  std::string url() const { return url_; }  // "http://127.0.0.1:PORT"
  int accepted() const { return accepted_; }

 private:
  void accept_all();
  void serve(int connection);

  Answer answer_;
  int listener_;
  std::string url_;
  std::atomic<int> accepted_ = 0;
  std::vector<int> connections_;  // of the accepting thread, and of stop() after it
  std::vector<std::jthread> threads_;
  std::jthread acceptor_;
};

}  // namespace banyan::test
