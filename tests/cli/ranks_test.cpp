// --tp-size: ranks as threads, and as processes that mpirun starts.
#include <gtest/gtest.h>

#include "cli/program.h"

namespace banyan::ranks_test {
namespace {

using test::ProgramResult;
using test::run_program;

using Words = std::vector<std::string>;

Words generate(const Words& more = {}) {
  Words words = {"generate",
                 "--model",
                 test::nano_model(),
                 "--prompt",
                 "Tell me a story.",
                 "--chat",
                 "--max-tokens",
                 "24",
                 "--json",
                 "--top-logprobs",
                 "2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Ranks, RefusesMoreThanTheModelHasHeads) {
  ProgramResult result = run_program(generate({"--tp-size", "7"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("7 ranks cannot divide this model"), std::string::npos) << result.err;
  result = run_program(generate({"-tp", "0"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("0"), std::string::npos) << result.err;
}

#ifdef BANYAN_HAS_MPI

// What does not depend on the clock.
Json results(const ProgramResult& result) {
  Json json = test::parse_output(result);
  json.erase("timings");
  return json;
}

ProgramResult run_ranks(const std::string& count, Words words) {
  // Containers run as root, and machines of tests have fewer processors than ranks.
  Words all = {"OMPI_ALLOW_RUN_AS_ROOT=1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
               "mpirun",
               "-n",
               count,
               "--bind-to",
               "none",
               "--oversubscribe",
               "--mca",
               "btl",
               "vader,self",
               test::program_path()};
  all.insert(all.end(), words.begin(), words.end());
  return run_program(all, "", RLIM_INFINITY, "/usr/bin/env");
}

TEST(Ranks, ProcessesGiveTheBitsOfThreads) {
  for (std::string count : {"2", "3"}) {
    Json threads = results(run_program(generate({"--tp-size", count, "--threads", count})));
    Json processes = results(run_ranks(count, generate({"--tp-size", count, "--threads", count})));
    EXPECT_EQ(processes, threads);
  }
}

TEST(Ranks, AsManyProcessesAsRanks) {
  ProgramResult result = run_ranks("2", generate());
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("mpirun started 2 processes, but --tp-size is 1"), std::string::npos)
      << result.err;
}

#else

TEST(Ranks, SaysThatItWasCompiledWithoutMpi) {
  Words all = {"OMPI_COMM_WORLD_SIZE=2", test::program_path(), "--version"};
  ProgramResult result = run_program(all, "", RLIM_INFINITY, "/usr/bin/env");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("-DBANYAN_MPI=ON"), std::string::npos) << result.err;
}

#endif

}  // namespace
}  // namespace banyan::ranks_test
