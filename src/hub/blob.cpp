#include "hub/blob.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/signed.h"
#include "base/units.h"
#include "hub/http.h"

namespace banyan {
namespace {

constexpr int64_t kChunkBytes = 8 << 20;
constexpr int kWorkers = 8;
constexpr int kTriesMax = 5;  // consecutive, without progress
// Minimum progress, so that a hub that trickles data does not hold us forever.
constexpr int64_t kProgressBytes = 64 << 10;

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

bool is_hex(const std::string& text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Computes the digest that `etag` should equal from the open file; nothing if the etag is not a
// content hash.
Result<std::optional<std::string>> digest_as(const std::string& etag, int descriptor,
                                             int64_t bytes) {
  bool sha256 = etag.size() == 64 && is_hex(etag), git = etag.size() == 40 && is_hex(etag);
  if (!sha256 && !git) return std::nullopt;
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                  EVP_MD_CTX_free);
  EVP_DigestInit_ex(context.get(), sha256 ? EVP_sha256() : EVP_sha1(), nullptr);
  std::string header = fmt::format("blob {}", bytes);
  if (git) EVP_DigestUpdate(context.get(), header.c_str(), header.size() + 1);  // including its NUL
  std::vector<char> buffer(1 << 20);
  for (int64_t offset = 0; offset < bytes;) {
    ssize_t count = pread(descriptor, buffer.data(), buffer.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return io_error("cannot read what was downloaded: {}", std::strerror(errno));
    EVP_DigestUpdate(context.get(), buffer.data(), as_size(count));
    offset += count;
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(context.get(), digest, &size);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

// A download in progress. A second file lists the complete chunks, one per line, for resuming.
class Download {
 public:
  Download(const HubFile& file, const std::string& folder, const BytesSink& progress)
      : file_(file),
        path_(folder + "/" + file.etag),
        part_(path_ + ".banyan-incomplete"),
        ledger_(path_ + ".banyan-chunks"),
        progress_(progress),
        descriptor_(open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {}

  Status run() {
    if (descriptor_.get() < 0) return failed("cannot write");
    read_ledger();
    if (ftruncate(descriptor_.get(), file_.bytes) != 0) return failed("cannot write");
    TRY(fetch_chunks());
    if (!ranges_ && !cancelled_) TRY(fetch_whole());
    if (cancelled_) return make_error(ErrorCode::kCancelled, file_.name + ": not wanted any more");
    TRY(check());
    if (fsync(descriptor_.get()) != 0) return failed("cannot write");
    if (std::rename(part_.c_str(), path_.c_str()) != 0) return failed("cannot name");
    std::remove(ledger_.c_str());
    return {};
  }

 private:
  std::unexpected<Error> failed(const char* what) const {
    return io_error("{} {}: {}", what, part_, std::strerror(errno));
  }

  int64_t chunk_count() const { return (file_.bytes + kChunkBytes - 1) / kChunkBytes; }
  int64_t chunk_end(int64_t chunk) const {
    return std::min((chunk + 1) * kChunkBytes, file_.bytes);
  }
  std::string ledger_head() const { return fmt::format("{} {}", file_.bytes, kChunkBytes); }

  void add(int64_t bytes) {
    std::scoped_lock lock(mutex_);
    if (!progress_ || progress_(bytes)) return;
    cancelled_ = true;
    stop_ = true;
  }

  void read_ledger() {
    done_.assign(as_size(chunk_count()), false);
    std::ifstream ledger(ledger_);
    std::string head;
    struct stat info = {};
    bool known = std::getline(ledger, head) && head == ledger_head() &&
                 fstat(descriptor_.get(), &info) == 0 && info.st_size == file_.bytes;
    if (!known) {
      std::ofstream(ledger_, std::ios::trunc) << ledger_head() << "\n";
      return;
    }
    for (int64_t chunk = 0; ledger >> chunk;) {
      if (chunk < 0 || chunk >= chunk_count() || done_[as_size(chunk)]) continue;
      done_[as_size(chunk)] = true;
      add(chunk_end(chunk) - chunk * kChunkBytes);
    }
  }

  Status fetch_chunks() {
    std::atomic<int64_t> next = 0;
    Status first;
    auto work = [&] {
      while (ranges_ && !stop_) {
        int64_t chunk = next++;
        if (chunk >= chunk_count()) return;
        if (done_[as_size(chunk)]) continue;
        Status fetched = fetch(chunk * kChunkBytes, chunk_end(chunk));
        std::scoped_lock lock(mutex_);
        if (!fetched) {
          if (first) first = std::move(fetched);
          stop_ = true;
        } else if (ranges_) {
          std::ofstream(ledger_, std::ios::app) << chunk << "\n";
        }
      }
    };
    {
      std::vector<std::jthread> workers;
      auto count = std::min<int64_t>(kWorkers, chunk_count());
      for (int64_t i = 0; i < count; ++i) workers.emplace_back(work);
    }
    return first;
  }

  // For hubs without range support.
  Status fetch_whole() {
    ranges_ = true;
    stop_ = false;
    whole_ = true;
    return fetch(0, file_.bytes);
  }

  // Downloads the bytes [begin, end) in as many requests as necessary.
  Status fetch(int64_t begin, int64_t end) {
    int64_t at = begin;
    Status last;
    for (int tries = 0; at < end && tries < kTriesMax && ranges_ && !stop_; ++tries) {
      if (tries > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100 << tries));
      int64_t before = at;
      last = request(at, end);
      if (!last && last.error().code != ErrorCode::kIo) return last;
      if (at - before >= kProgressBytes && !whole_) tries = 0;
      if (whole_ && at < end) {  // restart from the beginning
        add(begin - at);
        at = begin;
      }
    }
    if (at >= end || !ranges_ || stop_) return {};
    if (!last) return last;
    return io_error("{}: the hub keeps dropping the connection; run again to resume", file_.name);
  }

  // Advances `at` by the bytes received.
  Status request(int64_t& at, int64_t end) {
    HubRequest request{.url = file_.url, .token = file_.token};
    bool part = !whole_ && (at > 0 || end < file_.bytes);
    if (part) request.begin = at;
    if (part) request.end = end;
    Status problem;
    auto sink = [&](const HubReply& reply, std::string_view piece) {
      if (part && reply.status == 200) {
        ranges_ = false;
        return false;
      }
      std::string wanted = fmt::format("bytes {}-{}/{}", request.begin, end - 1, file_.bytes);
      if (part && reply.header("content-range") != wanted) {
        problem = corrupt("{}: requested {}, the hub sent {}", file_.name, wanted,
                          quote(reply.header("content-range")));
        return false;
      }
      if (std::ssize(piece) > end - at) {
        problem = corrupt("{}: the hub sent more than the announced {}", file_.name,
                          format_bytes(file_.bytes));
        return false;
      }
      problem = write(at, piece);
      if (problem) at += std::ssize(piece);
      if (problem) add(std::ssize(piece));
      return problem.has_value() && !stop_;
    };
    Result<HubReply> reply = send_to_hub(request, sink);
    if (!problem) return problem;
    if (!reply) return std::unexpected(reply.error());
    if (reply->status >= 200 && reply->status < 300) return {};
    std::string text = fmt::format("{}: the hub answers {}", file_.name, reply->status);
    bool may_pass = reply->status >= 500 || reply->status == 429 || reply->status == 408;
    return may_pass ? io_error("{}", text) : not_found("{}", text);
  }

  Status write(int64_t at, std::string_view piece) {
    while (!piece.empty()) {
      ssize_t count = pwrite(descriptor_.get(), piece.data(), piece.size(), at);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return exhausted("cannot write {}: {}", part_, std::strerror(errno));
      piece.remove_prefix(as_size(count));
      at += count;
    }
    return {};
  }

  Status check() {
    std::optional<std::string> digest = TRY(digest_as(file_.etag, descriptor_.get(), file_.bytes));
    if (!digest || *digest == file_.etag) return {};
    std::remove(part_.c_str());
    std::remove(ledger_.c_str());
    return corrupt(
        "{}: the download has the hash {}, but the hub announced {}; it was discarded, run again "
        "to "
        "retry",
        file_.name, *digest, file_.etag);
  }

  const HubFile& file_;
  const std::string path_, part_, ledger_;
  const BytesSink& progress_;
  Descriptor descriptor_;
  std::vector<bool> done_;
  std::mutex mutex_;
  std::atomic<bool> ranges_ = true;  // the hub supports ranges, as far as known
  std::atomic<bool> stop_ = false;   // another chunk failed, or the download was cancelled
  std::atomic<bool> cancelled_ = false;
  bool whole_ = false;
};

}  // namespace

Status fetch_blob(const HubFile& file, const std::string& folder, const BytesSink& progress) {
  struct stat info = {};
  std::string path = folder + "/" + file.etag;
  if (stat(path.c_str(), &info) == 0 && info.st_size == file.bytes) {
    if (!progress || progress(file.bytes)) return {};
    return make_error(ErrorCode::kCancelled, file.name + ": not wanted any more");
  }
  return Download(file, folder, progress).run();
}

}  // namespace banyan
