#include "client/etcd_client.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/error.h"

namespace banyan {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);
constexpr size_t kAnswerBytesMax = 4 << 20;
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string to_base64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) {
      three = three << 8 | (k < count ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kAlphabet[three >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

// Empty if it is not valid.
std::string from_base64(std::string_view text) {
  std::string bytes;
  uint32_t buffer = 0;
  int bits = 0;
  for (char c : text) {
    if (c == '=') break;
    size_t value = kAlphabet.find(c);
    if (value == kAlphabet.npos) return {};
    buffer = buffer << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(buffer >> bits & 255);
  }
  return bytes;
}

// The first key after all keys with the prefix.
std::string end_of(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (!prefix.empty()) ++prefix.back();
  return prefix;
}

std::string text_of(const Json& json, const char* name) {
  auto found = json.is_object() ? json.find(name) : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The gateway writes 64-bit numbers as strings and omits zeros.
int64_t number_of(const Json& json, const char* name) {
  if (!json.is_object()) return 0;
  auto found = json.find(name);
  if (found == json.end()) return 0;
  if (found->is_number_integer()) return found->get<int64_t>();
  int64_t number = 0;
  std::string text = found->is_string() ? found->get<std::string>() : "";
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Json member(const Json& json, const char* name) {
  return json.is_object() ? json.value(name, Json()) : Json();
}

EtcdClient::Entry entry_of(const Json& json) {
  return {from_base64(text_of(json, "key")), from_base64(text_of(json, "value"))};
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
                                                     const TlsFiles& files) {
  std::unique_ptr<EtcdClient> made(new EtcdClient(io));
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

void EtcdClient::call(std::string path, const Json& body, std::function<void(Result<Json>)> done) {
  auto call = std::make_shared<Call>(io_);
  HttpClient* asked = &server();
  ClientSinks sinks;
  sinks.body = [call](int, std::string_view piece) {
    if (call->body.size() + piece.size() <= kAnswerBytesMax) call->body += piece;
  };
  sinks.end = [this, call, path, done = std::move(done)](int status, const Status& outcome) {
    call->timer.cancel();
    if (stopped_) return;
    Result<Json> answer = std::unexpected(Error{});
    if (!outcome) {
      answer = std::unexpected(outcome.error());
    } else if (status != 200) {
      answer = io_error("etcd: {} answers with status {}: {}", path, status,
                        std::string_view(call->body).substr(0, 200));
    } else {
      answer = parse_json(call->body, "etcd");
    }
    if (!answer) server_ = (server_ + 1) % servers_.size();
    done(std::move(answer));
  };
  uint64_t exchange = asked->send({.path = std::move(path), .body = body.dump()}, std::move(sinks));
  call->timer.expires_after(kPatience);
  call->timer.async_wait([asked, exchange](const boost::system::error_code& ec) {
    if (!ec) asked->cancel(exchange, "etcd does not answer");
  });
}

void EtcdClient::list(const std::string& prefix, std::function<void(Result<Listing>)> done) {
  Json body = {{"key", to_base64(prefix)}, {"range_end", to_base64(end_of(prefix))}};
  call("/v3/kv/range", body, [done = std::move(done)](Result<Json> answer) {
    if (!answer) return done(std::unexpected(answer.error()));
    Listing listing{.revision = number_of(member(*answer, "header"), "revision")};
    if (listing.revision == 0) return done(corrupt("etcd: the list of keys has no revision"));
    for (const Json& entry : member(*answer, "kvs")) listing.entries.push_back(entry_of(entry));
    done(std::move(listing));
  });
}

void EtcdClient::grant(int64_t ttl_s, std::function<void(Result<int64_t>)> done) {
  call("/v3/lease/grant", {{"TTL", ttl_s}}, [done = std::move(done)](Result<Json> answer) {
    if (!answer) return done(std::unexpected(answer.error()));
    int64_t lease = number_of(*answer, "ID");
    if (lease == 0) return done(corrupt("etcd: the lease has no id"));
    done(lease);
  });
}

void EtcdClient::keep_alive(int64_t lease, std::function<void(Status)> done) {
  call("/v3/lease/keepalive", {{"ID", std::to_string(lease)}},
       [done = std::move(done)](Result<Json> answer) {
         if (!answer) return done(std::unexpected(answer.error()));
         bool runs = number_of(member(*answer, "result"), "TTL") > 0;
         done(runs ? Status() : not_found("the lease has expired"));
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
  watch->exchange = server().send({.path = "/v3/watch", .body = body.dump()}, std::move(bytes));
}

void EtcdClient::take_watch_line(Watch& watch, std::string_view line) {
  Result<Json> json = parse_json(line, "etcd");
  if (!json) return end_watch(json.error().message);
  Json result = member(*json, "result");
  if (!result.is_object()) return end_watch("it answers with an error");
  if (result.value("canceled", false)) return end_watch("the changes are compacted");
  std::vector<Change> changes;
  for (const Json& event : member(result, "events")) {
    changes.push_back({text_of(event, "type") == "DELETE", entry_of(member(event, "kv"))});
  }
  if (!changes.empty()) watch.sinks.changed(changes);
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
