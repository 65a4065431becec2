// Incremental parser of one HTTP/1 response; no socket.
//
// Boost.Beast parses the grammar. The body is passed to a sink in pieces, without a copy. A header
// or chunk line may have up to kLineBytesMax bytes.
//
// Belongs to one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

class ResponseReader {
 public:
  static constexpr size_t kLineBytesMax = 64 << 10;

  // `body` is called from feed(), once status() is known.
  explicit ResponseReader(std::function<void(std::string_view)> body);
  ~ResponseReader();

  // Parses the next bytes. Bytes after the end of the response make keep_alive() false.
  Status feed(std::string_view bytes);
  // The server has closed the connection: an error unless that completes the response.
  Status end();

  bool begun() const { return begun_; }  // a byte has arrived
  bool done() const { return done_; }
  int status() const;  // 0 before the header is complete
  bool keep_alive() const;

 private:
  struct Parser;

  Result<size_t> parse(std::string_view bytes);

  std::unique_ptr<Parser> parser_;
  std::string carry_;  // an incomplete line
  bool begun_ = false, done_ = false, surplus_ = false;
};

}  // namespace banyan
