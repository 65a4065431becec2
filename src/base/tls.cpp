#include "base/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <cstring>
#include <limits>
#include <new>

#include "base/error.h"
#include "base/log.h"
#include "base/signed.h"

namespace banyan {
namespace {

// How often files are looked at, when channels are opened.
constexpr auto kLookEvery = std::chrono::seconds(1);

// Describes and clears OpenSSL's error queue.
std::string last_failure() {
  std::array<char, 256> text = {};
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "unknown reason";
  if (ERR_SYSTEM_ERROR(code)) return std::strerror(ERR_GET_REASON(code));
  const char* reason = ERR_reason_error_string(code);
  if (reason != nullptr) return reason;
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

int length_of(size_t bytes) {
  return static_cast<int>(std::min<size_t>(bytes, std::numeric_limits<int>::max()));
}

}  // namespace

Status TlsFiles::validate() const {
  if (certificate.empty() == key.empty()) return {};
  return invalid_argument("{} and {} must be given together; only {} is given", certificate_option,
                          key_option, key.empty() ? certificate_option : key_option);
}

// Loads what both ends have: a certificate with its key, and authorities.
Result<TlsContext::Loaded> TlsContext::load_files(const TlsFiles& files, bool serves) {
  TRY(files.validate());
  ERR_clear_error();
  Loaded loaded(SSL_CTX_new(serves ? TLS_server_method() : TLS_client_method()));
  SSL_CTX* made = loaded.get();
  if (made == nullptr) return exhausted("cannot start TLS: {}", last_failure());
  SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
  SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                             SSL_MODE_RELEASE_BUFFERS);
  // HTTP messages carry their length, so a truncated one is detected without a close_notify.
  SSL_CTX_set_options(made, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION |
                                SSL_OP_CIPHER_SERVER_PREFERENCE);
  for (const std::string& file : files.authorities) {
    if (SSL_CTX_load_verify_file(made, file.c_str()) == 1) continue;
    return invalid_argument("{} {}: {}; give a file of certificates in PEM",
                            files.authorities_option, file, last_failure());
  }
  if (files.certificate.empty()) return loaded;
  if (SSL_CTX_use_certificate_chain_file(made, files.certificate.c_str()) != 1) {
    return invalid_argument("{} {}: {}; give a file of certificates in PEM",
                            files.certificate_option, files.certificate, last_failure());
  }
  if (SSL_CTX_use_PrivateKey_file(made, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return invalid_argument("{} {}: {}; give the key of {} {} in PEM", files.key_option, files.key,
                            last_failure(), files.certificate_option, files.certificate);
  }
  if (SSL_CTX_check_private_key(made) != 1) {
    return invalid_argument("{} {} is not the key of {} {}", files.key_option, files.key,
                            files.certificate_option, files.certificate);
  }
  return loaded;
}

Result<TlsContext::Loaded> TlsContext::load_server(const TlsFiles& files,
                                                   ClientCertificate clients) {
  Loaded loaded = TRY(load_files(files, true));
  if (clients == ClientCertificate::kIgnored) return loaded;
  if (files.authorities.empty()) {
    return invalid_argument("{} is missing; it is needed to check clients' certificates",
                            files.authorities_option);
  }
  STACK_OF(X509_NAME)* names = sk_X509_NAME_new_null();  // by which clients choose theirs
  for (const std::string& file : files.authorities) {
    SSL_add_file_cert_subjects_to_stack(names, file.c_str());
  }
  SSL_CTX_set_client_CA_list(loaded.get(), names);  // takes them
  int mode = SSL_VERIFY_PEER;
  if (clients == ClientCertificate::kRequired) mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  SSL_CTX_set_verify(loaded.get(), mode, nullptr);
  constexpr std::string_view kSessions = "banyan";  // needed to resume those with a certificate
  SSL_CTX_set_session_id_context(loaded.get(),
                                 reinterpret_cast<const unsigned char*>(kSessions.data()),
                                 static_cast<unsigned>(kSessions.size()));
  return loaded;
}

Result<TlsContext::Loaded> TlsContext::load_client(const TlsFiles& files) {
  Loaded loaded = TRY(load_files(files, false));
  SSL_CTX_set_verify(loaded.get(), SSL_VERIFY_PEER, nullptr);
  if (files.authorities.empty()) SSL_CTX_set_default_verify_paths(loaded.get());
  return loaded;
}

Result<std::unique_ptr<TlsContext>> TlsContext::for_server(const TlsFiles& files,
                                                           ClientCertificate clients) {
  return open(files, [clients](const TlsFiles& f) { return load_server(f, clients); });
}

Result<std::unique_ptr<TlsContext>> TlsContext::for_client(const TlsFiles& files) {
  return open(files, load_client);
}

Result<std::unique_ptr<TlsContext>> TlsContext::open(const TlsFiles& files, Load load) {
  std::unique_ptr<TlsContext> context(new TlsContext(files, std::move(load)));
  context->looked_ = std::chrono::steady_clock::now();
  context->stamp_ = context->stamp();
  context->loaded_ = TRY(context->load_(files));
  return context;
}

void TlsContext::Free::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);  // channels that were opened with it keep it
}

// Changes when any of the files is written, replaced, also by a link to another, or gets other
// rights.
std::string TlsContext::stamp() const {
  std::vector<std::string> names = files_.authorities;
  names.insert(names.end(), {files_.certificate, files_.key});
  std::string stamp;
  for (const std::string& name : names) {
    struct stat file = {};
    if (name.empty() || ::stat(name.c_str(), &file) != 0) continue;
    stamp += fmt::format("{} {} {} {}.{} {}.{},", file.st_dev, file.st_ino, file.st_size,
                         file.st_mtim.tv_sec, file.st_mtim.tv_nsec, file.st_ctim.tv_sec,
                         file.st_ctim.tv_nsec);
  }
  return stamp;
}

void TlsContext::refresh() const {
  auto now = std::chrono::steady_clock::now();
  if (files_.empty() || now - looked_ < kLookEvery) return;
  looked_ = now;
  std::string stamp = this->stamp();
  if (stamp == stamp_) return;
  Result<Loaded> loaded = load_(files_);
  if (!loaded) {  // and is tried again
    bool told = std::exchange(failed_, stamp) == stamp;
    if (!told) spdlog::warn("renewed certificates are not used: {}", loaded.error().message);
    return;
  }
  stamp_ = std::move(stamp);
  loaded_ = *std::move(loaded);
  spdlog::info("renewed certificates are used: {}",
               files_.certificate.empty() ? files_.authorities.front() : files_.certificate);
}

ssl_st* TlsContext::new_channel() const {
  std::lock_guard lock(mutex_);
  refresh();
  ssl_st* channel = SSL_new(loaded_.get());
  if (channel == nullptr) throw std::bad_alloc();
  return channel;
}

TlsChannel::TlsChannel(const TlsContext& context, int socket) : ssl_(context.new_channel()) {
  SSL_set_fd(ssl_, socket);
  SSL_set_accept_state(ssl_);
}

TlsChannel::TlsChannel(const TlsContext& context, int socket, const std::string& server)
    : ssl_(context.new_channel()) {
  SSL_set_fd(ssl_, socket);
  SSL_set_connect_state(ssl_);
  bool address = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), server.c_str()) == 1;
  if (address) return;
  if (SSL_set1_host(ssl_, server.c_str()) != 1) throw std::bad_alloc();
  SSL_set_tlsext_host_name(ssl_, server.c_str());
}

TlsChannel::~TlsChannel() {
  SSL_free(ssl_);
}

bool TlsChannel::is_ready() const {
  return SSL_is_init_finished(ssl_) == 1;
}

size_t TlsChannel::result_of(int returned, boost::system::error_code& ec) {
  namespace errors = boost::asio::error;
  ec = {};
  if (returned > 0) return as_size(returned);
  switch (SSL_get_error(ssl_, returned)) {
    case SSL_ERROR_WANT_READ:
      wants_ = Wants::kRead;
      ec = errors::would_block;
      return 0;
    case SSL_ERROR_WANT_WRITE:
      wants_ = Wants::kWrite;
      ec = errors::would_block;
      return 0;
    case SSL_ERROR_ZERO_RETURN:
      ec = errors::eof;
      return 0;
    default:
      plain_http_ = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
      broken_ = true;
      if (long verified = SSL_get_verify_result(ssl_); verified != X509_V_OK) {
        failure_ = X509_verify_cert_error_string(verified);
      } else if (ERR_peek_error() != 0) {
        failure_ = last_failure();
      }
      ec = errors::connection_aborted;
      return 0;
  }
}

size_t TlsChannel::read_some(std::span<char> to, boost::system::error_code& ec) {
  ERR_clear_error();
  return result_of(SSL_read(ssl_, to.data(), length_of(to.size())), ec);
}

size_t TlsChannel::write_some(std::span<const char> from, boost::system::error_code& ec) {
  ERR_clear_error();
  return result_of(SSL_write(ssl_, from.data(), length_of(from.size())), ec);
}

void TlsChannel::close() {
  ERR_clear_error();
  if (is_ready() && !broken_) SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace banyan
