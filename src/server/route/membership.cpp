#include "server/route/membership.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace banyan {
namespace {

constexpr double kRetry_s = 0.5, kListAgain_s = 3;

std::chrono::steady_clock::duration in_seconds(double s) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(s));
}

std::string prefix_of(const EtcdConfig& config) {
  return fmt::format("/banyan/{}/workers/", config.cluster);
}

// Workers are named by their address, so a restarted one replaces its own entry.
Result<std::string> key_of(const EtcdConfig& config) {
  ServerUrl url = TRY(parse_server_url(config.advertise_url));
  return prefix_of(config) + url.authority + url.prefix;
}

// Empty: the value is not one that this router understands.
std::string url_of(const std::string& value) {
  Result<Json> json = parse_json(value, "a worker's key", {.bytes_max = 4096});
  if (!json || !json->is_object()) return {};
  Json url = json->value("url", Json());
  return url.is_string() ? url.get<std::string>() : std::string();
}

}  // namespace

Status EtcdConfig::validate() const {
  if (!used()) return {};
  bool plain = std::ranges::all_of(cluster, [](char c) {
    return c == '-' || c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
  });
  if (cluster.empty() || !plain) {
    return invalid_argument("--etcd-cluster {}: letters, digits, -, _ and . are allowed", cluster);
  }
  for (const std::string& endpoint : endpoints) {
    auto url = parse_server_url(endpoint);
    if (!url) return invalid_argument("--etcd-endpoints {}", url.error().message);
  }
  if (login.user.empty() != login.password_file.empty()) {
    return invalid_argument("--etcd-user and --etcd-password-file must be given together");
  }
  if (!simdjson::validate_utf8(login.user)) return invalid_argument("--etcd-user is not in UTF-8");
  return tls.validate();
}

// ---- Workers ------------------------------------------------------------------------------------

Result<std::unique_ptr<WorkerRegistration>> WorkerRegistration::start(boost::asio::io_context& io,
                                                                      const EtcdConfig& config) {
  TRY(key_of(config));
  std::unique_ptr<WorkerRegistration> made(new WorkerRegistration(io, config));
  made->etcd_ = TRY(EtcdClient::open(io, config.endpoints, config.tls, config.login));
  made->step();
  return made;
}

WorkerRegistration::WorkerRegistration(boost::asio::io_context& io, const EtcdConfig& config)
    : config_(config), timer_(io) {}

WorkerRegistration::~WorkerRegistration() = default;

// Takes a lease, writes the key, then renews the lease repeatedly.
void WorkerRegistration::step() {
  if (left_) return;
  if (lease_ != 0) {
    return etcd_->keep_alive(lease_, [this](const Status& outcome) { renewed(outcome); });
  }
  etcd_->grant(config_.ttl_s, [this](const Result<int64_t>& lease) {
    if (!lease) return renewed(std::unexpected(lease.error()));
    Json value = {{"url", config_.advertise_url}};
    etcd_->put(key_of(config_).value(), value.dump(), *lease,
               [this, lease = *lease](const Status& outcome) {
                 if (outcome) lease_ = lease;
                 renewed(outcome);
               });
  });
}

void WorkerRegistration::renewed(const Status& outcome) {
  if (left_) return;
  if (outcome) {
    if (std::exchange(told_, false)) spdlog::info("etcd answers again");
    return wait(static_cast<double>(config_.ttl_s) / 3);
  }
  if (outcome.error().code == ErrorCode::kNotFound && std::exchange(lease_, 0) != 0) {
    return wait(0);  // it has expired
  }
  if (!std::exchange(told_, true)) {
    spdlog::warn("routers may not hear of this worker: etcd: {}", outcome.error().message);
  }
  wait(kRetry_s);
}

void WorkerRegistration::wait(double s) {
  timer_.expires_after(in_seconds(s));
  timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) step();
  });
}

void WorkerRegistration::leave() {
  if (std::exchange(left_, true)) return;
  timer_.cancel();
  if (lease_ != 0) etcd_->revoke(lease_, [](const Status&) {});
}

// ---- Routers ------------------------------------------------------------------------------------

Result<std::unique_ptr<WorkerMembership>> WorkerMembership::start(boost::asio::io_context& io,
                                                                  const EtcdConfig& config,
                                                                  Sinks sinks) {
  TRY(config.validate());
  std::unique_ptr<WorkerMembership> made(new WorkerMembership(io, config, std::move(sinks)));
  made->etcd_ = TRY(EtcdClient::open(io, config.endpoints, config.tls, config.login));
  made->list();
  return made;
}

WorkerMembership::WorkerMembership(boost::asio::io_context& io, const EtcdConfig& config,
                                   Sinks sinks)
    : config_(config), sinks_(std::move(sinks)), timer_(io) {}

WorkerMembership::~WorkerMembership() = default;

void WorkerMembership::list() {
  etcd_->list(prefix_of(config_), [this](const Result<EtcdClient::Listing>& listing) {
    take(listing);
    timer_.expires_after(in_seconds(listing ? kListAgain_s : kRetry_s));
    timer_.async_wait([this](const boost::system::error_code& ec) {
      if (!ec) list();
    });
  });
}

void WorkerMembership::take(const Result<EtcdClient::Listing>& listing) {
  if (!listing) {
    if (!std::exchange(told_, true)) {
      spdlog::warn("etcd is away, and {} workers are kept: {}", members_.size(),
                   listing.error().message);
    }
    return;
  }
  if (std::exchange(told_, false)) spdlog::info("etcd answers again");
  std::map<std::string, std::string> gone = members_;
  for (const EtcdClient::Entry& entry : listing->entries) {
    gone.erase(entry.key);
    set(entry.key, url_of(entry.value));
  }
  for (const auto& [key, url] : gone) remove(key);
  if (std::exchange(watching_, true)) return;
  etcd_->watch(prefix_of(config_), listing->revision,
               {.changed =
                    [this](std::span<const EtcdClient::Change> changes) {
                      for (const EtcdClient::Change& one : changes) change(one);
                    },
                .ended =
                    [this](const std::string& why) {
                      watching_ = false;
                      spdlog::debug("etcd: the watch ended: {}", why);
                      timer_.expires_after(in_seconds(kRetry_s));
                      timer_.async_wait([this](const boost::system::error_code& ec) {
                        if (!ec) list();
                      });
                    }});
}

void WorkerMembership::change(const EtcdClient::Change& change) {
  if (change.removed) return remove(change.entry.key);
  set(change.entry.key, url_of(change.entry.value));
}

void WorkerMembership::set(const std::string& key, const std::string& url) {
  auto known = members_.find(key);
  if (known != members_.end() && known->second == url) return;
  if (known != members_.end()) remove(key);
  if (url.empty()) {
    spdlog::warn("etcd: {} is no worker that this router understands", key);
    return;
  }
  members_.emplace(key, url);
  sinks_.joined(url);
}

void WorkerMembership::remove(const std::string& key) {
  auto known = members_.find(key);
  if (known == members_.end()) return;
  std::string url = std::move(known->second);
  members_.erase(known);
  sinks_.left(url);
}

void WorkerMembership::stop() {
  timer_.cancel();
  etcd_->stop();
}

}  // namespace banyan
