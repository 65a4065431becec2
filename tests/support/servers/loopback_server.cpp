#include "support/servers/loopback_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace banyan::test {

std::string header_field(const std::string& head, std::string_view name) {
  size_t at = head.find(fmt::format("\r\n{}: ", name));
  if (at == head.npos) return "";
  at += name.size() + 4;
  return head.substr(at, head.find("\r\n", at) - at);
}

void send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

LoopbackServer::LoopbackServer(Answer answer)
    : answer_(std::move(answer)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bool listens = bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                 listen(listener_, 128) == 0 &&
                 getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  EXPECT_TRUE(listens);
  url_ = fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));
  acceptor_ = std::jthread([this] { accept_all(); });
}

void LoopbackServer::stop() {
  if (!acceptor_.joinable()) return;
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (int connection : connections_) shutdown(connection, SHUT_RDWR);
  threads_.clear();
  for (int connection : connections_) close(connection);
  close(listener_);
}

void LoopbackServer::accept_all() {
  while (true) {
    int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    ++accepted_;
    connections_.push_back(connection);
    threads_.emplace_back([this, connection] { serve(connection); });
  }
}

void LoopbackServer::serve(int connection) {
  std::string input;
  char buffer[4096];
  while (true) {
    size_t head_end = input.find("\r\n\r\n");
    std::string head = head_end == input.npos ? "" : input.substr(0, head_end);
    auto length = static_cast<size_t>(std::atol(header_field(head, "Content-Length").c_str()));
    if (head_end == input.npos || input.size() < head_end + 4 + length) {
      ssize_t count = recv(connection, buffer, sizeof buffer, 0);
      if (count <= 0) return;
      input.append(buffer, static_cast<size_t>(count));
      continue;
    }
    if (!answer_(connection, head, input.substr(head_end + 4, length))) break;
    input.erase(0, head_end + 4 + length);
  }
  shutdown(connection, SHUT_RDWR);
}

}  // namespace banyan::test
