// Reads lines from a person, with editing and history (libedit), or from a pipe.
//
// Typed lines are returned as UTF-8 in any locale. The prompt and the editing go to stderr, so that
// stdout carries only replies.
#pragma once

#include <memory>
#include <string>

namespace banyan::cli {

struct LineRead {
  enum class Kind {
    kLine,
    kInterrupted,  // Ctrl-C; the input is dropped, and `text` is non-empty if there was any
    kEnd,          // Ctrl-D on an empty line, or the end of the pipe
  };
  Kind kind = Kind::kEnd;
  std::string text;  // without the newline
};

class LineReader {
 public:
  // `interactive`: stdin and stderr are a terminal. Ctrl-C is only noticed while an InterruptScope
  // lives.
  explicit LineReader(bool interactive);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The prompt is only shown if interactive.
  LineRead read(const std::string& prompt);
  bool interactive() const { return editor_ != nullptr; }

 private:
  class Editor;
  LineRead read_unprompted();

  std::unique_ptr<Editor> editor_;  // null for a pipe
  std::string unread_;              // of a pipe: received but not returned yet
};

}  // namespace banyan::cli
