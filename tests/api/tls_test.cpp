// TLS: certificates that work, those that do not, and clients without any.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

#include "api/server_fixture.h"
#include "support/shared.h"

namespace banyan {
namespace {

// A key and a certificate that vouches for itself, as PEM files.
class Certificate {
 public:
  Certificate(const test::TemporaryFolder& folder, const std::string& name)
      : certificate_file(folder.path() + "/" + name + ".crt"),
        key_file(folder.path() + "/" + name + ".key") {
    std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    std::unique_ptr<X509, decltype(&X509_free)> x509(X509_new(), X509_free);
    X509_set_version(x509.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(x509.get()), 3600);
    X509_set_pubkey(x509.get(), key.get());
    X509_NAME* subject = X509_get_subject_name(x509.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(x509.get(), subject);
    X509_sign(x509.get(), key.get(), EVP_sha256());
    BIO* out = BIO_new_file(certificate_file.c_str(), "w");
    PEM_write_bio_X509(out, x509.get());
    BIO_free(out);
    out = BIO_new_file(key_file.c_str(), "w");
    PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    BIO_free(out);
  }

  std::string certificate_file, key_file;
};

class Tls : public test::ServerTest {
 protected:
  void use(const std::string& certificate_file, const std::string& key_file) {
    config.ssl_certfile = certificate_file;
    config.ssl_keyfile = key_file;
  }
  std::string refusal() {
    Server server(config);
    Status listening = server.listen();
    return listening ? "" : listening.error().message;
  }
  // All that the server writes to `request`, which says Connection: close. Trusts `certificate`
  // alone; empty: the handshake failed.
  std::string ask(const Certificate& certificate, const std::string& request) {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_load_verify_file(context, certificate.certificate_file.c_str());
    BIO* bio = BIO_new_ssl_connect(context);
    BIO_set_conn_hostname(bio, ("127.0.0.1:" + std::to_string(port())).c_str());
    std::string answer;
    if (BIO_do_connect(bio) == 1 && BIO_do_handshake(bio) == 1) {
      BIO_write(bio, request.data(), static_cast<int>(request.size()));
      char buffer[4096];
      int bytes = 0;
      while ((bytes = BIO_read(bio, buffer, sizeof buffer)) > 0) {
        answer.append(buffer, static_cast<size_t>(bytes));
      }
    }
    BIO_free_all(bio);
    SSL_CTX_free(context);
    return answer;
  }

  test::TemporaryFolder folder_;
  Certificate own_{folder_, "own"}, other_{folder_, "other"};
};

TEST_F(Tls, AnswersAndStreamsToThoseWhoTrustTheCertificate) {
  use(own_.certificate_file, own_.key_file);
  start();
  EXPECT_TRUE(server().address().starts_with("https://")) << server().address();
  std::string close = " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  std::string health = ask(own_, "GET /health" + close + "\r\n");
  EXPECT_TRUE(health.starts_with("HTTP/1.1 200")) << health;
  std::string stream = ask(own_, "GET /stream?tokens=5" + close + "\r\n");
  EXPECT_NE(stream.find("data: length"), stream.npos) << stream;
  // More than a record and than the system's buffer, both ways.
  std::string body(300000, 'x');
  std::string echo = ask(own_, "POST /echo" + close + "Content-Length: 300000\r\n\r\n" + body);
  EXPECT_TRUE(echo.ends_with("\r\n\r\n300000")) << echo.substr(0, 200);
  std::string poured = ask(own_, "GET /pour?bytes=500000" + close + "\r\n");
  EXPECT_GT(poured.size(), 500000u);
  EXPECT_EQ(ask(other_, "GET /health" + close + "\r\n"), "");
  EXPECT_TRUE(back_to_base());
}

TEST_F(Tls, TellsPlainHttpThatItIsAnHttpsPort) {
  use(own_.certificate_file, own_.key_file);
  start();
  test::Response plain = get("/health");
  EXPECT_EQ(plain.status, 400);
  EXPECT_NE(plain.body.find("https://"), plain.body.npos) << plain.body;
  test::Client nonsense = client();
  nonsense.send("\x16\x03\x01\x02nonsense that is no handshake, whatever it says");
  nonsense.read_all();
  EXPECT_TRUE(back_to_base());
}

TEST_F(Tls, SaysWhichFileIsWrong) {
  use(own_.certificate_file, other_.key_file);
  EXPECT_NE(refusal().find("--ssl-keyfile " + other_.key_file), std::string::npos) << refusal();
  use(own_.key_file, own_.key_file);
  EXPECT_NE(refusal().find("--ssl-certfile " + own_.key_file), std::string::npos) << refusal();
  use("none.crt", own_.key_file);
  EXPECT_NE(refusal().find("--ssl-certfile none.crt"), std::string::npos) << refusal();
  use(own_.certificate_file, "");
  EXPECT_NE(refusal().find("come together"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace banyan
