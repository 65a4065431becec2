// Incremental parser of one HTTP/1 request; no socket.
//
// Boost.Beast parses the grammar. This class adds limits that hold while reading. It also refuses
// whatever two parsers could interpret differently, since behind a proxy that allows request
// smuggling: two lengths, a length together with chunks, any transfer coding but chunked.
//
// Belongs to one thread.
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

// An error answered before any handler runs. The connection is closed afterwards.
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

  // Parses from the start of `bytes` and returns how many were consumed. Pass the rest again,
  // followed by new data. Stops at the end of the header and at the end of the request.
  std::expected<size_t, Refusal> feed(std::string_view bytes);

  // Valid from the end of the header; the body is complete at the end of the request.
  HttpRequest& request() { return request_; }
  bool keep_alive() const { return keep_alive_; }
  bool chunks_allowed() const { return version_ >= 11; }  // in the response
  bool expects_continue() const { return expects_continue_; }
  int64_t body_bytes() const;  // received so far

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
