// The choice of a kernel table: known processors, probes, and the file that keeps their result.
// Processors and clocks are made up.
#include "kernels/choice/choice.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "kernels/choice/known.h"
#include "kernels/select.h"
#include "quant/formats.h"
#include "support/shared.h"

namespace banyan::choice_test {
namespace {

using test::TemporaryFolder;

const std::vector<std::string> kAll = {"portable",    "avx2",        "avx512",
                                       "avx512_vnni", "avx512_bf16", "amx"};

std::vector<std::string> tables_until(std::string_view last) {
  return {kAll.begin(), std::ranges::find(kAll, last) + 1};
}

// Seconds of a run by format and table, with every table as fast as `other_s` where nothing is
// said.
struct MadeUpSpeeds {
  std::map<std::pair<std::string, std::string>, double> seconds;
  double other_s = 0.001;
};

// Counts what it is asked for, on a clock of its own.
class MadeUpProbe : public KernelProbe {
 public:
  MadeUpProbe(MadeUpSpeeds speeds, std::vector<std::string> tables, int& runs)
      : speeds_(std::move(speeds)), tables_(std::move(tables)), runs_(runs) {}

  void prepare(const GemmFormat& format) override { format_ = format.name; }
  double run(size_t table) override {
    auto it = speeds_.seconds.find({format_, tables_[table]});
    double seconds = it == speeds_.seconds.end() ? speeds_.other_s : it->second;
    ++runs_;
    now_s_ += seconds;
    // One run in seven is disturbed, another table's each time.
    return runs_ % 7 == 0 ? 10 * seconds : seconds;
  }
  double now_s() override { return now_s_; }

 private:
  MadeUpSpeeds speeds_;
  std::vector<std::string> tables_;
  std::string format_;
  int& runs_;
  double now_s_ = 100;
};

class ChooseKernels : public ::testing::Test {
 protected:
  ChoosingMachine machine(std::string_view last_table, const Processor& processor = kUnknown) {
    return {.processor = processor,
            .tables = tables_until(last_table),
            .cache_folder = folder_.path(),
            .today = "2026-11-23",
            .probe = [this](const std::vector<std::string>& tables) {
              ++probes_;
              return std::make_unique<MadeUpProbe>(speeds_, tables, runs_);
            }};
  }
  std::string file() { return choice_file(machine("avx512_bf16")); }

  // Pairs of bf16 at half the rate of f32, as on Intel's processors without AMX.
  void make_pairs_slow() {
    for (const char* format : {"bf16", "fp8"}) speeds_.seconds[{format, "avx512_bf16"}] = 0.002;
    for (const char* format :
         {"int8", "int4", "uint4", "mxfp4", "q2", "q3", "q4", "q5", "q6", "iq4"}) {
      for (const char* table : {"avx2", "avx512"}) speeds_.seconds[{format, table}] = 0.0018;
      speeds_.seconds[{format, "avx512_bf16"}] = 0.0011;  // attention
    }
  }

  static inline const Processor kUnknown = {"GenuineIntel", 6, 85, 11};
  TemporaryFolder folder_;
  MadeUpSpeeds speeds_;
  int probes_ = 0, runs_ = 0;
};

size_t format_index(std::string_view name) {
  return static_cast<size_t>(std::ranges::find(kGemmFormats, name, &GemmFormat::name) -
                             kGemmFormats.begin());
}

TEST(GemmFormats, AreThoseOfWeights) {
  ASSERT_EQ(kGemmFormats.size(), weight_formats().size());
  for (const GemmFormat& format : kGemmFormats) {
    const WeightFormat* weights = format_named(format.name);
    ASSERT_NE(weights, nullptr) << format.name;
    EXPECT_EQ(weights->kernel, format.kernel) << format.name;
    EXPECT_EQ(dtype_bytes(weights->element), format.element_bytes) << format.name;
  }
}

TEST_F(ChooseKernels, EveryKnownProcessorGetsItsTableUnprobed) {
  for (const KnownProcessor& known : known_processors()) {
    SCOPED_TRACE(known.name);
    for (int model : {known.model_first, known.model_last}) {
      Processor processor = {std::string(known.vendor), known.family, model, 1};
      KernelChoices choices = choose_kernels(machine(known.runs, processor));
      EXPECT_TRUE(choices.same_for_all());
      EXPECT_EQ(choices.tables[0], known.kernels);
      EXPECT_EQ(choices.reasons[0], fmt::format("{}: {}", known.name, known.figures));
      EXPECT_EQ(find_known(processor, known.runs), &known) << "another entry is for it too";
    }
    EXPECT_LE(known.model_first, known.model_last);
    EXPECT_TRUE(std::ranges::count(tables_until(known.runs), known.kernels) == 1);
    EXPECT_FALSE(known.figures.empty());
  }
  EXPECT_EQ(probes_, 0);
}

TEST_F(ChooseKernels, WhatTheListSays) {
  auto table = [&](const char* vendor, int family, int model, std::string_view last) {
    return choose_kernels(machine(last, {vendor, family, model, 0})).tables[format_index("bf16")];
  };
  EXPECT_EQ(table("AuthenticAMD", 25, 17, "avx512_bf16"), "avx512_bf16");
  EXPECT_EQ(table("AuthenticAMD", 26, 2, "avx512_bf16"), "avx512_bf16");
  EXPECT_EQ(table("GenuineIntel", 6, 207, "avx512_bf16"), "avx512_vnni");
  EXPECT_EQ(table("GenuineIntel", 6, 207, "amx"), "amx");
  EXPECT_EQ(table("GenuineIntel", 6, 143, "amx"), "amx");
  EXPECT_EQ(probes_, 0);
  // The same processor where a virtual machine hides an instruction is another one.
  EXPECT_EQ(find_known({"AuthenticAMD", 25, 17, 0}, "avx512_vnni"), nullptr);
  EXPECT_EQ(find_known({"AuthenticAMD", 25, 1, 0}, "avx2"), nullptr);
}

TEST_F(ChooseKernels, OneVectorTableIsNotProbed) {
  EXPECT_EQ(choose_kernels(machine("portable")).tables[0], "portable");
  KernelChoices choices = choose_kernels(machine("avx2"));
  EXPECT_TRUE(choices.same_for_all());
  EXPECT_EQ(choices.tables[0], "avx2");
  EXPECT_EQ(choices.reasons[0], "the only vector kernels that this processor runs");
  EXPECT_EQ(probes_, 0);
}

TEST_F(ChooseKernels, AnUnknownProcessorIsProbedOnce) {
  make_pairs_slow();
  KernelChoices choices = choose_kernels(machine("avx512_bf16"));
  EXPECT_EQ(probes_, 1);
  EXPECT_EQ(choices.tables[format_index("bf16")], "avx512_vnni");
  EXPECT_EQ(choices.tables[format_index("fp8")], "avx512_vnni");
  EXPECT_EQ(choices.tables[format_index("int4")], "avx512_vnni");
  EXPECT_EQ(choices.tables[format_index("f32")], "avx512_bf16");  // all alike
  EXPECT_EQ(choices.reasons[format_index("bf16")],
            "avx512_bf16 reaches 0.50 of its speed here (probe of 2026-11-23)");
  EXPECT_EQ(choices.reasons[format_index("f32")], "the fastest here (probe of 2026-11-23)");
  EXPECT_FALSE(choices.same_for_all());

  speeds_ = {};  // another day, another speed: the file counts
  ChoosingMachine later = machine("avx512_bf16");
  later.today = "2027-01-01";
  KernelChoices again = choose_kernels(later);
  EXPECT_EQ(again.tables, choices.tables);
  EXPECT_EQ(again.reasons, choices.reasons);
  EXPECT_EQ(probes_, 1);
}

TEST_F(ChooseKernels, EveryTableCanWin) {
  for (std::string_view winner : {"avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"}) {
    TemporaryFolder folder;
    speeds_ = {};
    for (const GemmFormat& format : kGemmFormats) {
      speeds_.seconds[{std::string(format.name), std::string(winner)}] = 0.0005;
    }
    ChoosingMachine one = machine("amx");
    one.cache_folder = folder.path();
    KernelChoices choices = choose_kernels(one);
    EXPECT_TRUE(choices.same_for_all());
    EXPECT_EQ(choices.tables[0], winner);
  }
}

TEST_F(ChooseKernels, AFileIsOfOneMachine) {
  choose_kernels(machine("avx512_bf16"));
  EXPECT_EQ(probes_, 1);
  choose_kernels(machine("avx512_vnni"));
  EXPECT_EQ(probes_, 2);
  choose_kernels(machine("avx512_bf16", {"GenuineIntel", 6, 85, 7}));
  EXPECT_EQ(probes_, 3);
  // Nor does the file of another machine under this one's name.
  ChoosingMachine other = machine("avx512_bf16", {"GenuineIntel", 6, 85, 7});
  std::filesystem::copy_file(choice_file(other), file(),
                             std::filesystem::copy_options::overwrite_existing);
  choose_kernels(machine("avx512_bf16"));
  EXPECT_EQ(probes_, 4);
  choose_kernels(machine("avx512_bf16"));
  EXPECT_EQ(probes_, 4);
}

TEST_F(ChooseKernels, ACorruptFileIsAMissAndIsWrittenAnew) {
  make_pairs_slow();
  KernelChoices expected = choose_kernels(machine("avx512_bf16"));
  std::string whole = *read_file(file());
  std::vector<std::string> broken = {"",     "{",  "[]",
                                     "null", "{}", whole.substr(0, whole.size() / 2)};
  auto replaced = [&](std::string_view from, std::string_view to) {
    std::string text = whole;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    broken.push_back(text.replace(at, from.size(), to));
  };
  replaced("\"format\":1", "\"format\":2");
  replaced("\"machine\":\"GenuineIntel", "\"machine\":\"genuineIntel");
  replaced("\"date\":\"2026-11-23\"", "\"date\":20261123");
  replaced("\"avx512\":", "\"avx1024\":");
  replaced("\"mxfp4\":{", "\"mxfp5\":{");
  replaced("\"avx512_vnni\":1.0", "\"avx512_vnni\":\"1.0\"");
  replaced("\"avx512_vnni\":1.0", "\"avx512_vnni\":0.0");
  replaced("\"avx512_vnni\":1.0", "\"avx512_vnni\":-1.0");
  for (size_t i = 0; i < broken.size(); ++i) {
    std::ofstream(file(), std::ios::trunc) << broken[i];
    EXPECT_EQ(choose_kernels(machine("avx512_bf16")).tables, expected.tables) << broken[i];
    EXPECT_EQ(probes_, static_cast<int>(i) + 2) << broken[i];
    EXPECT_EQ(*read_file(file()), whole) << broken[i];
  }
}

// Whichever comes first, both use what one of them found.
TEST_F(ChooseKernels, ProcessesThatStartAtOnceChooseAlike) {
  constexpr int kProcesses = 4;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    // Each of them would find a different fastest table, and takes its time.
    speeds_.seconds[{"bf16", kAll[static_cast<size_t>(i) + 1]}] = 0.0001;
    ChoosingMachine one = machine("amx");
    auto probe = one.probe;
    one.probe = [&](const std::vector<std::string>& tables) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      std::ofstream(folder_.path() + fmt::format("/probed{}", i)) << "yes";
      return probe(tables);
    };
    std::ofstream(folder_.path() + fmt::format("/chosen{}", i))
        << choose_kernels(one).tables[format_index("bf16")];
    ::_exit(0);
  }
  for (pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  int probed = 0;
  std::string first = *read_file(folder_.path() + "/chosen0");
  for (int i = 0; i < kProcesses; ++i) {
    EXPECT_EQ(*read_file(folder_.path() + fmt::format("/chosen{}", i)), first) << i;
    probed += file_exists(folder_.path() + fmt::format("/probed{}", i)) ? 1 : 0;
  }
  EXPECT_EQ(probed, 1);
  EXPECT_EQ(choose_kernels(machine("amx")).tables[format_index("bf16")], first);
}

TEST_F(ChooseKernels, WithoutAFolderNothingIsProbedAndAllChooseAlike) {
  make_pairs_slow();
  for (const char* folder : {"", "/dev/null/banyan"}) {
    ChoosingMachine one = machine("avx512_bf16");
    one.cache_folder = folder;
    KernelChoices choices = choose_kernels(one);
    EXPECT_TRUE(choices.same_for_all());
    EXPECT_EQ(choices.tables[0], "avx512_bf16");
    EXPECT_EQ(choices.reasons[0], "not measured, since nothing can be kept");
    EXPECT_FALSE(refresh_kernels(one).has_value());
  }
  EXPECT_EQ(probes_, 0);
}

TEST_F(ChooseKernels, AFileThatIsThereCountsWhereNoneCanBeWritten) {
  make_pairs_slow();
  KernelChoices expected = choose_kernels(machine("avx512_bf16"));
  std::filesystem::remove(file() + ".lock");
  std::filesystem::create_directory(file() + ".lock");  // which nobody opens for writing
  EXPECT_EQ(choose_kernels(machine("avx512_bf16")).tables, expected.tables);
  EXPECT_EQ(probes_, 1);
  std::filesystem::remove(file());
  EXPECT_EQ(choose_kernels(machine("avx512_bf16")).tables[0], "avx512_bf16");
  EXPECT_EQ(probes_, 1);
}

TEST_F(ChooseKernels, WhatAProbeFoundCountsWhereItCannotBeKept) {
  make_pairs_slow();
  std::filesystem::create_directories(file() + "/in the way");
  KernelChoices choices = choose_kernels(machine("avx512_bf16"));
  EXPECT_EQ(choices.tables[format_index("bf16")], "avx512_vnni");
  EXPECT_EQ(probes_, 1);
  EXPECT_FALSE(refresh_kernels(machine("avx512_bf16")).has_value());
}

TEST_F(ChooseKernels, RefreshReplacesTheFileAndCountsOnKnownProcessorsToo) {
  Processor zen5 = {"AuthenticAMD", 26, 2, 1};
  EXPECT_EQ(choose_kernels(machine("avx512_bf16", zen5)).tables[0], "avx512_bf16");
  make_pairs_slow();
  auto refreshed = refresh_kernels(machine("avx512_bf16", zen5));
  ASSERT_TRUE(refreshed.has_value());
  EXPECT_EQ(refreshed->tables,
            (std::vector<std::string>{"avx2", "avx512", "avx512_vnni", "avx512_bf16"}));
  EXPECT_EQ(refreshed->speeds[format_index("bf16")].size(), 4u);
  EXPECT_DOUBLE_EQ(refreshed->speeds[format_index("bf16")][1], 2);
  EXPECT_EQ(refreshed->file, choice_file(machine("avx512_bf16", zen5)));
  EXPECT_EQ(choose_kernels(machine("avx512_bf16", zen5)).tables, refreshed->choices.tables);
  EXPECT_EQ(refreshed->choices.tables[format_index("bf16")], "avx512_vnni");

  speeds_ = {};
  EXPECT_EQ(refresh_kernels(machine("avx512_bf16", zen5))->choices.tables[1], "avx512_bf16");
  EXPECT_EQ(choose_kernels(machine("avx512_bf16", zen5)).tables[1], "avx512_bf16");
  EXPECT_EQ(probes_, 2);
  EXPECT_EQ(refresh_kernels(machine("avx2"))->choices.tables[0], "avx2");
  EXPECT_EQ(probes_, 2);
}

TEST_F(ChooseKernels, AProbeKeepsToItsTime) {
  speeds_.other_s = 0.001;
  choose_kernels(machine("amx"));
  int quick = runs_;
  EXPECT_EQ(quick, 15 * 5 * std::ssize(kGemmFormats));  // rounds, tables, formats
  runs_ = 0;
  speeds_.other_s = 0.02;  // of 0.1 s a round, and 4.5 s for all formats
  TemporaryFolder folder;
  ChoosingMachine slow = machine("amx");
  slow.cache_folder = folder.path();
  choose_kernels(slow);
  EXPECT_LE(runs_ * speeds_.other_s, 4.5);
  EXPECT_GT(runs_ * speeds_.other_s, 3.5);
}

TEST(FastestTable, IsTheLastOfThoseThatAreAlike) {
  EXPECT_EQ(fastest_table({1}), 0u);
  EXPECT_EQ(fastest_table({0.5, 1.05, 1.02, 1}), 3u);
  EXPECT_EQ(fastest_table({0.5, 1.9, 2, 1}), 2u);
  EXPECT_EQ(fastest_table({0.5, 2, 1.9, 1}), 2u);
  EXPECT_EQ(fastest_table({0.5, 2, 1.5, 1}), 1u);
}

// What a run computes is the kernels' own business; here it must only come to an end.
TEST(RealProbe, RunsEveryFormatOnEveryTable) {
  std::vector<const KernelTable*> tables;
  for (const std::string& name : available_kernels()) tables.push_back(*select_kernels(name));
  if (tables.size() > 1) tables.erase(tables.begin());  // portable, which no probe takes
  ProbedSpeeds speeds = probe_kernels(*real_probe(tables), tables.size(), 0);
  for (const TableSpeeds& of_format : speeds) {
    ASSERT_EQ(of_format.size(), tables.size());
    EXPECT_EQ(of_format.back(), 1);
    for (double speed : of_format) EXPECT_GT(speed, 0);
  }
}

TEST(ThisMachine, ChoosesATableThatItRuns) {
  ChoosingMachine machine = this_machine();
  EXPECT_EQ(machine.tables, available_kernels());
  EXPECT_EQ(machine.today.size(), 10u);
  if (machine.processor != Processor{}) {  // x86-64
    EXPECT_EQ(machine.processor.vendor.size(), 12u);
    EXPECT_GT(machine.processor.family, 0);
  }
  machine.cache_folder = "";  // the user's own stays as it is
  for (const std::string& table : choose_kernels(machine).tables) {
    EXPECT_TRUE(select_kernels(table).has_value()) << table;
  }
}

}  // namespace
}  // namespace banyan::choice_test
