# cmake -DPAGE=page.html.gz -DSOURCE=file.cpp -P embed_web_page.cmake: the page as a C++ file
# (src/server/embedded_page.h).
file(READ ${PAGE} bytes HEX)
file(SHA256 ${PAGE} digest)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${SOURCE} "#include \"server/embedded_page.h\"

namespace banyan {
namespace {

constexpr unsigned char kWebPage[] = {
${bytes}};

}  // namespace

WebPage embedded_web_page() {
  return {{reinterpret_cast<const char*>(kWebPage), sizeof kWebPage}, \"${digest}\"};
}

}  // namespace banyan
")
