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

}  // namespace
}  // namespace banyan::models_test
