// An HTTP client over a raw socket, for requests that a normal client would not send.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace banyan::test {

constexpr int kPatienceMs = 20000;  // a test that waits this long has failed

struct Response {
  int status = 0;
  std::string head;  // with the status line
  std::string body;  // of a stream: what came, chunks taken apart

  bool has(std::string_view text) const { return head.find(text) != head.npos; }
};

class Client {
 public:
  explicit Client(int port, bool connected = true) : port_(port) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connected) connect();
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Client(Client&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), port_(other.port_), input_(other.input_) {}

  bool connect() {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  // False if the server closed before it took everything.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Reads until `text` has arrived and returns everything up to its end, or all there is if the
  // server closes.
  std::string read_until(std::string_view text) {
    while (true) {
      size_t found = input_.find(text);
      if (found != input_.npos) return take(found + text.size());
      if (!read_some()) return take(input_.size());
    }
  }

  std::string read_bytes(size_t count) {
    while (input_.size() < count && read_some()) {
    }
    return take(std::min(count, input_.size()));
  }

  // Reads until the server closes.
  std::string read_all() {
    while (read_some()) {
    }
    return take(input_.size());
  }

  // The next response; status 0 if there is none.
  Response response(bool has_body = true) {
    Response r;
    r.head = read_until("\r\n\r\n");
    if (r.head.starts_with("HTTP/1.1 ")) r.status = std::atoi(r.head.c_str() + 9);
    if (!has_body || r.status == 0) return r;
    if (size_t at = r.head.find("Content-Length: "); at != r.head.npos) {
      r.body = read_bytes(static_cast<size_t>(std::atol(r.head.c_str() + at + 16)));
    } else if (r.has("Transfer-Encoding: chunked")) {
      while (true) {
        auto size = std::strtoul(read_until("\r\n").c_str(), nullptr, 16);
        r.body += read_bytes(size);
        read_until("\r\n");
        if (size == 0) break;
      }
    } else {
      r.body = read_all();
    }
    return r;
  }

  Response get(std::string_view target, std::string_view headers = "") {
    send("GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(headers) +
         "\r\n");
    return response();
  }

  Response post(std::string_view target, std::string_view body) {
    send("POST " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
    return response();
  }

  // Whether the server closes the connection, now or soon.
  bool is_closed() {
    while (read_some()) {
    }
    return closed_;
  }

  void shutdown_send() { ::shutdown(socket_, SHUT_WR); }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  // Closes with a reset.
  void reset() {
    linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void shrink_receive_buffer() {
    int bytes = 4096;
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }

 private:
  bool read_some() {
    pollfd waiting = {.fd = socket_, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, kPatienceMs) <= 0) return false;
    char buffer[4096];
    ssize_t count = recv(socket_, buffer, sizeof buffer, 0);
    if (count <= 0) {
      closed_ = true;
      return false;
    }
    input_.append(buffer, static_cast<size_t>(count));
    return true;
  }

  std::string take(size_t count) {
    std::string taken = input_.substr(0, count);
    input_.erase(0, count);
    return taken;
  }

  int socket_ = -1;
  int port_;
  bool closed_ = false;
  std::string input_;
};

}  // namespace banyan::test
