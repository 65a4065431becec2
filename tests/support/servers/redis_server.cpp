#include "support/servers/redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iterator>
#include <sstream>
#include <thread>
#include <vector>

#include "base/check.h"

namespace banyan::test {
namespace {

// Debian's redis-tools has the server under the name of its checker; what it is called decides what
// it does. Its package redis-server would start a service on the machine.
std::string server_program() {
  for (const char* path :
       {"/usr/bin/redis-server", "/usr/local/bin/redis-server", "/usr/bin/redis-check-rdb"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return "";
}

int free_port() {
  int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  CHECK(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), size) == 0);
  CHECK(::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(descriptor);
  return ntohs(address.sin_port);
}

}  // namespace

bool RedisServer::installed() {
  return !server_program().empty();
}

RedisServer::RedisServer(const std::string& options, bool tls) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    port_ = free_port();
    if (start(options, tls)) return;
  }
  CHECK(false, "the Redis server in {} did not start", folder_.path());
}

bool RedisServer::start(const std::string& options, bool tls) {
  std::string program = server_program();
  std::istringstream words("redis-server --bind 127.0.0.1 --save --appendonly no --daemonize no" +
                           std::string(tls ? " --port 0 --tls-port " : " --port ") +
                           std::to_string(port_) + " --dir " + folder_.path() + " --unixsocket " +
                           socket() + " " + options);
  std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
    if (argument == "--save") pointers.push_back(const_cast<char*>(""));
  }
  pointers.push_back(nullptr);
  process_ = ::fork();
  CHECK(process_ >= 0);
  if (process_ == 0) {
    int log = ::open((folder_.path() + "/log").c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(log, 1);
    ::dup2(log, 2);
    ::execv(program.c_str(), pointers.data());
    ::_exit(127);
  }
  for (int i = 0; i < 1000; ++i) {
    if (answers()) return true;
    if (::waitpid(process_, nullptr, WNOHANG) == process_) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(false, "the Redis server in {} does not answer", folder_.path());
}

// By its socket, which is its alone and comes after its port.
bool RedisServer::answers() const {
  redisContext* context = redisConnectUnixWithTimeout(socket().c_str(), {.tv_sec = 5});
  CHECK(context != nullptr);
  void* reply = context->err == 0 ? redisCommand(context, "PING") : nullptr;
  if (reply != nullptr) freeReplyObject(reply);
  redisFree(context);
  return reply != nullptr;
}

RedisServer::~RedisServer() {
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

std::string RedisServer::url() const {
  return "redis://127.0.0.1:" + std::to_string(port_);
}

void RedisServer::signal(int number) {
  ::kill(process_, number);
}

std::string RedisServer::command(const std::string& text) {
  redisContext* context = redisConnectWithTimeout("127.0.0.1", port_, {.tv_sec = 5});
  CHECK(context != nullptr);
  std::istringstream stream(text);
  std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  std::string answer = context->errstr;
  if (context->err == 0) {
    auto* reply = static_cast<redisReply*>(
        redisCommandArgv(context, static_cast<int>(pointers.size()), pointers.data(), nullptr));
    answer = reply == nullptr                   ? context->errstr
             : reply->str != nullptr            ? std::string(reply->str, reply->len)
             : reply->type == REDIS_REPLY_ARRAY ? std::to_string(reply->elements)
                                                : std::to_string(reply->integer);
    if (reply != nullptr && reply->type == REDIS_REPLY_ARRAY) {
      answer.clear();
      for (size_t i = 0; i < reply->elements; ++i) {
        answer += std::string(reply->element[i]->str, reply->element[i]->len) + "\n";
      }
    }
    if (reply != nullptr) freeReplyObject(reply);
  }
  redisFree(context);
  return answer;
}

}  // namespace banyan::test
