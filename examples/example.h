// What every example begins with: the model, and an interpreter on it.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "banyan/program.h"

namespace banyan::examples {

// The model of `--model DIR`, or the one that comes with Banyan. Ends the process with a message if
// there is none.
class Example {
 public:
  Example(int argc, char** argv) {
    std::string folder = BANYAN_SOURCE_DIR "/models/banyan-nano";
    if (argc == 3 && std::strcmp(argv[1], "--model") == 0) {
      folder = argv[2];
    } else if (argc > 1) {
      fail(std::string("usage: ") + argv[0] + " [--model DIR]");
    }
    if (!std::filesystem::exists(folder + "/config.json")) {
      fail("no model at " + folder + "; name a Hugging Face folder with --model DIR");
    }
    Result<std::unique_ptr<Llm>> llm = Llm::load({.model_path = folder});
    if (!llm) fail(llm.error().message);
    llm_ = *std::move(llm);
    interpreter_ = std::make_unique<Interpreter>(in_process_backend(*llm_));
  }

  Interpreter* operator->() { return interpreter_.get(); }

  // Prints what a program said, and its error; the exit status.
  static int show(const State& s) {
    Result<std::string> text = s.text();
    if (text) std::printf("%s\n", text->c_str());
    CallUsage usage = s.usage();
    std::printf("-- %lld calls, %lld prompt tokens (%lld cached), %lld new tokens\n",
                static_cast<long long>(usage.calls), static_cast<long long>(usage.prompt_tokens),
                static_cast<long long>(usage.cached_tokens),
                static_cast<long long>(usage.completion_tokens));
    if (!s.error()) return 0;
    std::fprintf(stderr, "error: %s\n", s.error()->message.c_str());
    return 1;
  }

 private:
  [[noreturn]] static void fail(const std::string& message) {
    std::fprintf(stderr, "error: %s\n", message.c_str());
    std::exit(1);
  }

  std::unique_ptr<Llm> llm_;
  std::unique_ptr<Interpreter> interpreter_;  // last: it uses the model
};

}  // namespace banyan::examples
