// One HTTP/1 response out of bytes as they arrive; no socket.
//
// The grammar is Boost.Beast's. The body goes to a sink in pieces, as it comes, without a copy; a
// header or the line before a chunk may have kLineBytesMax bytes.
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

  // `body` is called from feed(), when status() is known.
  explicit ResponseReader(std::function<void(std::string_view)> body);
  ~ResponseReader();

  // What came next. Bytes after the response's end make keep_alive() false.
  Status feed(std::string_view bytes);
  // The server has closed: an error unless the response is complete by that.
  Status end();

  bool begun() const { return begun_; }  // a byte has come
  bool done() const { return done_; }
  int status() const;  // 0 until the header is there
  bool keep_alive() const;

 private:
  struct Parser;

  Result<size_t> parse(std::string_view bytes);

  std::unique_ptr<Parser> parser_;
  std::string carry_;  // the beginning of a line
  bool begun_ = false, done_ = false, surplus_ = false;
};

}  // namespace banyan
