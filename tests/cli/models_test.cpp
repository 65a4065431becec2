// banyan models: its list, and that docs/MODELS.md has the same.
#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/program.h"
#include "models/registry.h"

namespace banyan::models_test {
namespace {

using test::run_program;

TEST(Models, AreListedWithThoseThatAreRefused) {
  test::ProgramResult text = run_program({"models"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  Json json = test::parse_output(run_program({"models", "--json"}));
  ASSERT_EQ(json["supported"].size(), registered_families().size());
  ASSERT_EQ(json["refused"].size(), refused_families().size());
  for (const char* list : {"supported", "refused"}) {
    for (const Json& family : json[list]) {
      EXPECT_NE(text.out.find(family["architecture"].get<std::string>()), std::string::npos);
    }
  }
}

TEST(Models, ArePrintedAsThePageHasThem) {
  test::ProgramResult tables = run_program({"models", "--markdown"});
  ASSERT_EQ(tables.exit_code, 0) << tables.err;
  auto page = read_file(test::source_path("docs/MODELS.md"));
  ASSERT_TRUE(page.has_value());
  EXPECT_NE(page->find(tables.out), std::string::npos)
      << "run tools/make_models_page.py; docs/MODELS.md should have\n"
      << tables.out;
}

// It was silent, and no option changed it.
TEST(Models, WithDenseDecodeByDefaultSaySo) {
  test::TemporaryFolder folder;
  std::string golden = test::source_path("tests/golden/models/ring-sparse");
  Json config = parse_json(read_file(golden + "/config.json").value(), "config").value();
  config.erase("use_moba_decode");
  folder.write("config.json", config.dump());
  std::vector<std::string> words = {"generate",      folder.path(), "--prompt-ids",     "1,5,9",
                                    "--load-format", "dummy",       "--max-new-tokens", "2",
                                    "--log-level",   "info"};
  test::ProgramResult dense = run_program(words);
  ASSERT_EQ(dense.exit_code, 0) << dense.err;
  EXPECT_TRUE(dense.err.contains("MoBA selects blocks only in prompts")) << dense.err;
  EXPECT_TRUE(dense.err.contains("--moba-decode selects blocks there")) << dense.err;
  for (const char* option : {"--moba-decode", "--no-moba-decode"}) {
    std::vector<std::string> chosen = words;
    chosen.push_back(option);
    test::ProgramResult result = run_program(chosen);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_FALSE(result.err.contains("MoBA selects blocks only in prompts")) << result.err;
  }
}

}  // namespace
}  // namespace banyan::models_test
