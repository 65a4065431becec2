#include "server/http/request_reader.h"

#include <fmt/format.h>

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/parser.hpp>
#include <exception>

#include "base/check.h"
#include "base/quote.h"
#include "server/http/target.h"

namespace banyan {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

// A body that grows with the received bytes. Beast's own body reserves the announced length up
// front.
struct GrowingBody {
  using value_type = std::string;

  class reader {
   public:
    template <bool kRequest, class Fields>
    reader(http::header<kRequest, Fields>&, std::string& body) : body_(body) {}

    void init(const boost::optional<uint64_t>&, error_code& ec) { ec = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, error_code& ec) {
      size_t bytes = 0;
      for (auto buffer : beast::buffers_range(buffers)) {
        body_.append(static_cast<const char*>(buffer.data()), buffer.size());
        bytes += buffer.size();
      }
      ec = {};
      return bytes;
    }
    void finish(error_code& ec) { ec = {}; }

   private:
    std::string& body_;
  };
};

Refusal header_too_long(const RequestLimits& limits) {
  return {431, fmt::format("the request's headers have more than {} bytes, which is the limit",
                           limits.header_bytes_max)};
}

Refusal too_many_chunks(const RequestLimits& limits) {
  return {413, fmt::format("the request's body has more than {} chunks, which is the limit",
                           limits.body_chunks_max)};
}

Refusal refusal_of(const error_code& ec, const RequestLimits& limits) {
  if (ec == http::error::header_limit) return header_too_long(limits);
  if (ec == http::error::body_limit) {
    return {413, fmt::format("the request's body has more than {} bytes, which is the limit",
                             limits.body_bytes_max)};
  }
  if (ec == http::error::bad_version) return {505, "only HTTP/1.0 and HTTP/1.1 are supported"};
  return {400, fmt::format("this is not an HTTP/1 request: {}", ec.message())};
}

}  // namespace

struct RequestReader::Parser {
  http::request_parser<GrowingBody> beast;
  int chunks = 0;
  int64_t header_bytes = 0;  // consumed so far
  // Beast keeps a reference to it.
  std::function<void(uint64_t, beast::string_view, error_code&)> count_chunk;
};

RequestReader::RequestReader(const RequestLimits& limits)
    : limits_(limits), parser_(std::make_unique<Parser>()) {
  parser_->beast.header_limit(static_cast<uint32_t>(limits.header_bytes_max));
  parser_->beast.body_limit(static_cast<uint64_t>(limits.body_bytes_max));
  parser_->count_chunk = [this](uint64_t, beast::string_view, error_code& ec) {
    if (++parser_->chunks > limits_.body_chunks_max) ec = http::error::bad_chunk;
  };
  parser_->beast.on_chunk_header(parser_->count_chunk);
}

RequestReader::~RequestReader() = default;

std::expected<size_t, Refusal> RequestReader::feed(std::string_view bytes) {
  size_t used = 0;
  // A line break may precede a request.
  while (parser_->header_bytes == 0 && bytes.substr(used).starts_with("\r\n")) used += 2;
  const State before = state_;
  error_code ec;
  while (state_ == before && !is_too_short(bytes.substr(used)) && !ec) {
    size_t count =
        parser_->beast.put(boost::asio::const_buffer(bytes.data() + used, bytes.size() - used), ec);
    used += count;
    if (state_ == State::kHeader) parser_->header_bytes += count;
    if (parser_->chunks > limits_.body_chunks_max) return std::unexpected(too_many_chunks(limits_));
    if (ec && ec != http::error::need_more) return std::unexpected(refusal_of(ec, limits_));
    if (state_ == State::kHeader && parser_->beast.is_header_done()) {
      state_ = State::kBody;
      if (auto finished = finish_header(); !finished) return std::unexpected(finished.error());
    }
    if (state_ != State::kHeader && parser_->beast.is_done()) {
      request_.body = std::move(parser_->beast.get().body());
      state_ = State::kDone;
    }
  }
  // The remaining bytes are an incomplete line: of the header, of a chunk length or of a trailer.
  int64_t left = bytes.size() - used;
  bool waits = state_ != State::kDone && ec == http::error::need_more;
  int64_t header_bytes = state_ == State::kHeader ? parser_->header_bytes : 0;
  if (waits && header_bytes + left > limits_.header_bytes_max) {
    return std::unexpected(header_too_long(limits_));
  }
  return used;
}

// Whether `bytes` is too short to parse any further.
bool RequestReader::is_too_short(std::string_view bytes) const {
  if (state_ == State::kHeader) {
    return bytes.empty() || (parser_->header_bytes == 0 && bytes == "\r");
  }
  if (!parser_->beast.chunked()) return bytes.empty();
  // Beast asserts that a last chunk is complete up to its minimal length.
  bool may_be_last = bytes.substr(bytes.starts_with("\r\n") ? 2 : 0).starts_with('0');
  return bytes.size() < (may_be_last ? std::string_view("0\r\n\r\n").size() : 1);
}

std::expected<void, Refusal> RequestReader::finish_header() {
  const auto& message = parser_->beast.get();
  if (parser_->header_bytes > limits_.header_bytes_max) {
    return std::unexpected(header_too_long(limits_));
  }
  version_ = static_cast<int>(message.version());
  keep_alive_ = message.keep_alive();
  for (const auto& field : message) {
    request_.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request_.method = std::string(message.method_string());
  auto count = [&](http::field name) { return message.count(name); };
  size_t codings = count(http::field::transfer_encoding);
  // Any other coding would make the body's length ambiguous.
  if (codings > 0 && (codings > 1 || version_ < 11 || !message.chunked() ||
                      !beast::iequals(message[http::field::transfer_encoding], "chunked"))) {
    return std::unexpected(Refusal{400, "the only supported transfer coding is chunked"});
  }
  if (count(http::field::content_length) > 1 ||
      message[http::field::content_length].find(',') != beast::string_view::npos) {
    return std::unexpected(Refusal{400, "the request has more than one Content-Length"});
  }
  size_t hosts = count(http::field::host);
  if (hosts > 1 || (hosts == 0 && version_ >= 11)) {
    return std::unexpected(Refusal{400, fmt::format("the request has {} Host headers", hosts)});
  }
  if (count(http::field::expect) > 0) {
    auto expect = message[http::field::expect];
    expects_continue_ = version_ >= 11 && beast::iequals(expect, "100-continue");
    if (!beast::iequals(expect, "100-continue")) {
      return std::unexpected(
          Refusal{417, fmt::format("Expect: {} is not supported", quote(expect))});
    }
  }
  Result<Target> target = parse_target(message.target());
  if (!target) return std::unexpected(Refusal{400, target.error().message});
  request_.path = std::move(target->path);
  request_.query = std::move(target->query);
  return {};
}

int64_t RequestReader::body_bytes() const {
  return state_ == State::kDone ? request_.body.size() : parser_->beast.get().body().size();
}

}  // namespace banyan
