// A key and a self-signed certificate, as PEM files in a test's folder.
#pragma once

#include <string>

#include "base/tls.h"
#include "support/shared.h"

namespace banyan::test {

class Certificate {
 public:
  // `names`: the names that it is valid for, in OpenSSL's syntax.
  Certificate(const TemporaryFolder& folder, const std::string& name,
              const std::string& names = "DNS:localhost,IP:127.0.0.1");

  // The files of a side that presents this certificate and trusts only `other`.
  TlsFiles towards(const Certificate& other) const {
    return {
        .certificate = certificate_file, .key = key_file, .authorities = {other.certificate_file}};
  }

  std::string certificate_file, key_file;
};

}  // namespace banyan::test
