#include "tier/redis/redis_connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <hiredis/sds.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
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
    "redis://[[user]:password@]host[:port][/database], rediss:// for TLS, or "
    "unix://[[user]:password@]/path[?db=database]";

// The value of a query's key that says how to check or give certificates.
Status set_tls_file(std::string_view key, std::string value, TlsFiles& files) {
  if (key == files.authorities_option) {
    files.authorities = {std::move(value)};
  } else if (key == files.certificate_option) {
    files.certificate = std::move(value);
  } else if (key == files.key_option) {
    files.key = std::move(value);
  } else if (key == "ssl_cert_reqs" && value != "required") {
    return unsupported(
        "ssl_cert_reqs={}: the server's certificate is always checked; name the file of its "
        "authority with ssl_ca_certs",
        value);
  } else if (key != "ssl_cert_reqs") {
    return invalid_argument(
        "after a ? the server's address may have {}, {} and {}; a ? in a password is %3F",
        files.authorities_option, files.certificate_option, files.key_option);
  }
  return {};
}

// Removes "?key=value&..." from `rest`.
Status take_query(std::string_view& rest, RedisAddress& address) {
  size_t mark = rest.find('?');
  if (mark == rest.npos) return {};
  std::string_view query = rest.substr(mark + 1);
  rest = rest.substr(0, mark);
  while (!query.empty()) {
    size_t end = std::min(query.find('&'), query.size());
    std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    size_t equals = std::min(pair.find('='), pair.size());
    std::string value = unescape(pair.substr(std::min(equals + 1, pair.size())));
    TRY(set_tls_file(pair.substr(0, equals), std::move(value), address.files));
  }
  return address.files.validate();
}

}  // namespace

std::string RedisAddress::text() const {
  if (!path.empty()) return fmt::format("unix://{}?db={}", path, database);
  return fmt::format("{}://{}:{}/{}", tls ? "rediss" : "redis", host, port, database);
}

// Errors do not quote the address, which may contain a password.
Result<RedisAddress> parse_redis_url(std::string_view url) {
  RedisAddress address;
  std::string_view rest = url, database;
  address.tls = url.starts_with("rediss://");
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
  } else if (url.starts_with("redis://") || address.tls) {
    rest.remove_prefix(address.tls ? 9 : 8);
    if (address.tls) TRY(take_query(rest, address));
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
  channel_.reset();
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
  sent_ = 0;
  if (tls_ != nullptr) {
    channel_ = std::make_unique<TlsChannel>(*tls_, context_->fd, address_.host);
  }
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

// A channel could not go on: waits for its socket if that is the reason.
bool RedisConnection::wait_for_tls(const boost::system::error_code& error,
                                   Clock::time_point deadline) {
  if (error == boost::asio::error::would_block) {
    return wait(channel_->wants() == TlsChannel::Wants::kRead ? POLLIN : POLLOUT, deadline);
  }
  if (error == boost::asio::error::eof) return fail("Server closed the connection");
  return fail(channel_->failure().empty() ? "the TLS connection broke"
                                          : fmt::format("TLS: {}", channel_->failure()));
}

bool RedisConnection::write_some(Clock::time_point deadline, bool& all) {
  if (channel_ == nullptr) {
    int done = 0;
    if (redisBufferWrite(context_.get(), &done) != REDIS_OK) return fail(context_->errstr);
    all = done != 0;
    return all || wait(POLLOUT, deadline);
  }
  std::span<const char> left = std::span(context_->obuf, sdslen(context_->obuf)).subspan(sent_);
  all = left.empty();
  if (all) {
    sdssetlen(context_->obuf, 0);  // sdsclear() has no C++ linkage in this version
    sent_ = 0;
    return true;
  }
  boost::system::error_code error;
  sent_ += channel_->write_some(left, error);
  return !error || wait_for_tls(error, deadline);
}

bool RedisConnection::read_some(Clock::time_point deadline) {
  if (channel_ == nullptr) {
    if (!wait(POLLIN, deadline)) return false;
    return redisBufferRead(context_.get()) == REDIS_OK || fail(context_->errstr);
  }
  std::array<char, 16 << 10> bytes;
  boost::system::error_code error;
  size_t count = channel_->read_some(bytes, error);
  if (error) return wait_for_tls(error, deadline);
  return redisReaderFeed(context_->reader, bytes.data(), count) == REDIS_OK ||
         fail(context_->reader->errstr);
}

bool RedisConnection::flush(Clock::time_point deadline) {
  if (context_ == nullptr) return false;
  bool all = false;
  while (!all) {
    if (!write_some(deadline, all)) return false;
  }
  return true;
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
    if (!read_some(deadline)) return nullptr;
  }
}

}  // namespace banyan
