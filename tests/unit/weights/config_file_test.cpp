// The strict reader of config.json: types, ranges, unread keys.
#include "weights/files/config_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/shared.h"

namespace banyan::config_file_test {
namespace {

ConfigFile parsed(std::string_view text) {
  auto file = ConfigFile::parse(text, "config.json");
  EXPECT_TRUE(file) << file.error().message;
  return file.value();
}

// The message of the error that sticks after `read` has been applied to the document.
template <class Read>
std::string error_after(std::string_view text, Read read) {
  ConfigFile file = parsed(text);
  read(file);
  Status status = file.finish();
  return status ? "" : status.error().message;
}

std::string parse_error(std::string_view text) {
  auto file = ConfigFile::parse(text, "config.json");
  return file ? "" : file.error().message;
}

TEST(ConfigFile, ReadsEveryType) {
  ConfigFile file = parsed(R"({"i": 7, "n": 1e-5, "whole": 10000, "f": true, "t": "silu",
                               "is": [1, 2], "ns": [0.5, 2], "ts": ["a", "b"], "one": 3})");
  EXPECT_EQ(file.integer("i", 1, 10), 7);
  EXPECT_EQ(file.number("n", 0, 1), 1e-5);
  EXPECT_EQ(file.number("whole", 0, 1e9), 10000.0);
  EXPECT_TRUE(file.flag("f"));
  EXPECT_EQ(file.text("t"), "silu");
  EXPECT_EQ(file.integers("is", 0, 9), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(file.integers("one", 0, 9), (std::vector<int64_t>{3}));
  EXPECT_EQ(file.numbers("ns", 0, 9), (std::vector<double>{0.5, 2}));
  EXPECT_EQ(file.texts("ts"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(file.finish());
  EXPECT_TRUE(file.unread().empty());
}

TEST(ConfigFile, NullCountsAsAbsent) {
  ConfigFile file = parsed(R"({"head_dim": null, "rope_scaling": null, "tie": null})");
  EXPECT_FALSE(file.has("head_dim"));
  EXPECT_EQ(file.maybe_integer("head_dim", 1, 9), std::nullopt);
  EXPECT_EQ(file.integer_or("head_dim", 64, 1, 99), 64);
  EXPECT_EQ(file.number_or("absent", 0.5, 0, 1), 0.5);
  EXPECT_TRUE(file.flag_or("tie", true));
  EXPECT_EQ(file.text_or("absent", "x"), "x");
  EXPECT_EQ(file.maybe_text("absent"), std::nullopt);
  EXPECT_TRUE(file.texts("absent").empty());
  EXPECT_FALSE(file.object("rope_scaling").has("factor"));
  EXPECT_TRUE(file.finish());
}

TEST(ConfigFile, SubObjectsShareTheErrorAndTheRecord) {
  ConfigFile file =
      parsed(R"({"rope_scaling": {"factor": -8.0, "rope_type": "yarn", "extra": 1}})");
  ConfigFile rope = file.object("rope_scaling");
  EXPECT_EQ(rope.text("rope_type"), "yarn");
  EXPECT_EQ(rope.number("factor", 1, 1e6), 1.0) << "inside the range even after an error";
  EXPECT_EQ(file.finish().error().message,
            "config.json: rope_scaling.factor = -8.0 is not a number from 1 to 1000000");
  EXPECT_EQ(file.unread(), (std::vector<std::string>{"rope_scaling.extra"}));
}

TEST(ConfigFile, ListsWhatNobodyRead) {
  ConfigFile file = parsed(R"({"a": 1, "b": {"c": 1}, "d": null, "use_cache": true})");
  file.integer("a", 0, 9);
  file.ignore({"use_cache"});
  EXPECT_EQ(file.unread(), (std::vector<std::string>{"b"})) << "null says nothing";
  file.ignore({"b"});
  EXPECT_TRUE(file.unread().empty());
}

TEST(ConfigFile, TheFirstErrorSticks) {
  EXPECT_EQ(error_after(R"({"b": "x"})",
                        [](ConfigFile file) {
                          file.integer("a", 1, 9);
                          file.flag("b");
                        }),
            "config.json: no a");
}

TEST(ConfigFile, NamesTheArchitecture) {
  EXPECT_EQ(parsed(R"({"architectures": ["LlamaForCausalLM"]})").architecture(),
            "LlamaForCausalLM");
  for (std::string_view text : {"{}", R"({"architectures": []})", R"({"architectures": [7]})",
                                R"({"architectures": "x"})", R"({"architectures": null})"}) {
    auto name = parsed(text).architecture();
    ASSERT_FALSE(name) << text;
    EXPECT_NE(name.error().message.find("config.json: "), std::string::npos);
    EXPECT_NE(name.error().message.find("architectures"), std::string::npos);
  }
}

TEST(ConfigFile, RefusesAnUnsupportedValueByName) {
  std::string_view text = R"({"architectures": ["LlamaForCausalLM"], "hidden_act": "gelu",
                              "attention_bias": true, "absent": null})";
  EXPECT_EQ(error_after(text, [](ConfigFile file) { file.only("hidden_act", {"silu", "swish"}); }),
            "config.json: hidden_act = \"gelu\" is not supported by LlamaForCausalLM; "
            "supported: \"silu\", \"swish\"");
  EXPECT_EQ(error_after(text, [](ConfigFile file) { file.only("attention_bias", {false}); }),
            "config.json: attention_bias = true is not supported by LlamaForCausalLM; "
            "supported: false");
  EXPECT_EQ(error_after(text, [](ConfigFile file) { file.only("attention_bias", {}); }),
            "config.json: attention_bias = true is not supported by LlamaForCausalLM; "
            "supported: only its absence");
  EXPECT_EQ(error_after(text, [](ConfigFile file) { file.only("hidden_act", {"gelu"}); }), "");
  EXPECT_EQ(error_after(text, [](ConfigFile file) { file.only("absent", {1}); }), "");
}

TEST(ConfigFile, ExpectRecordsARelationBetweenKeys) {
  EXPECT_EQ(error_after("{}", [](ConfigFile f) { f.expect(7 % 2 == 0, "hidden_size {}", 7); }),
            "config.json: hidden_size 7");
  EXPECT_EQ(error_after("{}", [](ConfigFile f) { f.expect(true, "x"); }), "");
}

TEST(ConfigFile, LoadsAFolderOrNamesTheMissingFile) {
  test::TemporaryFolder folder;
  auto absent = ConfigFile::load(folder.path());
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
  EXPECT_NE(absent.error().message.find("/config.json: no such file"), std::string::npos);
  folder.write("config.json", R"({"a": 0})");
  auto file = ConfigFile::load(folder.path());
  ASSERT_TRUE(file);
  file->integer("a", 1, 2);
  EXPECT_TRUE(file->finish().error().message.starts_with(folder.path() + "/config.json: a = 0"));
}

TEST(ConfigFileRefuses, ZeroHeadsAndZeroHeadDim) {
  auto read = [](std::string_view key) {
    return [key](ConfigFile file) { EXPECT_EQ(file.integer(key, 1, 1024), 1); };
  };
  EXPECT_EQ(error_after(R"({"num_attention_heads": 0})", read("num_attention_heads")),
            "config.json: num_attention_heads = 0 is not an integer from 1 to 1024");
  EXPECT_EQ(error_after(R"({"head_dim": 0})", read("head_dim")),
            "config.json: head_dim = 0 is not an integer from 1 to 1024");
}

TEST(ConfigFileRefuses, ABillionLayers) {
  auto read = [](ConfigFile file) { file.integer("num_hidden_layers", 1, 10'000); };
  EXPECT_EQ(error_after(R"({"num_hidden_layers": 1000000000})", read),
            "config.json: num_hidden_layers = 1000000000 is not an integer from 1 to 10000");
  EXPECT_EQ(error_after(R"({"num_hidden_layers": 18446744073709551615})", read),
            "config.json: num_hidden_layers = 18446744073709551615 is not an integer from 1 to "
            "10000");
  EXPECT_NE(error_after(R"({"num_hidden_layers": 1e30})", read), "");
}

TEST(ConfigFileRefuses, NanAndNegativeEpsilon) {
  EXPECT_NE(parse_error(R"({"rms_norm_eps": NaN})").find("not valid JSON"), std::string::npos);
  EXPECT_NE(parse_error(R"({"rms_norm_eps": Infinity})").find("not valid JSON"), std::string::npos);
  auto read = [](ConfigFile file) { file.number("rms_norm_eps", 0, 1); };
  EXPECT_EQ(error_after(R"({"rms_norm_eps": -1e-5})", read),
            "config.json: rms_norm_eps = -1e-05 is not a number from 0 to 1");
  EXPECT_EQ(error_after(R"({"rms_norm_eps": "NaN"})", read),
            "config.json: rms_norm_eps = \"NaN\" is not a number from 0 to 1");
}

TEST(ConfigFileRefuses, NegativeRopeTheta) {
  auto read = [](ConfigFile file) { file.number_or("rope_theta", 1e4, 1, 1e12); };
  EXPECT_EQ(error_after(R"({"rope_theta": -10000.0})", read),
            "config.json: rope_theta = -10000.0 is not a number from 1 to 1000000000000");
}

TEST(ConfigFileRefuses, WrongTypes) {
  auto integer = [](ConfigFile file) { file.integer("k", 1, 9999); };
  EXPECT_EQ(error_after(R"({"k": "4096"})", integer),
            "config.json: k = \"4096\" is not an integer from 1 to 9999");
  EXPECT_EQ(error_after(R"({"k": 4096.0})", integer),
            "config.json: k = 4096.0 is not an integer from 1 to 9999");
  EXPECT_EQ(error_after(R"({"k": true})", integer),
            "config.json: k = true is not an integer from 1 to 9999");
  EXPECT_EQ(error_after(R"({"k": [4096]})", [](ConfigFile f) { f.number("k", 0, 1); }),
            "config.json: k = [4096] is not a number from 0 to 1");
  EXPECT_EQ(error_after(R"({"k": 1})", [](ConfigFile f) { f.flag("k"); }),
            "config.json: k = 1 is not true or false");
  EXPECT_EQ(error_after(R"({"k": 1})", [](ConfigFile f) { f.text("k"); }),
            "config.json: k = 1 is not a string");
  EXPECT_EQ(error_after(R"({"k": "x"})", [](ConfigFile f) { f.texts("k"); }),
            "config.json: k = \"x\" is not a list of strings");
  EXPECT_EQ(error_after(R"({"k": [1, "x"]})", [](ConfigFile f) { f.integers("k", 0, 9); }),
            "config.json: k = \"x\" is not an integer from 0 to 9");
  EXPECT_EQ(error_after(R"({"k": [1]})", [](ConfigFile f) { f.object("k").integer("x", 0, 1); }),
            "config.json: k = [1] is not an object");
}

TEST(ConfigFileRefuses, MissingKeys) {
  EXPECT_EQ(error_after("{}", [](ConfigFile f) { f.integer("hidden_size", 1, 9); }),
            "config.json: no hidden_size");
  EXPECT_EQ(error_after(R"({"x": null})", [](ConfigFile f) { f.text("x"); }), "config.json: no x");
  EXPECT_EQ(error_after("{}", [](ConfigFile f) { f.object("rope").number("factor", 0, 1); }),
            "config.json: no rope.factor");
}

TEST(ConfigFileRefuses, AFallbackOutsideItsRange) {
  EXPECT_EQ(error_after("{}", [](ConfigFile f) { EXPECT_EQ(f.integer_or("dim", 0, 1, 9), 1); }),
            "config.json: no dim, and 0 would be no integer from 1 to 9");
  EXPECT_EQ(error_after("{}", [](ConfigFile f) { EXPECT_EQ(f.number_or("x", NAN, 1, 9), 1.0); }),
            "config.json: no x, and nan would be no number from 1 to 9");
}

TEST(ConfigFileRefuses, DocumentsThatAreNoObject) {
  EXPECT_EQ(parse_error("[1]"), "config.json: [1] is not a JSON object");
  EXPECT_EQ(parse_error("null"), "config.json: null is not a JSON object");
  EXPECT_NE(parse_error(""), "");
  EXPECT_NE(parse_error("{\"a\": 1} x"), "");
}

TEST(ConfigFileRefuses, HugeNumbersDeepNestingAndDuplicateKeys) {
  EXPECT_NE(parse_error(R"({"k": 1e400})"), "");
  EXPECT_NE(parse_error("{\"k\": " + std::string(100'000, '[')).find("nested deeper"),
            std::string::npos);
  EXPECT_NE(parse_error(R"({"k": 1, "k": 2})").find("\"k\" appears twice"), std::string::npos);
}

TEST(ConfigFileRefuses, AHugeValueWithAShortMessage) {
  std::string text = "{\"k\": [" + std::string(1'000'000, ' ') + "\"";
  text += std::string(1'000'000, 'v') + "\"]}";
  EXPECT_LT(error_after(text, [](ConfigFile f) { f.flag("k"); }).size(), 200u);
}

}  // namespace
}  // namespace banyan::config_file_test
