// TLS under a connection, by OpenSSL over its non-blocking socket.
//
// A channel reads and writes as a socket does: what cannot go on yet is would_block, and the caller
// waits until the socket is ready for what wants() says. The handshake is part of the first reads.
// A context is immutable and must outlive its channels; a channel belongs to one thread.
#pragma once

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "banyan/status.h"

struct ssl_ctx_st;
struct ssl_st;

namespace banyan {

class TlsContext {
 public:
  // PEM files: a certificate with those that vouch for it, and its key without a password. Errors
  // name the file that cannot be read, or say that the key is another certificate's.
  static Result<std::unique_ptr<TlsContext>> load(const std::string& certificate_file,
                                                  const std::string& key_file);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsChannel;
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}

  ssl_ctx_st* context_;
};

class TlsChannel {
 public:
  // The socket stays its owner's.
  TlsChannel(const TlsContext& context, int socket);
  ~TlsChannel();
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;

  enum class Wants { kRead, kWrite };

  // At most one record. 0 bytes with would_block, eof, or another error, after which the channel
  // can do nothing more.
  size_t read_some(std::span<char> to, boost::system::error_code& ec);
  size_t write_some(std::span<const char> from, boost::system::error_code& ec);
  Wants wants() const { return wants_; }  // after would_block

  bool is_ready() const;                              // the handshake is done
  bool is_plain_http() const { return plain_http_; }  // what came was no TLS but a request
  void close();                                       // says that no more will be written

 private:
  size_t result_of(int returned, boost::system::error_code& ec);

  ssl_st* ssl_;
  Wants wants_ = Wants::kRead;
  bool plain_http_ = false, broken_ = false;
};

}  // namespace banyan
