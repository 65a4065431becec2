#include "tier/redis/redis_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/signed.h"
#include "tier/breaker.h"
#include "tier/queued_store.h"
#include "tier/record.h"
#include "tier/redis/redis_connection.h"

namespace banyan {
namespace {

constexpr int kConnectionsMax = 4;
constexpr size_t kPartBytes = 1 << 20;
constexpr int64_t kSlowestBytesPerSecond = 10'000'000;  // grants more time than TierConfig::timeout
constexpr size_t kKeysAtOnce = 256;                     // in one pipeline
constexpr size_t kRedisTouchesMax = 4096;
constexpr auto kTouchedAgainAfter = std::chrono::hours(1);
constexpr auto kClearWithin = std::chrono::seconds(60);

using Connection = RedisConnection;
using Deadline = Connection::Clock::time_point;

size_t parts_of(const RecordShape& shape) {
  auto bytes = as_size(shape.header_bytes() + shape.payload_bytes);
  return (bytes + kPartBytes - 1) / kPartBytes;
}

// A record's bytes as a sequence of a header and pieces.
class Row {
 public:
  Row(std::span<std::byte> header, std::span<const TierPiece> pieces) {
    parts_.push_back(header);
    for (const TierPiece& piece : pieces) parts_.emplace_back(piece.data, piece.bytes);
    for (auto part : parts_) size_ += part.size();
  }
  size_t size() const { return size_; }

  // Calls `use` with the bytes from `at` on, in contiguous parts.
  template <class Use>
  void each(size_t at, size_t bytes, Use use) const {
    for (std::span<std::byte> part : parts_) {
      if (at >= part.size()) {
        at -= part.size();
        continue;
      }
      std::span<std::byte> here = part.subspan(at, std::min(bytes, part.size() - at));
      use(here);
      bytes -= here.size();
      at = 0;
      if (bytes == 0) return;
    }
  }

 private:
  std::vector<std::span<std::byte>> parts_;
  size_t size_ = 0;
};

class RedisStore final : public QueuedStore {
 public:
  RedisStore(const TierConfig& config, const TierStates& states, const RedisAddress& address,
             std::unique_ptr<TlsContext> tls)
      : QueuedStore(config.connections, std::max(1, config.connections - 1), 1),
        config_(config),
        states_(states),
        address_(address),
        tls_(std::move(tls)),
        prefix_(fmt::format("b1:{}:", states.digest.value().hex())),
        breaker_(address.text()) {
    for (int i = 0; i < config.connections; ++i) {
      connections_.emplace_back(address, tls_.get(), stopping_);
      checksums_.emplace_back(config.key);
    }
    start();
  }
  ~RedisStore() override {
    stopping_ = true;
    stop();
  }

  std::string_view name() const override { return "redis"; }
  void touch(std::span<const TierKey> keys) override;
  void sync() override { drain(); }
  void clear() override;
  TierStats stats() const override;

 private:
  Ended find_now(int worker, std::span<const TierKey> keys, std::vector<uint8_t>& found) override;
  Ended read_now(int worker, const TierJob& job) override;
  Ended write_now(int worker, const TierJob& job) override;
  Clock::time_point idle(int worker) override;

  Checksummer& checksums_of(int worker) { return checksums_[as_size(worker)]; }
  Deadline deadline(int64_t bytes) const;
  std::string part_key(const TierKey& key, size_t part) const;
  std::vector<std::string> part_keys(const TierKey& key) const;
  // Null if no connection can be made.
  Connection* connection(int worker, Deadline deadline);
  TierOutcome lost(const Connection& connection);
  TierOutcome refused(const redisReply& reply);
  TierOutcome exist(Connection& server, const TierKey& key, bool& there, Deadline deadline);
  TierOutcome get_parts(Connection& server, const TierKey& key, const Row& row, Deadline deadline);
  TierOutcome get_part(Connection& server, const Row& row, size_t part, Deadline deadline);
  TierOutcome set_part(Connection& server, const TierKey& key, const Row& row, size_t part,
                       Deadline deadline);
  void append_each(Connection& server, std::string_view command, const TierKey& key);
  bool skip_replies(Connection& server, size_t count, Deadline deadline);
  Status remove_all(Connection& server, Deadline deadline);

  const TierConfig config_;
  const TierStates states_;
  const RedisAddress address_;
  const std::unique_ptr<TlsContext> tls_;  // null: none
  const std::string prefix_;
  std::atomic<bool> stopping_ = false;
  std::vector<Connection> connections_;  // one per thread
  std::vector<Checksummer> checksums_;   // likewise
  Breaker breaker_;

  std::mutex mutex_;
  std::vector<TierKey> touches_;
  std::set<TierKey> touched_;  // since touched_since_
  Clock::time_point touched_since_ = Clock::now();
};

Deadline RedisStore::deadline(int64_t bytes) const {
  return Clock::now() + config_.timeout +
         std::chrono::milliseconds(bytes * 1000 / kSlowestBytesPerSecond);
}

std::string RedisStore::part_key(const TierKey& key, size_t part) const {
  return fmt::format("{}{}:{}:{}/{}#{}", prefix_, key.page.hex(), key.unit_class, config_.rank,
                     config_.ranks, part);
}

std::vector<std::string> RedisStore::part_keys(const TierKey& key) const {
  std::vector<std::string> keys;
  size_t parts = parts_of(record_shape(config_, states_, key.unit_class));
  for (size_t part = 0; part < parts; ++part) keys.push_back(part_key(key, part));
  return keys;
}

Connection* RedisStore::connection(int worker, Deadline deadline) {
  if (!breaker_.closed()) return nullptr;
  Connection& server = connections_[as_size(worker)];
  if (server.open(deadline)) return &server;
  breaker_.failed(server.trouble());
  return nullptr;
}

TierOutcome RedisStore::lost(const Connection& connection) {
  breaker_.failed(connection.trouble());
  return connection.timed_out() ? TierOutcome::kTimeout : TierOutcome::kFailed;
}

// A reply that does not fit the command.
TierOutcome RedisStore::refused(const redisReply& reply) {
  std::string_view why = reply.type == REDIS_REPLY_ERROR ? std::string_view(reply.str, reply.len)
                                                         : "a reply of an unexpected type";
  if (why.starts_with("OOM")) return TierOutcome::kRefused;  // full, and configured not to evict
  breaker_.failed(fmt::format("{}: {}", address_.text(), why));
  return TierOutcome::kFailed;
}

void RedisStore::append_each(Connection& server, std::string_view command, const TierKey& key) {
  std::vector<std::string> keys = part_keys(key);
  std::vector<std::string_view> words = {command};
  words.insert(words.end(), keys.begin(), keys.end());
  server.append(words);
}

bool RedisStore::skip_replies(Connection& server, size_t count, Deadline deadline) {
  for (size_t i = 0; i < count; ++i) {
    if (server.next(deadline) == nullptr) return false;
  }
  return true;
}

RedisStore::Ended RedisStore::find_now(int worker, std::span<const TierKey> keys,
                                       std::vector<uint8_t>& found) {
  found.assign(keys.size(), 0);
  Deadline end = deadline(0);
  Connection* server = connection(worker, end);
  if (server == nullptr) return {TierOutcome::kFailed};
  for (size_t at = 0; at < keys.size(); at += kKeysAtOnce) {
    std::span<const TierKey> some = keys.subspan(at, std::min(kKeysAtOnce, keys.size() - at));
    for (const TierKey& key : some) append_each(*server, "EXISTS", key);
    for (size_t i = 0; i < some.size(); ++i) {
      auto reply = server->next(end);
      if (reply == nullptr) return {lost(*server)};
      if (reply->type != REDIS_REPLY_INTEGER) {
        server->close();
        return {refused(*reply)};
      }
      size_t parts = parts_of(record_shape(config_, states_, some[i].unit_class));
      found[at + i] = reply->integer == static_cast<long long>(parts);
    }
  }
  breaker_.succeeded();
  return {};
}

TierOutcome RedisStore::get_part(Connection& server, const Row& row, size_t part,
                                 Deadline deadline) {
  auto reply = server.next(deadline);
  if (reply == nullptr) return lost(server);
  if (reply->type == REDIS_REPLY_NIL) return TierOutcome::kAbsent;
  if (reply->type != REDIS_REPLY_STRING) return refused(*reply);
  size_t at = part * kPartBytes, bytes = std::min(kPartBytes, row.size() - at);
  if (reply->len != bytes) return TierOutcome::kChecksum;
  const char* from = reply->str;
  row.each(at, bytes, [&](std::span<std::byte> here) {
    std::memcpy(here.data(), from, here.size());
    from += here.size();
  });
  return TierOutcome::kDone;
}

// Requests all parts at once. If one is bad the connection is closed, which drops the replies still
// on their way.
TierOutcome RedisStore::get_parts(Connection& server, const TierKey& key, const Row& row,
                                  Deadline deadline) {
  std::vector<std::string> keys = part_keys(key);
  for (const std::string& name : keys) {
    server.append(std::array<std::string_view, 2>{"GET", name});
  }
  for (size_t part = 0; part < keys.size(); ++part) {
    TierOutcome outcome = get_part(server, row, part, deadline);
    if (outcome == TierOutcome::kDone) continue;
    if (part + 1 < keys.size()) server.close();
    return outcome;
  }
  return TierOutcome::kDone;
}

RedisStore::Ended RedisStore::read_now(int worker, const TierJob& job) {
  const TierKey& key = job.record.key;
  RecordShape shape = record_shape(config_, states_, key.unit_class);
  std::vector<std::byte> header(as_size(shape.header_bytes()));
  Row row(header, job.pieces);
  auto bytes = std::ssize(row);
  Deadline end = deadline(bytes);
  Connection* server = connection(worker, end);
  if (server == nullptr) return {TierOutcome::kFailed};
  TierOutcome outcome = get_parts(*server, key, row, end);
  if (outcome == TierOutcome::kAbsent) breaker_.succeeded();
  if (outcome != TierOutcome::kDone && outcome != TierOutcome::kChecksum) return {outcome};
  breaker_.succeeded();
  if (outcome == TierOutcome::kDone) {
    outcome = check_record(shape, job.record, header, job.pieces, checksums_of(worker));
  }
  if (outcome != TierOutcome::kDone && server->open(end)) {
    append_each(*server, "UNLINK", key);  // so that it is written again
    (void)skip_replies(*server, 1, end);
  }
  return {outcome, bytes};
}

TierOutcome RedisStore::exist(Connection& server, const TierKey& key, bool& there,
                              Deadline deadline) {
  append_each(server, "EXISTS", key);
  auto reply = server.next(deadline);
  if (reply == nullptr) return lost(server);
  if (reply->type != REDIS_REPLY_INTEGER) return refused(*reply);
  there = reply->integer ==
          static_cast<long long>(parts_of(record_shape(config_, states_, key.unit_class)));
  return TierOutcome::kDone;
}

TierOutcome RedisStore::set_part(Connection& server, const TierKey& key, const Row& row,
                                 size_t part, Deadline deadline) {
  size_t at = part * kPartBytes, bytes = std::min(kPartBytes, row.size() - at);
  std::string value, name = part_key(key, part);
  value.reserve(bytes);
  row.each(at, bytes, [&](std::span<std::byte> here) {
    value.append(reinterpret_cast<const char*>(here.data()), here.size());
  });
  std::string seconds = std::to_string(config_.time_to_live.count());
  server.append(std::array<std::string_view, 5>{"SET", name, value, "EX", seconds});
  return server.flush(deadline) ? TierOutcome::kDone : lost(server);
}

RedisStore::Ended RedisStore::write_now(int worker, const TierJob& job) {
  const TierKey& key = job.record.key;
  RecordShape shape = record_shape(config_, states_, key.unit_class);
  Deadline end = deadline(shape.bytes());
  Connection* server = connection(worker, end);
  if (server == nullptr) return {TierOutcome::kRefused};
  bool there = false;
  TierOutcome outcome = exist(*server, key, there, end);
  if (outcome != TierOutcome::kDone || there) return {outcome};
  std::vector<std::byte> header(as_size(shape.header_bytes()));
  seal_record(shape, job.record, 0, job.pieces, header, checksums_of(worker));
  Row row(header, job.pieces);
  size_t parts = parts_of(shape);
  for (size_t part = 0; part < parts && outcome == TierOutcome::kDone; ++part) {
    outcome = set_part(*server, key, row, part, end);
  }
  for (size_t part = 0; part < parts && outcome == TierOutcome::kDone; ++part) {
    auto reply = server->next(end);
    if (reply == nullptr) return {lost(*server)};
    if (reply->type != REDIS_REPLY_STATUS) {
      outcome = refused(*reply);
      if (part + 1 < parts) server->close();
    }
  }
  if (outcome != TierOutcome::kDone) return {outcome};
  breaker_.succeeded();
  return {outcome, std::ssize(row)};
}

void RedisStore::touch(std::span<const TierKey> keys) {
  {
    std::lock_guard lock(mutex_);
    if (Clock::now() > touched_since_ + kTouchedAgainAfter) {
      touched_.clear();
      touched_since_ = Clock::now();
    }
    for (const TierKey& key : keys) {
      if (touches_.size() < kRedisTouchesMax && touched_.insert(key).second) {
        touches_.push_back(key);
      }
    }
    if (touches_.empty()) return;
  }
  idle_by(Clock::now());
}

// Renews the lifetime of used records.
RedisStore::Clock::time_point RedisStore::idle(int worker) {
  std::vector<TierKey> touches;
  {
    std::lock_guard lock(mutex_);
    touches.swap(touches_);
  }
  Clock::time_point later = Clock::now() + std::chrono::hours(1);
  if (touches.empty()) return later;
  Deadline end = deadline(0);
  Connection* server = connection(worker, end);
  if (server == nullptr) return later;
  std::string seconds = std::to_string(config_.time_to_live.count());
  size_t count = 0;
  for (const TierKey& key : touches) {
    for (const std::string& name : part_keys(key)) {
      server->append(std::array<std::string_view, 3>{"EXPIRE", name, seconds});
      ++count;
    }
    if (count < kKeysAtOnce) continue;
    if (!skip_replies(*server, std::exchange(count, 0), end)) {
      (void)lost(*server);
      return later;
    }
  }
  if (!skip_replies(*server, count, end)) (void)lost(*server);
  return later;
}

// Scans all keys of the database, including foreign ones, since a server cannot be asked for a
// prefix.
Status RedisStore::remove_all(Connection& server, Deadline deadline) {
  std::string cursor = "0", pattern = prefix_ + "*";
  do {
    if (!server.open(deadline)) return io_error("{}", server.trouble());
    server.append(
        std::array<std::string_view, 6>{"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"});
    auto reply = server.next(deadline);
    if (reply == nullptr) return io_error("{}", server.trouble());
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_ARRAY) {
      return io_error("{}: SCAN was not answered", address_.text());
    }
    cursor.assign(reply->element[0]->str, reply->element[0]->len);
    std::vector<std::string_view> words = {"UNLINK"};
    for (size_t i = 0; i < reply->element[1]->elements; ++i) {
      const redisReply& key = *reply->element[1]->element[i];
      if (key.type == REDIS_REPLY_STRING) words.emplace_back(key.str, key.len);
    }
    if (words.size() == 1) continue;
    server.append(words);
    auto removed = server.next(deadline);
    if (removed == nullptr) return io_error("{}", server.trouble());
    if (removed->type != REDIS_REPLY_INTEGER) {
      return io_error("{}: UNLINK is not allowed or not supported", address_.text());
    }
  } while (cursor != "0");
  return {};
}

void RedisStore::clear() {
  WritesHeld held(*this);
  Status status;
  // On a thread of its own, in which a closed connection raises no signal.
  std::jthread([&] {
    block_signals();
    Connection server(address_, tls_.get(), stopping_);
    status = remove_all(server, Clock::now() + kClearWithin);
  }).join();
  if (!status) spdlog::warn("the redis store was not cleared: {}", status.error().message);
}

TierStats RedisStore::stats() const {
  std::string trouble = breaker_.trouble();
  return {.health = trouble.empty() ? TierHealth::kOn : TierHealth::kOff, .trouble = trouble};
}

}  // namespace

Result<std::unique_ptr<TierStore>> make_redis_store(const TierConfig& config,
                                                    const TierStates& states) {
  RedisAddress address = TRY(parse_redis_url(config.url));
  if (config.connections < 1 || config.connections > kConnectionsMax) {
    return invalid_argument("the number of connections is {}; it must be from 1 to {}",
                            config.connections, kConnectionsMax);
  }
  if (config.timeout.count() <= 0 || config.time_to_live.count() <= 0) {
    return invalid_argument("the timeout is {} ms and the time to live {} s; both must be above 0",
                            config.timeout.count(), config.time_to_live.count());
  }
  std::unique_ptr<TlsContext> tls;
  if (address.tls) tls = TRY(TlsContext::for_client(address.files));
  return std::make_unique<RedisStore>(config, states, address, std::move(tls));
}

}  // namespace banyan
