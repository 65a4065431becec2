#include "support/servers/etcd_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string_view>
#include <thread>
#include <utility>

#include "base/check.h"

namespace banyan::test {
namespace {

constexpr const char* kProgram = "/usr/bin/etcd";

sockaddr_in loopback(int port) {
  return {.sin_family = AF_INET,
          .sin_port = htons(static_cast<uint16_t>(port)),
          .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

int free_port() {
  int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  CHECK(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), size) == 0);
  CHECK(::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(descriptor);
  return ntohs(address.sin_port);
}

}  // namespace

bool EtcdServer::installed() {
  return ::access(kProgram, X_OK) == 0;
}

EtcdServer::EtcdServer(TlsFiles tls) : tls_(std::move(tls)) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    port_ = free_port();
    health_port_ = free_port();
    if (start()) return;
  }
  CHECK(false, "etcd in {} did not start", folder_.path());
}

std::vector<std::string> EtcdServer::arguments(const std::string& peers) const {
  std::vector<std::string> all = {kProgram,
                                  "--data-dir",
                                  folder_.path() + "/data",
                                  "--listen-client-urls",
                                  url(),
                                  "--advertise-client-urls",
                                  url(),
                                  "--listen-metrics-urls",  // and /health, without TLS
                                  "http://127.0.0.1:" + std::to_string(health_port_),
                                  "--listen-peer-urls",
                                  peers,
                                  "--initial-advertise-peer-urls",
                                  peers,
                                  "--initial-cluster",
                                  "default=" + peers};
  if (tls_.empty()) return all;
  for (const std::string& argument :
       {std::string("--cert-file"), tls_.certificate, std::string("--key-file"), tls_.key,
        std::string("--client-cert-auth"), std::string("--trusted-ca-file"),
        tls_.authorities.front()}) {
    all.push_back(argument);
  }
  return all;
}

bool EtcdServer::start() {
  std::vector<std::string> words = arguments("http://127.0.0.1:" + std::to_string(free_port()));
  std::vector<char*> pointers;
  for (std::string& argument : words) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  process_ = ::fork();
  CHECK(process_ >= 0);
  if (process_ == 0) {
    int log = ::open((folder_.path() + "/log").c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(log, 1);
    ::dup2(log, 2);
    ::execv(kProgram, pointers.data());
    ::_exit(127);
  }
  for (int i = 0; i < 2000; ++i) {
    if (answers()) return true;
    if (::waitpid(process_, nullptr, WNOHANG) == process_) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(false, "etcd in {} does not answer", folder_.path());
}

bool EtcdServer::answers() const {
  int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval patience = {.tv_sec = 1};
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address = loopback(health_port_);
  std::string answer(4096, '\0');
  ssize_t size = 0;
  if (::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    std::string_view question = "GET /health HTTP/1.0\r\n\r\n";
    if (::send(descriptor, question.data(), question.size(), MSG_NOSIGNAL) > 0) {
      size = ::recv(descriptor, answer.data(), answer.size(), MSG_WAITALL);
    }
  }
  ::close(descriptor);
  answer.resize(static_cast<size_t>(std::max<ssize_t>(0, size)));
  return answer.find("\"true\"") != answer.npos;
}

EtcdServer::~EtcdServer() {
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

std::string EtcdServer::url() const {
  return (tls_.empty() ? "http" : "https") + ("://127.0.0.1:" + std::to_string(port_));
}

void EtcdServer::signal(int number) {
  ::kill(process_, number);
}

}  // namespace banyan::test
