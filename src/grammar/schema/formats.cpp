#include "grammar/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace banyan {
namespace {

// RFC 3339 dates, with the length of each month and February 29 in leap years.
std::string date() {
  std::string leap =
      "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29";
  std::string other =
      "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
      "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))";
  return fmt::format("(?:{}|{})", leap, other);
}

std::string time() {
  return "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?"
         "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
}

std::string hostname() {
  // Labels of up to 63 characters. IDNA reserves "--" in the third place for xn--; disallowing
  // double hyphens entirely satisfies both rules simply.
  return "[a-zA-Z0-9](?:-?[a-zA-Z0-9]){0,30}(?:\\.[a-zA-Z0-9](?:-?[a-zA-Z0-9]){0,30}){0,3}";
}

std::string email() {
  std::string atom = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+", label = "[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*";
  return fmt::format("{0}(?:\\.{0})*@{1}(?:\\.{1})*", atom, label);
}

std::string ipv4() {
  std::string byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return fmt::format("(?:{0}\\.){{3}}{0}", byte);
}

std::string ipv6() {
  std::string h = "[0-9a-fA-F]{1,4}";
  std::string ways = fmt::format("(?:{0}:){{7}}{0}|::", h);
  // A double colon replaces one or more groups.
  for (int before = 0; before <= 7; ++before) {
    for (int after = 0; before + after <= 7; ++after) {
      if (before + after == 0) continue;
      std::string left = before == 0 ? "" : fmt::format("(?:{0}:){{{1}}}{0}", h, before - 1);
      std::string right = after == 0 ? "" : fmt::format("{0}(?::{0}){{{1}}}", h, after - 1);
      ways += fmt::format("|{}::{}", left, right);
    }
  }
  return ways;
}

std::string uri(bool relative) {
  // RFC 3986 without IP literals.
  std::string unreserved = "a-zA-Z0-9\\-._~", sub = "!$&'()*+,;=";
  std::string pct = "%[0-9a-fA-F]{2}";
  std::string pchar = fmt::format("(?:[{}{}:@]|{})", unreserved, sub, pct);
  std::string segments = fmt::format("(?:/{}*)*", pchar);
  std::string authority =
      fmt::format("(?:(?:[{0}{1}:]|{2})*@)?(?:[{0}{1}]|{2})*(?::[0-9]*)?", unreserved, sub, pct);
  std::string tail = fmt::format("(?:\\?(?:{0}|[/?])*)?(?:#(?:{0}|[/?])*)?", pchar);
  std::string rooted = fmt::format("//{}{}", authority, segments);
  std::string absolute = fmt::format("/(?:{}+{})?", pchar, segments);
  std::string scheme = fmt::format("[a-zA-Z][a-zA-Z0-9+.\\-]*:(?:{}|{}|{}+{}|){}", rooted, absolute,
                                   pchar, segments, tail);
  if (!relative) return scheme;
  std::string no_colon = fmt::format("(?:[{}{}@]|{})+", unreserved, sub, pct);
  return fmt::format("(?:{}|(?:{}|{}|{}{}|){})", scheme, rooted, absolute, no_colon, segments,
                     tail);
}

}  // namespace

std::optional<std::string> format_pattern(std::string_view format) {
  if (format == "date") return date();
  if (format == "time") return time();
  if (format == "date-time") return fmt::format("{}[Tt]{}", date(), time());
  if (format == "email" || format == "idn-email") return email();
  if (format == "uuid") {
    return "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
  }
  if (format == "ipv4" || format == "ip-address") return ipv4();
  if (format == "ipv6") return ipv6();
  if (format == "hostname" || format == "host-name" || format == "idn-hostname") return hostname();
  if (format == "uri" || format == "url" || format == "iri") return uri(false);
  if (format == "uri-reference" || format == "iri-reference") return uri(true);
  if (format == "duration") {
    std::string clock = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
    std::string days = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)";
    return fmt::format("P(?:{}(?:{})?|{}|[0-9]+W)", days, clock, clock);
  }
  if (format == "json-pointer") return "(?:/(?:[^~/]|~[01])*)*";
  if (format == "relative-json-pointer") return "(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)";
  if (format == "byte") return "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?";
  return std::nullopt;
}

bool is_hint_format(std::string_view format) {
  static constexpr auto kHints = std::to_array<std::string_view>(
      {"int32", "int64", "float", "double", "password", "binary", "textarea", "color", "markdown"});
  return std::find(kHints.begin(), kHints.end(), format) != kHints.end();
}

}  // namespace banyan
