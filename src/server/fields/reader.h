// One HTTP/1 request out of bytes as they arrive; no socket.
//
// The grammar is Boost.Beast's. On top of it: limits that hold while reading, and refusal of what
// different readers of one connection could understand differently (two lengths, a length beside
// chunks, any transfer coding but chunked), since behind a proxy that smuggles requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/http.h"

namespace banyan {

struct RequestLimits {
  int64_t header_bytes_max = 16 << 10;
  int64_t body_bytes_max = 64 << 20;
  int body_chunks_max = 65536;
};

// Why a request is answered before any handler sees it. The connection cannot go on after it.
struct Refusal {
  int status = 400;
  std::string message;
};

class RequestReader {
 public:
  explicit RequestReader(const RequestLimits& limits);
  ~RequestReader();

  enum class State { kHeader, kBody, kDone };
  State state() const { return state_; }

  // Reads from the beginning of `bytes` and returns how many it is done with; the others are to be
  // given again, with what has arrived after them. Stops at the end of the header and at the end of
  // the request.
  std::expected<size_t, Refusal> feed(std::string_view bytes);

  // From the end of the header on; the body is complete at the end of the request.
  HttpRequest& request() { return request_; }
  bool keep_alive() const { return keep_alive_; }
  bool chunks_allowed() const { return version_ >= 11; }  // in the answer
  bool expects_continue() const { return expects_continue_; }
  int64_t body_bytes() const;  // that have come so far

 private:
  struct Parser;

  std::expected<void, Refusal> finish_header();
  bool is_too_short(std::string_view bytes) const;

  RequestLimits limits_;
  std::unique_ptr<Parser> parser_;
  State state_ = State::kHeader;
  HttpRequest request_;
  int version_ = 11;
  bool keep_alive_ = false;
  bool expects_continue_ = false;
};

}  // namespace banyan
