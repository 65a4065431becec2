// Runs the built program as a person or a script would.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "support/shared.h"

namespace banyan::test {

struct ProgramResult {
  int exit_code = -1;  // 128 + the signal's number if one ended it
  std::string out;
  std::string err;
};

inline int exit_code_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

// Replaces this process by the program, which may use so much address space, or by another one;
// call only after a fork.
[[noreturn]] inline void become_program(const std::vector<std::string>& arguments,
                                        rlim_t address_space_bytes = RLIM_INFINITY,
                                        const std::string& path = program_path()) {
  std::vector<char*> words = {const_cast<char*>("banyan")};
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  rlimit limit = {address_space_bytes, address_space_bytes};
  if (address_space_bytes != RLIM_INFINITY) setrlimit(RLIMIT_AS, &limit);
  execv(path.c_str(), words.data());
  _exit(127);
}

// Starts the program with files for its standard streams, -1 for those that it shares with the
// test; it lives five minutes at most.
inline pid_t start_program(const std::vector<std::string>& arguments, int in, int out, int err,
                           rlim_t address_space_bytes = RLIM_INFINITY,
                           const std::string& path = program_path()) {
  pid_t child = fork();
  if (child != 0) return child;
  if (in >= 0) dup2(in, STDIN_FILENO);
  if (out >= 0) dup2(out, STDOUT_FILENO);
  if (err >= 0) dup2(err, STDERR_FILENO);
  alarm(300);
  become_program(arguments, address_space_bytes, path);
}

// Returns once the kernel says that `process` handles SIGINT itself, or once it has ended.
inline void wait_until_it_catches_interrupts(pid_t process) {
  std::string path = "/proc/" + std::to_string(process) + "/status";
  auto catches = [&] {
    std::ifstream status(path);
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("SigCgt:")) continue;
      return ((std::stoull(line.substr(7), nullptr, 16) >> (SIGINT - 1)) & 1) != 0;
    }
    return false;
  };
  // Waits for it without taking its exit status.
  siginfo_t ended{};
  while (!catches() &&
         waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// A file that the program reads or writes; closed when the object is destroyed.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags)
      : descriptor_(open(path.c_str(), flags | O_CLOEXEC)) {}
  ~OpenFile() { close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// Runs `banyan ARGUMENTS` with `input` on stdin until it ends; five minutes at most.
inline ProgramResult run_program(const std::vector<std::string>& arguments,
                                 const std::string& input = "",
                                 rlim_t address_space_bytes = RLIM_INFINITY,
                                 const std::string& path = program_path()) {
  TemporaryFolder folder;
  std::string in = folder.write("in", input), out = folder.write("out", ""),
              err = folder.write("err", "");
  OpenFile stdin_file(in, O_RDONLY), stdout_file(out, O_WRONLY), stderr_file(err, O_WRONLY);
  pid_t child = start_program(arguments, stdin_file.descriptor(), stdout_file.descriptor(),
                              stderr_file.descriptor(), address_space_bytes, path);
  int status = 0;
  waitpid(child, &status, 0);
  return {exit_code_of(status), read_file(out).value(), read_file(err).value()};
}

inline void copy_files(const std::string& from, const TemporaryFolder& to,
                       const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::filesystem::copy_file(from + "/" + name, to.path() + "/" + name);
  }
}

// A model that writes random text without end: random weights, a small vocabulary and room for a
// million tokens. No chat template.
inline void make_endless_model(const TemporaryFolder& folder) {
  copy_files(source_path("tests/golden/tokenizer/tiny_metaspace"), folder,
             {"tokenizer.json", "tokenizer_config.json"});
  folder.write("config.json", R"({
      "architectures": ["LlamaForCausalLM"], "vocab_size": 800, "hidden_size": 64,
      "intermediate_size": 172, "num_hidden_layers": 5, "num_attention_heads": 8,
      "num_key_value_heads": 4, "max_position_embeddings": 1048576, "bos_token_id": 1,
      "eos_token_id": 2})");
}

// banyan-nano with another chat template, or with none.
inline void make_story_model(const TemporaryFolder& folder, const std::string& chat_template = "") {
  copy_files(nano_model(), folder,
             {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"});
  if (!chat_template.empty()) folder.write("chat_template.jinja", chat_template);
}

// Parses the one line of JSON that a verb printed.
inline Json parse_output(const ProgramResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(result.out.ends_with("}\n")) << result.out;
  Result<Json> json = parse_json(result.out, "stdout");
  EXPECT_TRUE(json.has_value()) << result.out;
  return json ? *json : Json::object();
}

inline std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

// A small checkpoint without tokenizer files.
inline std::string golden_model() {
  return source_path("tests/golden/models/qwen3-tied");
}

}  // namespace banyan::test
