# cmake -DTEXTS="a.json;b.json" -DSOURCE=file.cpp -P embed_texts.cmake: files as a C++ file
# (src/cli/bench/recorded_text.h).
set(entries "")
foreach(text ${TEXTS})
  file(READ ${text} content)
  string(APPEND entries "    R\"text(${content})text\",\n")
endforeach()
file(WRITE ${SOURCE} "#include \"cli/bench/recorded_text.h\"

#include <array>

namespace banyan::cli {
namespace {

constexpr auto kTexts = std::to_array<std::string_view>({
${entries}});

}  // namespace

std::span<const std::string_view> embedded_texts() {
  return kTexts;
}

}  // namespace banyan::cli
")
