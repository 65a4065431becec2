// Lines that a person types, with editing and history (libedit), or lines of a pipe.
//
// Typed lines arrive as UTF-8 whatever the locale. The prompt and the editing go to stderr, so
// that stdout carries replies alone.
#pragma once

#include <memory>
#include <string>

namespace banyan::cli {

struct LineRead {
  enum class Kind {
    kLine,
    kInterrupted,  // Ctrl-C; what was typed is thrown away, `text` tells whether it was anything
    kEnd,          // Ctrl-D on an empty line, or the pipe's end
  };
  Kind kind = Kind::kEnd;
  std::string text;  // without the newline
};

class LineReader {
 public:
  // `interactive`: stdin and stderr are a terminal. Ctrl-C is noticed while an InterruptScope
  // lives.
  explicit LineReader(bool interactive);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The prompt is shown to a person only.
  LineRead read(const std::string& prompt);
  bool interactive() const { return editor_ != nullptr; }

 private:
  class Editor;
  LineRead read_unprompted();

  std::unique_ptr<Editor> editor_;  // null for a pipe
  std::string unread_;              // of a pipe: what has come and is not read yet
};

}  // namespace banyan::cli
