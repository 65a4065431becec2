#include "client/response_reader.h"

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/parser.hpp>
#include <utility>

#include "base/error.h"

namespace banyan {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

// Passes the body on instead of storing it.
struct PassingBody {
  using value_type = std::function<void(std::string_view)>;

  class reader {
   public:
    template <bool kRequest, class Fields>
    reader(http::header<kRequest, Fields>&, value_type& sink) : sink_(sink) {}

    void init(const boost::optional<uint64_t>&, error_code& ec) { ec = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, error_code& ec) {
      size_t bytes = 0;
      for (auto buffer : beast::buffers_range(buffers)) {
        sink_({static_cast<const char*>(buffer.data()), buffer.size()});
        bytes += buffer.size();
      }
      ec = {};
      return bytes;
    }
    void finish(error_code& ec) { ec = {}; }

   private:
    value_type& sink_;
  };
};

}  // namespace

struct ResponseReader::Parser {
  http::response_parser<PassingBody> beast;
};

ResponseReader::ResponseReader(std::function<void(std::string_view)> body)
    : parser_(std::make_unique<Parser>()) {
  parser_->beast.header_limit(kLineBytesMax);
  parser_->beast.body_limit(boost::none);
  parser_->beast.eager(true);
  parser_->beast.get().body() = std::move(body);
}

ResponseReader::~ResponseReader() = default;

int ResponseReader::status() const {
  return parser_->beast.is_header_done() ? parser_->beast.get().result_int() : 0;
}

bool ResponseReader::keep_alive() const {
  return done_ && !surplus_ && parser_->beast.keep_alive();
}

// Returns the number of bytes consumed; the rest is an incomplete line.
Result<size_t> ResponseReader::parse(std::string_view bytes) {
  size_t used = 0;
  error_code ec;
  while (used < bytes.size() && !ec && !parser_->beast.is_done()) {
    used +=
        parser_->beast.put(boost::asio::const_buffer(bytes.data() + used, bytes.size() - used), ec);
  }
  if (ec && ec != http::error::need_more) {
    return corrupt("the answer is not valid HTTP/1: {}", ec.message());
  }
  done_ = parser_->beast.is_done();
  return used;
}

Status ResponseReader::feed(std::string_view bytes) {
  begun_ |= !bytes.empty();
  if (done_) {
    surplus_ |= !bytes.empty();
    return {};
  }
  if (!carry_.empty()) {
    carry_ += bytes;
    bytes = carry_;
  }
  size_t used = TRY(parse(bytes));
  std::string_view left = bytes.substr(used);
  if (done_) {
    surplus_ = !left.empty();
    carry_.clear();
    return {};
  }
  if (left.size() > kLineBytesMax)
    return corrupt("a line of the answer exceeds {} bytes", kLineBytesMax);
  if (carry_.empty()) {
    carry_ = left;
  } else {
    carry_.erase(0, used);
  }
  return {};
}

Status ResponseReader::end() {
  if (done_) return {};
  error_code ec;
  if (parser_->beast.got_some()) parser_->beast.put_eof(ec);
  done_ = !ec && parser_->beast.is_done();
  surplus_ = true;
  if (done_) return {};
  return io_error("the server closed the connection {}",
                  begun_ ? "in the middle of its answer" : "without an answer");
}

}  // namespace banyan
