// A key and a certificate that vouches for itself, as PEM files in a test's folder.
#pragma once

#include <string>

#include "base/tls.h"
#include "support/shared.h"

namespace banyan::test {

class Certificate {
 public:
  // `names`: of what it is for, as OpenSSL writes them.
  Certificate(const TemporaryFolder& folder, const std::string& name,
              const std::string& names = "DNS:localhost,IP:127.0.0.1");

  // For who shows it, and trusts `other` alone.
  TlsFiles towards(const Certificate& other) const {
    return {
        .certificate = certificate_file, .key = key_file, .authorities = {other.certificate_file}};
  }

  std::string certificate_file, key_file;
};

}  // namespace banyan::test
