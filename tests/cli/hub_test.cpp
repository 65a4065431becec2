// Downloads from a hub that the test serves, with dropped connections and wrong data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "api/client.h"
#include "cli/hub_server.h"
#include "cli/program.h"
#include "cli/serving_program.h"
#include "support/gguf_file.h"
#include "support/shared.h"

namespace banyan::hub_test {
namespace {

using test::HubServer;
using test::ProgramResult;
using test::run_program;
using test::TemporaryFolder;

constexpr size_t kWeightBytes = 20 << 20;  // three ranges

// Bytes that do not repeat.
std::string noise(size_t bytes) {
  std::string text(bytes, '\0');
  uint64_t state = 1;
  for (char& c : text) {
    state = state * 6364136223846793005 + 1442695040888963407;
    c = static_cast<char>(state >> 56);
  }
  return text;
}

// A hub, an empty cache, and the environment that leads to them.
class Hub : public ::testing::Test {
 protected:
  Hub() {
    setenv("HF_ENDPOINT", server.url().c_str(), 1);
    setenv("HF_HOME", home.path().c_str(), 1);
    unsetenv("HF_HUB_CACHE");
    unsetenv("HF_HUB_OFFLINE");
    setenv("HF_TOKEN", "secret", 1);
    server.files = {{"config.json", "{}"},
                    {"tokenizer.json", "{}"},
                    {"README.md", "text"},
                    {"pytorch_model.bin", "pickle"},
                    {"model.safetensors", noise(kWeightBytes)}};
  }
  ~Hub() override {
    for (const char* name : {"HF_ENDPOINT", "HF_HOME", "HF_TOKEN", "HF_HUB_OFFLINE"}) {
      unsetenv(name);
    }
  }

  std::string repository() const { return home.path() + "/hub/models--acme--nano"; }
  std::string snapshot() const { return repository() + "/snapshots/" + std::string(40, 'c'); }
  ProgramResult pull() { return run_program({"pull", "acme/nano"}); }

  // That pulling fails, says `text`, and leaves no model behind.
  void expect_refused(const std::string& text) {
    ProgramResult result = pull();
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(repository() + "/refs/main"));
  }

  HubServer server;
  TemporaryFolder home;
};

TEST_F(Hub, PullsWhatAnEngineNeedsInTheLayoutOfTheCache) {
  ProgramResult result = pull();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, snapshot() + "\n");
  EXPECT_NE(result.err.find("3 files, 21.0 MB"), std::string::npos) << result.err;
  std::string weights = snapshot() + "/model.safetensors";
  EXPECT_TRUE(std::filesystem::is_symlink(weights));
  EXPECT_EQ(read_file(weights).value(), server.files["model.safetensors"]);
  EXPECT_EQ(read_file(repository() + "/refs/main").value(), std::string(40, 'c'));
  int ranges = 0;
  for (const std::string& request : server.requests()) {
    EXPECT_TRUE(request.ends_with("Bearer secret")) << request;
    EXPECT_EQ(request.find("README"), std::string::npos) << request;
    EXPECT_EQ(request.find("pytorch"), std::string::npos) << request;
    if (request.find("bytes=") != std::string::npos) ++ranges;
  }
  EXPECT_EQ(ranges, 3);
  int64_t before = server.body_bytes;
  EXPECT_EQ(pull().exit_code, 0);
  EXPECT_EQ(server.body_bytes, before) << "it is there already";
}

TEST_F(Hub, PullsWhatSaysHowEmbeddingsArePooled) {
  server.files["modules.json"] = "[]";
  server.files["1_Pooling/config.json"] = "{}";
  server.files["2_Dense/config.json"] = "{}";
  ASSERT_EQ(pull().exit_code, 0);
  EXPECT_EQ(read_file(snapshot() + "/modules.json").value(), "[]");
  EXPECT_EQ(read_file(snapshot() + "/1_Pooling/config.json").value(), "{}");
  EXPECT_FALSE(std::filesystem::exists(snapshot() + "/2_Dense"));
}

TEST_F(Hub, FetchesForClientsOfTheServer) {
  test::ServingProgram serving(test::nano_model());
  test::Client client(std::stoi(serving.url.substr(serving.url.rfind(':') + 1)));
  client.send(
      "POST /api/pull HTTP/1.1\r\nHost: localhost\r\nContent-Length: 21\r\n\r\n"
      R"({"model":"acme/nano"})");
  test::Response answer = client.response();
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_TRUE(answer.body.starts_with(R"({"status":"pulling manifest"})")) << answer.body;
  EXPECT_TRUE(answer.body.ends_with("{\"status\":\"success\"}\n")) << answer.body;
  EXPECT_NE(answer.body.find(R"("completed":20971520)"), answer.body.npos) << answer.body;
  EXPECT_EQ(read_file(snapshot() + "/model.safetensors").value(),
            server.files["model.safetensors"]);
}

TEST_F(Hub, ListsAndRemovesWhatItHas) {
  EXPECT_EQ(run_program({"list"}).out, "");
  ASSERT_EQ(pull().exit_code, 0);
  ProgramResult list = run_program({"list"});
  EXPECT_NE(list.out.find("acme/nano"), std::string::npos) << list.out;
  EXPECT_NE(list.out.find("21.0 MB"), std::string::npos) << list.out;
  ProgramResult removed = run_program({"rm", "acme/nano"});
  EXPECT_EQ(removed.exit_code, 0) << removed.err;
  EXPECT_FALSE(std::filesystem::exists(repository()));
  EXPECT_EQ(run_program({"rm", "acme/nano"}).exit_code, 1);
}

TEST_F(Hub, GoesOnWhereAConnectionWasCut) {
  server.behaviour.cut_after = 1 << 20;
  server.behaviour.cuts = 6;
  ProgramResult result = pull();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_file(snapshot() + "/model.safetensors").value(),
            server.files["model.safetensors"]);
  EXPECT_LT(server.body_bytes, static_cast<int64_t>(kWeightBytes) + 1000) << "nothing came twice";
}

TEST_F(Hub, GoesOnWhereAnEarlierRunEnded) {
  const std::string& weights = server.files["model.safetensors"];
  std::string blob = repository() + "/blobs/" + HubServer::sha256(weights);
  constexpr size_t kChunk = 8 << 20;
  std::string part = weights.substr(0, kChunk) + std::string(kWeightBytes - kChunk, '\0');
  ASSERT_TRUE(replace_file(blob + ".banyan-incomplete", part));
  ASSERT_TRUE(replace_file(blob + ".banyan-chunks",
                           std::to_string(kWeightBytes) + " " + std::to_string(kChunk) + "\n0\n"));
  ASSERT_EQ(pull().exit_code, 0);
  EXPECT_EQ(read_file(blob).value(), weights);
  EXPECT_LT(server.body_bytes, static_cast<int64_t>(kWeightBytes - kChunk) + 1000);
}

TEST_F(Hub, FetchesTheWholeFromAHubWithoutRanges) {
  server.behaviour.ranges = false;
  ASSERT_EQ(pull().exit_code, 0);
  EXPECT_EQ(read_file(snapshot() + "/model.safetensors").value(),
            server.files["model.safetensors"]);
}

TEST_F(Hub, BelievesNoLie) {
  server.behaviour.wrong_bytes = true;
  expect_refused("the hub announced");
  server.behaviour.wrong_bytes = false;
  server.behaviour.range = "bytes 0-9/10";
  expect_refused("requested bytes");
  server.behaviour.range = "";
  server.behaviour.etag = "../../../evil";
  expect_refused("invalid ETag");
  server.behaviour.etag = "";
  server.behaviour.commit = "../../../../../../../../../../../../evil/";
  expect_refused("is not a commit hash");
}

TEST_F(Hub, NamesOfShardsArePlain) {
  server.files.erase("model.safetensors");
  server.files["model.safetensors.index.json"] =
      R"({"weight_map": {"a": "../../evil.safetensors"}})";
  expect_refused("not a plain *.safetensors name");
  for (const std::string& request : server.requests()) {
    EXPECT_EQ(request.find("evil"), std::string::npos) << request;
  }
}

TEST_F(Hub, RefusalsSayWhatToDo) {
  server.behaviour.status = 401;
  expect_refused("the token in HF_TOKEN is refused");
  unsetenv("HF_TOKEN");
  expect_refused("HF_TOKEN, a token of your account, is not set");
  server.behaviour.error_code = "GatedRepo";
  expect_refused("agree to terms");
  server.behaviour.status = 404;
  server.behaviour.error_code = "RevisionNotFound";
  expect_refused("has no revision \"main\"");
  server.behaviour.error_code = "";
  expect_refused("has no model acme/nano");
  setenv("HF_HUB_OFFLINE", "1", 1);
  size_t before = server.requests().size();
  expect_refused("HF_HUB_OFFLINE");
  EXPECT_EQ(server.requests().size(), before);
  EXPECT_EQ(run_program({"pull", "../evil"}).exit_code, 2);
}

TEST_F(Hub, RunsAModelByItsNameAndThenWithoutTheHub) {
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json",
                           "chat_template.jinja", "model.safetensors"}) {
    server.files[name] = read_file(test::nano_model() + "/" + name).value();
  }
  std::vector<std::string> here = {"generate", test::nano_model(), "Once", "-n", "4"};
  std::vector<std::string> there = {"generate", "acme/nano", "Once", "-n", "4"};
  ProgramResult first = run_program(there);
  EXPECT_EQ(first.out, run_program(here).out) << first.err;
  EXPECT_NE(first.err.find("there is no folder acme/nano here; asking " + server.url()),
            std::string::npos)
      << first.err;
  size_t before = server.requests().size();
  setenv("HF_HUB_OFFLINE", "1", 1);
  ProgramResult again = run_program(there);
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(again.err, "");
  EXPECT_EQ(server.requests().size(), before);
}

// A small model in one file, with a tokenizer.
std::string tiny_gguf() {
  test::GgufGolden golden = test::gguf_golden_with_tokenizer();
  return test::gguf_file(golden.pairs, golden.tensors);
}

TEST_F(Hub, PullsTheGgufFileThatIsNamed) {
  server.files = {{"README.md", "text"},
                  {"Nano-Q4_K_M.gguf", noise(3000)},
                  {"Nano-Q8_0.gguf", noise(4000)},
                  {"mmproj-Nano-F16.gguf", "projector"},
                  {"BF16/Nano-BF16-00001-of-00002.gguf", noise(5000)},
                  {"BF16/Nano-BF16-00002-of-00002.gguf", noise(6000)}};
  ProgramResult usual = pull();
  EXPECT_EQ(usual.out, snapshot() + "/Nano-Q4_K_M.gguf\n") << usual.err;
  EXPECT_NE(usual.err.find("1 file, 3.00 kB"), std::string::npos) << usual.err;
  ProgramResult parts = run_program({"pull", "hf.co/acme/nano:bf16"});
  EXPECT_EQ(parts.out, snapshot() + "/BF16/Nano-BF16-00001-of-00002.gguf\n") << parts.err;
  for (const char* file : {"Nano-Q4_K_M.gguf", "BF16/Nano-BF16-00002-of-00002.gguf"}) {
    EXPECT_EQ(read_file(snapshot() + "/" + file).value(), server.files[file]);
  }
  EXPECT_FALSE(std::filesystem::exists(snapshot() + "/Nano-Q8_0.gguf"));
  ProgramResult wrong = run_program({"pull", "acme/nano:Q5_K_M"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.err.find("no GGUF file \"Q5_K_M\"; it has: BF16, Q4_K_M, Q8_0"),
            std::string::npos)
      << wrong.err;
  std::string list = run_program({"list"}).out;
  EXPECT_NE(list.find(snapshot() + "  :BF16 :Q4_K_M\n"), std::string::npos) << list;
}

TEST_F(Hub, RemovesOneGgufFile) {
  server.files = {{"Nano-Q4_0.gguf", noise(3000)}, {"Nano-Q8_0.gguf", noise(4000)}};
  ASSERT_EQ(pull().exit_code, 0);
  ASSERT_EQ(run_program({"pull", "acme/nano:Q8_0"}).exit_code, 0);
  EXPECT_EQ(run_program({"rm", "acme/nano:BF16"}).exit_code, 1);
  ProgramResult removed = run_program({"rm", "acme/nano:q8_0"});
  EXPECT_EQ(removed.out, "acme/nano:q8_0 is removed, 4.00 kB are free\n") << removed.err;
  std::string blob = "/blobs/" + HubServer::sha256(server.files["Nano-Q8_0.gguf"]);
  EXPECT_FALSE(std::filesystem::exists(repository() + blob));
  EXPECT_TRUE(std::filesystem::exists(snapshot() + "/Nano-Q4_0.gguf"));
  EXPECT_EQ(run_program({"rm", "acme/nano:Q4_0"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(repository()));
}

TEST_F(Hub, SafetensorsComeFirstAndUnsupportedFormatsNever) {
  server.files["Nano-Q8_0.gguf"] = noise(3000);
  server.files["Nano-IQ2_M.gguf"] = noise(3000);
  ProgramResult file = run_program({"pull", "acme/nano:Q8_0"});
  EXPECT_EQ(file.out, snapshot() + "/Nano-Q8_0.gguf\n") << file.err;
  EXPECT_EQ(pull().out, snapshot() + "\n");
  size_t before = server.requests().size();
  ProgramResult refused = run_program({"pull", "acme/nano:IQ2_M"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("tensors of IQ2_M, which is not supported"), std::string::npos)
      << refused.err;
  EXPECT_EQ(server.requests().size(), before + 1) << "the listing alone";
}

TEST_F(Hub, RunsAGgufFileAndThenWithoutTheHub) {
  server.files = {{"Tiny-Q4_0.gguf", noise(3000)}, {"Tiny-F32.gguf", tiny_gguf()}};
  TemporaryFolder folder;
  std::string here = folder.write("tiny.gguf", server.files["Tiny-F32.gguf"]);
  auto generate = [](std::vector<std::string> words) {
    words.insert(words.begin(), "generate");
    words.insert(words.end(), {"-p", "aab", "-n", "4", "--temp", "0", "--json"});
    return run_program(words);
  };
  auto text_of = [](const ProgramResult& result) {
    Json json = Json::parse(result.out, nullptr, false);
    return json.is_object() && json.contains("text") ? json["text"].dump() : result.err;
  };
  ProgramResult first = generate({here});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  std::string expected = text_of(first);
  EXPECT_EQ(text_of(generate({"acme/nano:f32"})), expected);
  size_t before = server.requests().size();
  EXPECT_EQ(text_of(generate({"-hf", "hf.co/acme/nano:F32"})), expected);
  EXPECT_EQ(text_of(generate({"-hfr", "acme/nano", "-hff", "Tiny-F32.gguf"})), expected);
  EXPECT_EQ(server.requests().size(), before) << "the cache has it";
  setenv("HF_HUB_OFFLINE", "1", 1);
  EXPECT_EQ(text_of(generate({"--hf-repo", "acme/nano"})), expected) << "what is here will do";
  ProgramResult other = generate({"acme/nano:Q4_0"});
  EXPECT_NE(other.err.find("acme/nano:Q4_0 is not cached in"), std::string::npos) << other.err;
  unsetenv("HF_HUB_OFFLINE");
  EXPECT_EQ(generate({"acme/nano"}).exit_code, 1) << "the hub's Q4_0 is noise";
  EXPECT_TRUE(std::filesystem::exists(snapshot() + "/Tiny-Q4_0.gguf"));
}

TEST_F(Hub, AFolderOfTheOwnerKeepsItFromBeingAsked) {
  ProgramResult result = run_program({"generate", "models/nano", "Once"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("since a folder models exists here"), std::string::npos) << result.err;
  EXPECT_TRUE(server.requests().empty());
}

}  // namespace
}  // namespace banyan::hub_test
