// Any ids and stop strings: what a stream decoder gives out is the decoded text up to the first
// stop string, and whole characters only.
//
// The input is the number of ids, the ids (a byte each), then stop strings that end in a zero byte.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/stream_decoder.h"
#include "unicode/unicode.h"

namespace {

constexpr std::string_view kVocabulary =
    R"("model":{"type":"BPE","merges":[],"vocab":{"a":0,"b":1,"ab":2,"\u2581":3,"\u2581a":4,)"
    R"("<0xE2>":5,"<0x82>":6,"<0xAC>":7,"<0x41>":8,"\u0120":9,"\u00e2":10,"\u0124":11,)"
    R"("\u00ac":12,"\u0120a":13,"\u4f60":14,"stop":15,"</s>":16,"  ":17,"\u00f0\u0141":18}},)"
    R"("added_tokens":[{"id":16,"content":"</s>","special":true,"normalized":false}])";
constexpr std::string_view kDecoders[] = {
    R"({"type":"ByteLevel"})",
    R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"\u2581"},)"
    R"("content":" "},{"type":"ByteFallback"},{"type":"Fuse"},)"
    R"({"type":"Strip","content":" ","start":1,"stop":2}]})",
    R"({"type":"Metaspace","replacement":"\u2581","prepend_scheme":"always"})",
    R"({"type":"Sequence","decoders":[{"type":"ByteLevel"},)"
    R"({"type":"Replace","pattern":{"String":"ab"},"content":"-"}]})",
    "null"};

std::vector<std::unique_ptr<banyan::Tokenizer>> make_tokenizers() {
  std::vector<std::unique_ptr<banyan::Tokenizer>> made;
  for (std::string_view decoder : kDecoders) {
    const std::string json = fmt::format("{{{},\"decoder\":{}}}", kVocabulary, decoder);
    auto parts = banyan::read_tokenizer_json(json, "tokenizer.json");
    CHECK(parts, "{}", parts.error().message);
    made.push_back(banyan::Tokenizer::make(std::move(*parts), {}).value());
  }
  return made;
}

// The earliest end of a stop string in `text`, and where the longest that ends there begins.
size_t first_stop(std::string_view text, const std::vector<std::string>& stops) {
  size_t best_end = text.npos, best_begin = text.npos;
  for (const std::string& stop : stops) {
    const size_t begin = stop.empty() ? text.npos : text.find(stop);
    if (begin == text.npos) continue;
    const size_t end = begin + stop.size();
    if (end < best_end || (end == best_end && begin < best_begin)) {
      best_end = end;
      best_begin = begin;
    }
  }
  return best_begin;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto tokenizers = make_tokenizers();
  if (size == 0) return 0;
  const size_t count = std::min<size_t>(data[0], size - 1);
  std::vector<banyan::TokenId> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(data[1 + i] % 24);
  std::vector<std::string> stops(1);
  for (size_t i = 1 + count; i < size; ++i) {
    if (data[i] == 0) {
      stops.emplace_back();
    } else {
      stops.back().push_back(static_cast<char>(data[i]));
    }
  }
  for (const auto& tokenizer : tokenizers) {
    for (bool skip : {false, true}) {
      banyan::StreamDecoder stream(*tokenizer, skip, stops);
      std::string streamed;
      bool stopped = false;
      for (banyan::TokenId id : ids) {
        auto delta = stream.push(id);
        CHECK(!stopped || delta.text.empty());
        stopped |= delta.matched_stop.has_value();
        streamed += delta.text;
      }
      streamed += stream.finish().text;
      const std::string decoded = tokenizer->decode(ids, skip).value();
      CHECK(stopped || !banyan::unicode::first_invalid(streamed));
      // An invalid run of byte tokens: ByteRuns::kByCharacters.
      if (tokenizer == tokenizers[1] && decoded.find("\uFFFD") != decoded.npos) continue;
      const std::string expected = decoded.substr(0, first_stop(decoded, stops));
      CHECK(streamed == expected, "\"{}\" and \"{}\"", streamed, expected);
    }
  }
  return 0;
}
