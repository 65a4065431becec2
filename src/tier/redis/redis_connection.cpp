#include "tier/redis/redis_connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/signed.h"

namespace banyan {
namespace {

// The most elements of a list: a page of SCAN, with a margin. The parser allocates as many as a
// server announces.
constexpr int kElementsMax = 1 << 16;
constexpr size_t kReplyBytesMax = 16 << 20;
constexpr int64_t kLookAroundMs = 100;  // how often it checks whether the store is shutting down

timeval until(RedisConnection::Clock::time_point deadline) {
  auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline -
                                                                    RedisConnection::Clock::now());
  int64_t us = std::max<int64_t>(1000, left.count());
  return {.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
}

redisReplyObjectFunctions* limited_functions(redisReplyObjectFunctions* own) {
  static redisReplyObjectFunctions* const kOwn = own;
  static redisReplyObjectFunctions limited = [] {
    redisReplyObjectFunctions functions = *kOwn;
    functions.createArray = [](const redisReadTask* task, int elements) -> void* {
      return elements > kElementsMax ? nullptr : kOwn->createArray(task, elements);
    };
    return functions;
  }();
  return &limited;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Decodes %2F and the like.
std::string unescape(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    int high = i + 2 < text.size() && text[i] == '%' ? hex_digit(text[i + 1]) : -1;
    int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low < 0) {
      result += text[i];
    } else {
      result += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return result;
}

bool parse_whole(std::string_view text, int most, int& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 && number <= most;
}

// Removes "user:password@" from `rest`.
void take_credentials(std::string_view& rest, RedisAddress& address) {
  size_t at = rest.rfind('@');
  if (at == rest.npos) return;
  std::string_view credentials = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  size_t colon = credentials.find(':');
  if (colon == credentials.npos) {
    address.user = unescape(credentials);
    return;
  }
  address.user = unescape(credentials.substr(0, colon));
  address.password = unescape(credentials.substr(colon + 1));
}

// host[:port]; a host with colons is in brackets.
bool parse_host(std::string_view text, RedisAddress& address) {
  size_t end = text.starts_with('[') ? text.find(']') : text.find(':');
  if (text.starts_with('[')) {
    if (end == text.npos) return false;
    address.host = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
  } else {
    address.host = text.substr(0, end);
    text.remove_prefix(std::min(end, text.size()));
  }
  if (address.host.empty()) return false;
  if (text.empty()) return true;
  return text.starts_with(':') && parse_whole(text.substr(1), 65535, address.port) &&
         address.port > 0;
}

constexpr std::string_view kRedisForms =
    "redis://[[user]:password@]host[:port][/database] or "
    "unix://[[user]:password@]/path[?db=database]";

}  // namespace

std::string RedisAddress::text() const {
  if (!path.empty()) return fmt::format("unix://{}?db={}", path, database);
  return fmt::format("redis://{}:{}/{}", host, port, database);
}

// Errors do not quote the address, which may contain a password.
Result<RedisAddress> parse_redis_url(std::string_view url) {
  RedisAddress address;
  std::string_view rest = url, database;
  if (url.starts_with("rediss://")) {
    return unsupported(
        "rediss:// is not supported: connect through a TLS proxy such as stunnel or HAProxy");
  }
  bool good = true;
  if (url.starts_with("unix://")) {
    rest.remove_prefix(7);
    size_t query = rest.find("?db=");
    if (query != rest.npos) {
      database = rest.substr(query + 4);
      good = !database.empty();
      rest = rest.substr(0, query);
    }
    take_credentials(rest, address);
    address.path = rest;
    good = good && rest.starts_with('/') && rest.size() < 108;
  } else if (url.starts_with("redis://")) {
    rest.remove_prefix(8);
    take_credentials(rest, address);
    size_t slash = std::min(rest.find('/'), rest.size());
    database = rest.substr(std::min(slash + 1, rest.size()));
    good = parse_host(rest.substr(0, slash), address);
  } else {
    good = false;
  }
  if (!database.empty()) good = parse_whole(database, 1 << 20, address.database) && good;
  if (!good) return invalid_argument("the server's address must be {}", kRedisForms);
  return address;
}

bool RedisConnection::fail(std::string why, bool timed_out) {
  trouble_ = fmt::format("{}: {}", address_.text(), why);
  timed_out_ = timed_out;
  close();
  return false;
}

void RedisConnection::close() {
  context_.reset();
}

bool RedisConnection::open(Clock::time_point deadline) {
  if (context_ != nullptr) return true;
  timed_out_ = false;
  return connect(deadline) && sign_in(deadline);
}

bool RedisConnection::connect(Clock::time_point deadline) {
  if (address_.path.empty()) {
    Resolver::Found found = resolver_.find(deadline);
    if (found.addresses.empty()) return fail(found.trouble, found.timed_out);
    for (const std::string& host : found.addresses) {
      connect_to(host, deadline);
      if (context_ != nullptr && context_->err == 0) break;
    }
  } else {
    context_.reset(redisConnectUnixWithTimeout(address_.path.c_str(), until(deadline)));
  }
  if (context_ == nullptr) return fail("no memory to connect");
  if (context_->err != 0) return fail(context_->errstr, Clock::now() >= deadline);
  // From here on only poll() blocks.
  int flags = ::fcntl(context_->fd, F_GETFL);
  if (flags < 0 || ::fcntl(context_->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    return fail(std::strerror(errno));
  }
  (void)::fcntl(context_->fd, F_SETFD, FD_CLOEXEC);
  context_->flags &= ~REDIS_BLOCK;
  context_->reader->fn = limited_functions(context_->reader->fn);
  return true;
}

void RedisConnection::connect_to(const std::string& host, Clock::time_point deadline) {
  context_.reset(redisConnectWithTimeout(host.c_str(), address_.port, until(deadline)));
}

bool RedisConnection::sign_in(Clock::time_point deadline) {
  if (!address_.password.empty()) {
    std::vector<std::string_view> words = {"AUTH"};
    if (!address_.user.empty()) words.push_back(address_.user);
    words.push_back(address_.password);
    append(words);
    if (!expect_ok(deadline)) return false;
  }
  if (address_.database == 0) return true;
  std::string database = std::to_string(address_.database);
  append(std::array<std::string_view, 2>{"SELECT", database});
  return expect_ok(deadline);
}

bool RedisConnection::expect_ok(Clock::time_point deadline) {
  Reply reply = next(deadline);
  if (reply == nullptr) return false;
  if (reply->type == REDIS_REPLY_STATUS) return true;
  return fail(reply->type == REDIS_REPLY_ERROR ? std::string(reply->str, reply->len)
                                               : "a reply of an unexpected type");
}

void RedisConnection::append(std::span<const std::string_view> words) {
  if (context_ == nullptr) return;
  std::vector<const char*> texts;
  std::vector<size_t> lengths;
  for (std::string_view word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  // It fails only when out of memory, and so do the calls after it.
  (void)redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(),
                               lengths.data());
}

bool RedisConnection::wait(short events, Clock::time_point deadline) {
  while (true) {
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return fail("no reply before the deadline", true);
    if (stopping_) return fail("the store is shutting down");
    pollfd poll_on{.fd = context_->fd, .events = events, .revents = 0};
    int count = ::poll(&poll_on, 1, narrow<int>(std::min(left, kLookAroundMs)));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return fail(std::strerror(errno));
  }
}

bool RedisConnection::write_some(bool& all) {
  int done = 0;
  if (redisBufferWrite(context_.get(), &done) != REDIS_OK) return fail(context_->errstr);
  all = done != 0;
  return true;
}

bool RedisConnection::flush(Clock::time_point deadline) {
  if (context_ == nullptr) return false;
  bool all = false;
  while (true) {
    if (!write_some(all)) return false;
    if (all) return true;
    if (!wait(POLLOUT, deadline)) return false;
  }
}

RedisConnection::Reply RedisConnection::next(Clock::time_point deadline) {
  if (!flush(deadline)) return nullptr;
  while (true) {
    void* reply = nullptr;
    if (redisGetReplyFromReader(context_.get(), &reply) != REDIS_OK) {
      fail(context_->errstr);
      return nullptr;
    }
    if (reply != nullptr) return Reply(static_cast<redisReply*>(reply));
    if (context_->reader->len > kReplyBytesMax) {
      fail("a reply longer than any stored record");
      return nullptr;
    }
    if (!wait(POLLIN, deadline)) return nullptr;
    if (redisBufferRead(context_.get()) != REDIS_OK) {
      fail(context_->errstr);
      return nullptr;
    }
  }
}

}  // namespace banyan
