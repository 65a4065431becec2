// spdlog, whose templates g++ would otherwise compile in every file that logs: fmt's library has
// the function that formats, but its header does not say so. Clang gives this function another
// symbol than g++, with which Debian compiles the library.
#pragma once

#include <fmt/format.h>

#if FMT_VERSION / 10000 == 9 && !defined(FMT_HEADER_ONLY) && !defined(__clang__)
FMT_BEGIN_NAMESPACE
namespace detail {
extern template void vformat_to(buffer<char>&, basic_string_view<char>,
                                basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);
}  // namespace detail
FMT_END_NAMESPACE
#endif

#include <spdlog/spdlog.h>
