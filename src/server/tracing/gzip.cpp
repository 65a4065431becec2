#include "server/tracing/gzip.h"

#include <array>
#include <boost/beast/zlib/deflate_stream.hpp>
#include <boost/crc.hpp>
#include <cstdint>

#include "base/check.h"

namespace banyan {
namespace {

// No name, no time, no hints, an unknown system (RFC 1952).
constexpr std::array<unsigned char, 10> kHeader = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};

void append_little_endian(uint32_t value, std::string& out) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xff);
}

}  // namespace

std::string gzip(std::string_view text) {
  namespace zlib = boost::beast::zlib;
  std::string out(kHeader.begin(), kHeader.end());
  zlib::deflate_stream stream;
  out.resize(kHeader.size() + stream.upper_bound(text.size()));
  zlib::z_params params;
  params.next_in = text.data();
  params.avail_in = text.size();
  params.next_out = out.data() + kHeader.size();
  params.avail_out = out.size() - kHeader.size();
  boost::system::error_code ec;
  stream.write(params, zlib::Flush::finish, ec);
  CHECK(ec == zlib::error::end_of_stream, "deflate: {}", ec.message());
  out.resize(kHeader.size() + params.total_out);
  boost::crc_32_type crc;
  crc.process_bytes(text.data(), text.size());
  append_little_endian(crc.checksum(), out);
  append_little_endian(static_cast<uint32_t>(text.size()), out);
  return out;
}

}  // namespace banyan
