#include "server/publish/kv_publisher.h"

#include <zmq.h>

#include <array>
#include <chrono>
#include <optional>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/signed.h"

namespace banyan {
namespace {

// Interval between batches, and between checks for replay requests.
constexpr auto kPublishInterval = std::chrono::milliseconds(10);
constexpr uint64_t kEnd = ~uint64_t{0};  // -1

bool is_own(const std::string& endpoint) {
  return endpoint.find('*') != endpoint.npos || endpoint.find("::") != endpoint.npos ||
         endpoint.starts_with("ipc://") || endpoint.starts_with("inproc://");
}

std::string number_frame(uint64_t number) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

std::optional<uint64_t> read_number(const std::string& bytes) {
  if (bytes.size() != sizeof(uint64_t)) return std::nullopt;
  uint64_t number = 0;
  for (char byte : bytes) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

// False: the socket does not accept it now, or is closed.
template <size_t N>
bool send(void* socket, const std::array<const std::string*, N>& frames) {
  for (size_t i = 0; i < N; ++i) {
    int flags = ZMQ_DONTWAIT | (i + 1 < N ? ZMQ_SNDMORE : 0);
    if (zmq_send(socket, frames[i]->data(), frames[i]->size(), flags) < 0) return false;
  }
  return true;
}

// The frames of one message; nothing if there is none.
std::vector<std::string> receive(void* socket) {
  constexpr size_t kFramesMax = 8, kFrameBytesMax = 256;
  std::vector<std::string> frames;
  int more = 1;
  while (more != 0) {
    std::string frame(kFrameBytesMax, '\0');
    int size = zmq_recv(socket, frame.data(), frame.size(), ZMQ_DONTWAIT);
    if (size < 0) return {};
    frame.resize(std::min(as_size(size), kFrameBytesMax));
    if (frames.size() < kFramesMax) frames.push_back(std::move(frame));
    size_t more_size = sizeof more;
    if (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &more_size) != 0) return {};
  }
  return frames;
}

double unix_time_s() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

void KvPublisher::Close::operator()(void* socket) const {
  zmq_close(socket);
}

void KvPublisher::End::operator()(void* context) const {
  zmq_ctx_term(context);
}

Result<KvPublisher::Socket> KvPublisher::socket(int type, const std::string& endpoint, bool binds) {
  Socket socket(zmq_socket(context_.get(), type));
  if (socket == nullptr) return io_error("ZeroMQ: {}", zmq_strerror(zmq_errno()));
  constexpr int kLinger_ms = 500;  // at the end, for subscribers that still read
  zmq_setsockopt(socket.get(), ZMQ_LINGER, &kLinger_ms, sizeof kLinger_ms);
  zmq_setsockopt(socket.get(), ZMQ_SNDHWM, &config_.high_water_mark, sizeof(int));
  int error = binds ? zmq_bind(socket.get(), endpoint.c_str())
                    : zmq_connect(socket.get(), endpoint.c_str());
  if (error == 0) return socket;
  return io_error("--kv-events-config: cannot {} {}: {}", binds ? "listen on" : "connect to",
                  quote(endpoint), zmq_strerror(zmq_errno()));
}

Result<std::unique_ptr<KvPublisher>> KvPublisher::open(const KvPublishConfig& config) {
  std::unique_ptr<KvPublisher> publisher(new KvPublisher(config));
  publisher->context_.reset(zmq_ctx_new());
  if (publisher->context_ == nullptr) return io_error("ZeroMQ: {}", zmq_strerror(zmq_errno()));
  publisher->events_ = TRY(publisher->socket(ZMQ_PUB, config.endpoint, is_own(config.endpoint)));
  if (!config.replay_endpoint.empty()) {
    publisher->replay_ = TRY(publisher->socket(ZMQ_ROUTER, config.replay_endpoint, true));
  }
  return publisher;
}

void KvPublisher::watch(KvAnnouncer& announcer, int64_t page_size_tokens) {
  CHECK(!thread_.joinable());
  page_size_tokens_ = page_size_tokens;
  announcer.on_event([this](const KvEvent& event, std::span<const PrefixToken> tokens, bool first) {
    if (!queue_.add(event, tokens, first)) return;
    {
      std::lock_guard lock(mutex_);
      waiting_ = true;
    }
    changed_.notify_one();
  });
  thread_ = std::thread([this] { run(); });
}

KvPublisher::~KvPublisher() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void KvPublisher::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      auto due = [&] { return waiting_ || stopped_; };
      if (replay_ != nullptr) {
        changed_.wait_for(lock, kPublishInterval, due);
      } else {
        changed_.wait(lock, due);
      }
      // Publishes the rest of the step's events.
      if (waiting_) changed_.wait_for(lock, kPublishInterval, [&] { return stopped_; });
      waiting_ = false;
      if (stopped_) break;
    }
    publish();
    if (replay_ != nullptr) answer_replays();
  }
  publish();
}

void KvPublisher::publish() {
  std::vector<BlockEvent> events = queue_.take();
  if (events.empty()) return;
  if (int64_t overflows = queue_.overflows(); overflows != overflows_) {
    overflows_ = overflows;
    spdlog::warn("KV events came faster than they were sent: subscribers were told to forget all");
  }
  Batch batch = {.number = next_++,
                 .bytes = encode_batch(unix_time_s(), events, page_size_tokens_)};
  std::string number = number_frame(batch.number);
  // Never waits: a slow subscriber misses batches and notices by their numbers.
  send<3>(events_.get(), {&config_.topic, &number, &batch.bytes});
  if (replay_ == nullptr) return;
  kept_.push_back(std::move(batch));
  if (std::ssize(kept_) > config_.batches_kept) kept_.pop_front();
}

// A replay request is {sender, empty, number}.
void KvPublisher::answer_replays() {
  const std::string nothing;
  for (std::vector<std::string> question; !(question = receive(replay_.get())).empty();) {
    std::optional<uint64_t> from;
    if (question.size() == 3) from = read_number(question[2]);
    if (!from) {
      spdlog::warn("a question for KV events is not {{8 bytes}}");
      continue;
    }
    const std::string& asker = question[0];
    for (const Batch& batch : kept_) {
      if (batch.number < *from) continue;
      std::string number = number_frame(batch.number);
      send<4>(replay_.get(), {&asker, &nothing, &number, &batch.bytes});
    }
    std::string end = number_frame(kEnd);
    send<4>(replay_.get(), {&asker, &nothing, &end, &nothing});
  }
}

}  // namespace banyan
