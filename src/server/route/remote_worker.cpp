#include "server/route/remote_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace banyan {
namespace {

std::chrono::steady_clock::duration duration_of_s(double s) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(s));
}

HttpClient::Headers headers_of(const RouteConfig& config) {
  if (config.worker_api_key.empty()) return {};
  return {{"Authorization", "Bearer " + config.worker_api_key}};
}

constexpr size_t kAnswerBytesMax = 64 << 10;

}  // namespace

Result<std::shared_ptr<RemoteWorker>> RemoteWorker::open(boost::asio::io_context& io,
                                                         const std::string& url,
                                                         const RouteConfig& config,
                                                         std::shared_ptr<const TlsContext> tls) {
  return std::make_shared<RemoteWorker>(io, TRY(parse_server_url(url)), url, config,
                                        std::move(tls));
}

RemoteWorker::RemoteWorker(boost::asio::io_context& io, ServerUrl parsed, std::string url,
                           const RouteConfig& config, std::shared_ptr<const TlsContext> tls)
    : url_(std::move(url)),
      config_(config),
      client_(io, std::move(parsed), headers_of(config), std::move(tls)) {}

void RemoteWorker::tick(SteadyTime now) {
  if (question_ != 0 && now - asked_ > duration_of_s(config_.health_timeout_s)) {
    uint64_t question = std::exchange(question_, 0);
    client_.cancel(question, "no answer");
    return give_up(fmt::format("it has not answered for {} s", config_.health_timeout_s));
  }
  if (stalls(now)) {
    return give_up(
        fmt::format("it runs requests and has taken no step for {} s", config_.stall_timeout_s));
  }
  if (question_ == 0 && now - asked_ >= duration_of_s(config_.health_interval_s)) ask(now);
}

// A worker without requests makes no progress.
bool RemoteWorker::stalls(SteadyTime now) {
  if (!info_ || info_->running + info_->queued == 0 || info_->progress != progress_) {
    progressed_ = now;
    progress_ = info_ ? info_->progress : -1;
    return false;
  }
  if (now - progressed_ < duration_of_s(config_.stall_timeout_s)) return false;
  progressed_ = now;  // gets another chance
  return true;
}

void RemoteWorker::ask(SteadyTime now) {
  asked_ = now;
  answer_.clear();
  uint64_t number = ++questions_;
  ClientSinks sinks;
  auto self = shared_from_this();
  sinks.body = [self, number](int, std::string_view piece) {
    if (number == self->questions_ && self->answer_.size() < kAnswerBytesMax) {
      self->answer_ += piece;
    }
  };
  sinks.end = [self, number](int status, const Status& outcome) {
    bool awaited = number == self->questions_ && std::exchange(self->question_, 0) != 0;
    if (awaited) self->take(status, outcome);
  };
  question_ = client_.send({.method = "GET", .path = "/worker/info"}, std::move(sinks));
}

void RemoteWorker::take(int status, const Status& outcome) {
  if (outcome && status == 503) {
    if (auto why = read_engine_hangs(answer_)) return give_up(*why);
  }
  Result<WorkerInfo> info = std::unexpected(Error{});
  if (!outcome) {
    info = std::unexpected(outcome.error());
  } else if (status != 200) {
    info = corrupt("/worker/info answers with status {}", status);
  } else {
    info = read_worker_info(answer_);
  }
  if (!info) return suspect(info.error().message);
  if (!info_ || !told_ || info->epoch != epoch_) {
    spdlog::info("worker {}: {}, {}", url_, info->model.empty() ? "loading" : "ready",
                 info->identity);
    told_ = !info->model.empty();
  }
  if (info->epoch != epoch_) failures_ = 0;  // another process
  epoch_ = info->epoch;
  name_ = fmt::format("{:08x}", static_cast<uint32_t>(epoch_));
  info_ = *std::move(info);
  ++answers_;
  if (events_.answered) events_.answered();
}

void RemoteWorker::suspect(const std::string& why) {
  if (info_ || !told_) spdlog::warn("worker {} gets no requests: {}", url_, why);
  told_ = true;
  info_.reset();
  asked_ = std::min(asked_, std::chrono::steady_clock::now() - duration_of_s(0.02));
}

void RemoteWorker::give_up(const std::string& why) {
  suspect(why);
  if (events_.lost) events_.lost(why);
}

void RemoteWorker::failed(SteadyTime now) {
  if (++failures_ < config_.breaker_failures) return;
  spdlog::warn("worker {} gets no requests for {} s: {} in a row failed there", url_,
               config_.breaker_s, failures_);
  failures_ = 0;
  closed_until_ = now + duration_of_s(config_.breaker_s);
}

// A few more than it runs, so that it never waits for the router.
bool RemoteWorker::has_room(SteadyTime now) const {
  if (!is_ready() || now < closed_until_) return false;
  int64_t ahead = std::max<int64_t>(2, info_->running_max / 4);
  return in_flight < info_->running_max + std::min(ahead, info_->queued_max);
}

void RemoteWorker::stop() {
  events_ = {};
  if (uint64_t question = std::exchange(question_, 0); question != 0) {
    client_.cancel(question, "the router ends");
  }
}

}  // namespace banyan
