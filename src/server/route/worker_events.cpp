#include "server/route/worker_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/check.h"

namespace banyan {
namespace {

constexpr size_t kErrorBodyBytesMax = 300;

bool refuses(int http_status) {
  return http_status >= 400 && http_status < 500;
}

}  // namespace

void WorkerEvents::open(KvPosition position) {
  CHECK(!is_open());
  reader_ = {};
  refusal_.clear();
  ClientSinks sinks;
  auto self = shared_from_this();
  uint64_t attempt = ++attempt_;
  sinks.body = [self, attempt](int http_status, std::string_view bytes) {
    if (attempt == self->attempt_) self->take(http_status, bytes);
  };
  sinks.end = [self, attempt](int http_status, const Status& outcome) {
    if (attempt != self->attempt_) return;
    std::string why = outcome ? fmt::format("status {} {}", http_status, self->refusal_)
                              : outcome.error().message;
    self->end(refuses(http_status), why);
  };
  std::string path = position.epoch == 0 ? std::string("/kv/events")
                                         : fmt::format("/kv/events?epoch={}&from={}",
                                                       position.epoch, position.next);
  exchange_ = client_->send({.method = "GET", .path = std::move(path)}, std::move(sinks));
}

void WorkerEvents::take(int http_status, std::string_view bytes) {
  if (http_status != 200) {
    refusal_ += bytes.substr(0, kErrorBodyBytesMax - std::min(kErrorBodyBytesMax, refusal_.size()));
    return;
  }
  reader_.add(bytes);
  uint64_t attempt = attempt_;
  while (attempt == attempt_) {
    Result<std::optional<KvMessage>> message = reader_.next();
    if (!message) return hang_up(message.error().message);
    if (!*message) return;
    if (!sinks_.message(**message)) return hang_up("events are missing");
  }
}

// The client may be inside one of its callbacks now.
void WorkerEvents::hang_up(const std::string& why) {
  uint64_t exchange = exchange_;
  end(false, why);
  boost::asio::post(io_, [self = shared_from_this(), exchange] {
    self->client_->cancel(exchange, "nobody reads it");
  });
}

void WorkerEvents::end(bool refused, const std::string& why) {
  ++attempt_;
  exchange_ = 0;
  if (sinks_.ended) sinks_.ended(refused, why);
}

void WorkerEvents::close() {
  sinks_ = {};
  if (!is_open()) return;
  hang_up("");
}

}  // namespace banyan
