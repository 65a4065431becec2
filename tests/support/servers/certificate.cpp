#include "support/servers/certificate.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

#include "base/check.h"

namespace banyan::test {

Certificate::Certificate(const TemporaryFolder& folder, const std::string& name,
                         const std::string& names)
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
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(x509.get(), subject);
  std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str()),
      X509_EXTENSION_free);
  CHECK(extension != nullptr, "no names: {}", names);
  X509_add_ext(x509.get(), extension.get(), -1);
  X509_sign(x509.get(), key.get(), EVP_sha256());
  BIO* out = BIO_new_file(certificate_file.c_str(), "w");
  PEM_write_bio_X509(out, x509.get());
  BIO_free(out);
  out = BIO_new_file(key_file.c_str(), "w");
  PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  BIO_free(out);
}

}  // namespace banyan::test
