#include "client/etcd_client.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "base/first_line.h"

namespace banyan {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);
constexpr size_t kAnswerBytesMax = 4 << 20;
// After a login that was refused.
constexpr auto kLoginPause = std::chrono::seconds(5);

// The first key after all keys with the prefix.
std::string end_of(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (!prefix.empty()) ++prefix.back();
  return prefix;
}

Result<std::string> read_password(const EtcdLogin& login) {
  std::string password = TRY(read_first_line("--etcd-password-file", login.password_file));
  if (simdjson::validate_utf8(password)) return password;
  return invalid_argument("--etcd-password-file {} is not text in UTF-8", login.password_file);
}

Status status_of(const Result<Json>& answer) {
  if (!answer) return std::unexpected(answer.error());
  return {};
}

}  // namespace

// One request and its answer, with a deadline.
struct EtcdClient::Call {
  explicit Call(boost::asio::io_context& io) : timer(io) {}
  boost::asio::steady_timer timer;
  std::string body;
};

struct EtcdClient::Watch {
  WatchSinks sinks;
  HttpClient* server = nullptr;
  uint64_t exchange = 0;
  std::string carry;  // an incomplete line
};

Result<std::unique_ptr<EtcdClient>> EtcdClient::open(boost::asio::io_context& io,
                                                     const std::vector<std::string>& endpoints,
                                                     const TlsFiles& files,
                                                     const EtcdLogin& login) {
  if (!login.user.empty()) TRY(read_password(login));
  std::unique_ptr<EtcdClient> made(new EtcdClient(io, login));
  std::shared_ptr<const TlsContext> tls = TRY(TlsContext::for_client(files));
  for (const std::string& endpoint : endpoints) {
    auto url = parse_server_url(endpoint);
    if (!url) return invalid_argument("--etcd-endpoints {}", url.error().message);
    made->servers_.push_back(
        std::make_unique<HttpClient>(io, *std::move(url), HttpClient::Headers(), tls));
  }
  return made;
}

EtcdClient::~EtcdClient() = default;

HttpClient::Headers EtcdClient::headers() const {
  if (token_.empty()) return {};
  return {{"Authorization", token_}};
}

// Logs in first, and once more if etcd no longer knows the token, which ends when it is not used.
void EtcdClient::call(const std::string& path, const Json& body, Done done) {
  auto finish = [done](Reply reply) { done(std::move(reply.answer)); };
  if (login_.user.empty()) return send(path, body, finish);
  auto again = [this, path, body, done, finish] {
    log_in([this, path, body, done, finish](const Status& known) {
      if (!known) return done(std::unexpected(known.error()));
      send(path, body, finish);
    });
  };
  if (token_.empty()) return again();
  send(path, body, [again, finish](Reply reply) {
    if (reply.stranger) return again();
    finish(std::move(reply));
  });
}

// An etcd that has no users yet is used without a token.
void EtcdClient::log_in(std::function<void(Status)> done) {
  token_.clear();
  auto now = std::chrono::steady_clock::now();
  Result<std::string> password = read_password(login_);
  if (!password) refused_ = std::unexpected(password.error());
  if (!password || now < log_in_after_) {
    return boost::asio::post(io_, [this, done = std::move(done)] {
      if (!stopped_) done(refused_);
    });
  }
  send("/v3/auth/authenticate", {{"name", login_.user}, {"password", *password}},
       [this, done = std::move(done)](Reply reply) {
         if (reply.open) return done({});
         Result<std::string> token =
             reply.answer ? read_etcd_token(*reply.answer) : std::unexpected(reply.answer.error());
         if (token) {
           token_ = *token;
           return done({});
         }
         refused_ = std::unexpected(token.error());
         if (reply.stranger) log_in_after_ = std::chrono::steady_clock::now() + kLoginPause;
         done(refused_);
       });
}

void EtcdClient::send(const std::string& path, const Json& body, Replied done) {
  auto call = std::make_shared<Call>(io_);
  HttpClient* asked = &server();
  ClientSinks sinks;
  sinks.body = [call](int, std::string_view piece) {
    if (call->body.size() + piece.size() <= kAnswerBytesMax) call->body += piece;
  };
  sinks.end = [this, call, path, done = std::move(done)](int status, const Status& outcome) {
    call->timer.cancel();
    if (stopped_) return;
    bool open = status >= 400 && call->body.contains("authentication is not enabled");
    bool refused = status == 401 || (status == 400 && call->body.contains("auth"));
    Reply reply{.answer = std::unexpected(Error{}), .stranger = refused && !open, .open = open};
    if (!outcome) {
      reply.answer = std::unexpected(outcome.error());
    } else if (status != 200) {
      reply.answer = io_error("etcd: {} answers with status {}: {}", path, status,
                              std::string_view(call->body).substr(0, 200));
    } else {
      reply.answer = parse_json(call->body, "etcd");
    }
    if (!reply.answer && !reply.open) server_ = (server_ + 1) % servers_.size();
    done(std::move(reply));
  };
  uint64_t exchange =
      asked->send({.path = path, .body = body.dump(), .headers = headers()}, std::move(sinks));
  call->timer.expires_after(kPatience);
  call->timer.async_wait([asked, exchange](const boost::system::error_code& ec) {
    if (!ec) asked->cancel(exchange, "etcd does not answer");
  });
}

void EtcdClient::list(const std::string& prefix, std::function<void(Result<Listing>)> done) {
  Json body = {{"key", to_base64(prefix)}, {"range_end", to_base64(end_of(prefix))}};
  call("/v3/kv/range", body, [done = std::move(done)](Result<Json> answer) {
    if (!answer) return done(std::unexpected(answer.error()));
    done(read_etcd_listing(*answer));
  });
}

void EtcdClient::grant(int64_t ttl_s, std::function<void(Result<int64_t>)> done) {
  call("/v3/lease/grant", {{"TTL", ttl_s}}, [done = std::move(done)](Result<Json> answer) {
    if (!answer) return done(std::unexpected(answer.error()));
    done(read_etcd_lease(*answer));
  });
}

void EtcdClient::keep_alive(int64_t lease, std::function<void(Status)> done) {
  call("/v3/lease/keepalive", {{"ID", std::to_string(lease)}},
       [done = std::move(done)](Result<Json> answer) {
         if (!answer) return done(std::unexpected(answer.error()));
         done(read_etcd_renewal(*answer));
       });
}

void EtcdClient::put(const std::string& key, const std::string& value, int64_t lease,
                     std::function<void(Status)> done) {
  Json body = {
      {"key", to_base64(key)}, {"value", to_base64(value)}, {"lease", std::to_string(lease)}};
  call("/v3/kv/put", body,
       [done = std::move(done)](Result<Json> answer) { done(status_of(answer)); });
}

void EtcdClient::revoke(int64_t lease, std::function<void(Status)> done) {
  call("/v3/lease/revoke", {{"ID", std::to_string(lease)}},
       [done = std::move(done)](Result<Json> answer) { done(status_of(answer)); });
}

// ---- Changes ------------------------------------------------------------------------------------

void EtcdClient::watch(const std::string& prefix, int64_t after_revision, WatchSinks sinks) {
  auto watch = std::make_shared<Watch>();
  watch->sinks = std::move(sinks);
  watch->server = &server();
  watch_ = watch;
  Json body = {{"create_request",
                {{"key", to_base64(prefix)},
                 {"range_end", to_base64(end_of(prefix))},
                 {"start_revision", std::to_string(after_revision + 1)}}}};
  ClientSinks bytes;
  bytes.body = [this, watch](int http_status, std::string_view piece) {
    if (watch_ != watch) return;
    if (http_status != 200) return end_watch(fmt::format("status {}", http_status));
    watch->carry += piece;
    for (size_t end; watch_ == watch && (end = watch->carry.find('\n')) != std::string::npos;) {
      std::string line = watch->carry.substr(0, end);
      watch->carry.erase(0, end + 1);
      take_watch_line(*watch, line);
    }
    if (watch->carry.size() > kAnswerBytesMax) end_watch("a line without an end");
  };
  bytes.end = [this, watch](int, const Status& outcome) {
    watch->exchange = 0;
    if (watch_ == watch) end_watch(outcome ? "it ended" : outcome.error().message);
  };
  watch->exchange = server().send({.path = "/v3/watch", .body = body.dump(), .headers = headers()},
                                  std::move(bytes));
}

void EtcdClient::take_watch_line(Watch& watch, std::string_view line) {
  Result<std::vector<Change>> changes = read_etcd_changes(line);
  if (!changes) return end_watch(changes.error().message);
  if (!changes->empty()) watch.sinks.changed(*changes);
}

void EtcdClient::end_watch(const std::string& why) {
  std::shared_ptr<Watch> ended = std::exchange(watch_, nullptr);
  if (!ended) return;
  boost::asio::post(io_, [ended] {
    if (ended->exchange != 0) ended->server->cancel(ended->exchange, "nobody reads it");
  });
  if (!stopped_) ended->sinks.ended(why);
}

void EtcdClient::stop() {
  stopped_ = true;
  end_watch("");
  auto now = std::chrono::steady_clock::time_point::max();
  for (const auto& server : servers_) server->cancel_older_than(now, "the end");
}

}  // namespace banyan
