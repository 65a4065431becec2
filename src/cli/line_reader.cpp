#include "cli/line_reader.h"

#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>
#include <utf8proc.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "cli/terminal.h"

namespace banyan::cli {
namespace {

constexpr int kHistoryLinesMax = 1000;

// libedit draws by the locale. One that knows only ASCII says nothing about the terminal (it is
// what containers and cron give), and nearly all terminals are UTF-8.
void choose_locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) == "ANSI_X3.4-1968") {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
}

// One character for libedit, whose own reader would miss a Ctrl-C.
int read_character(EditLine* editor, wchar_t* character) {
  std::mbstate_t state = {};
  while (true) {
    InterruptScope::Wait wait = InterruptScope::wait_for_input(STDIN_FILENO);
    if (wait == InterruptScope::Wait::kInterrupted) return -1;
    if (wait == InterruptScope::Wait::kOtherSignal) {
      el_wset(editor, EL_REFRESH);  // back from being stopped, or the window's size has changed
      continue;
    }
    char byte = 0;
    ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count <= 0) return static_cast<int>(count);
    // A Ctrl-D from before libedit took over the terminal is a NUL by the time it is read.
    const LineInfoW* line = el_wline(editor);
    if (byte == '\0' && line->buffer == line->lastchar) return 0;
    size_t length = std::mbrtowc(character, &byte, 1, &state);
    if (length <= 1) return 1;
    if (length == static_cast<size_t>(-1)) state = {};  // not a character here; skip it
  }
}

std::string to_utf8(const wchar_t* text, size_t length) {
  std::string out;
  for (size_t i = 0; i < length; ++i) {
    utf8proc_uint8_t bytes[4];
    auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(text[i]), bytes);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
  }
  return out;
}

}  // namespace

class LineReader::Editor {
 public:
  Editor() : history_(history_winit()), editor_(el_init("banyan", stdin, stderr, stderr)) {
    CHECK(history_ != nullptr && editor_ != nullptr, "libedit has no memory");
    HistEventW event;
    history_w(history_, &event, H_SETSIZE, kHistoryLinesMax);
    history_w(history_, &event, H_SETUNIQUE, 1);
    el_wset(editor_, EL_HIST, history_w, history_);
    el_wset(editor_, EL_CLIENTDATA, this);
    el_wset(editor_, EL_PROMPT, &Editor::prompt_of);
    el_wset(editor_, EL_SIGNAL, 1);
    el_wset(editor_, EL_EDITOR, L"emacs");
    el_wset(editor_, EL_GETCFN, read_character);
    bind_keys();
    el_source(editor_, nullptr);  // ~/.editrc
  }

  ~Editor() {
    el_end(editor_);
    history_wend(history_);
  }

  LineRead read(const std::string& prompt) {
    prompt_.assign(prompt.begin(), prompt.end());  // ASCII
    int count = 0;
    const wchar_t* line = el_wgets(editor_, &count);
    if (line == nullptr || count <= 0) {
      const LineInfoW* info = el_wline(editor_);
      std::string typed = to_utf8(info->buffer, static_cast<size_t>(info->lastchar - info->buffer));
      std::fputc('\n', stderr);
      if (!InterruptScope::raised()) return {.kind = LineRead::Kind::kEnd, .text = ""};
      InterruptScope::clear();
      return {.kind = LineRead::Kind::kInterrupted, .text = std::move(typed)};
    }
    auto length = static_cast<size_t>(count);
    while (length > 0 && (line[length - 1] == L'\n' || line[length - 1] == L'\r')) --length;
    if (length > 0) remember(line);
    return {.kind = LineRead::Kind::kLine, .text = to_utf8(line, length)};
  }

 private:
  static wchar_t* prompt_of(EditLine* editor) {
    Editor* self = nullptr;
    el_wget(editor, EL_CLIENTDATA, &self);
    return self->prompt_.data();
  }

  void remember(const wchar_t* line) {
    HistEventW event;
    history_w(history_, &event, H_ENTER, line);
  }

  // What terminals send for keys that libedit leaves unbound.
  void bind_keys() {
    constexpr const wchar_t* kBindings[][2] = {
        {L"\\e[H", L"ed-move-to-beg"},       {L"\\e[F", L"ed-move-to-end"},
        {L"\\e[1~", L"ed-move-to-beg"},      {L"\\e[4~", L"ed-move-to-end"},
        {L"\\e[3~", L"ed-delete-next-char"}, {L"\\e[1;5C", L"em-next-word"},
        {L"\\e[1;5D", L"ed-prev-word"},      {L"^W", L"ed-delete-prev-word"},
        {L"^R", L"em-inc-search-prev"},
    };
    for (auto [keys, command] : kBindings) {
      el_wset(editor_, EL_BIND, keys, command, nullptr);
    }
  }

  HistoryW* history_;
  EditLine* editor_;
  std::wstring prompt_;
};

LineReader::LineReader(bool interactive) {
  if (!interactive) return;
  choose_locale();
  editor_ = std::make_unique<Editor>();
}

LineReader::~LineReader() = default;

LineRead LineReader::read(const std::string& prompt) {
  return editor_ != nullptr ? editor_->read(prompt) : read_unprompted();
}

LineRead LineReader::read_unprompted() {
  size_t end = unread_.find('\n');
  while (end == std::string::npos) {
    if (InterruptScope::wait_for_input(STDIN_FILENO) == InterruptScope::Wait::kInterrupted) {
      return {.kind = LineRead::Kind::kInterrupted, .text = std::exchange(unread_, {})};
    }
    char bytes[4096];
    ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size_t before = unread_.size();
    unread_.append(bytes, static_cast<size_t>(count));
    end = unread_.find('\n', before);
  }
  if (unread_.empty()) return {.kind = LineRead::Kind::kEnd, .text = ""};
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end == std::string::npos ? end : end + 1);
  if (line.ends_with('\r')) line.pop_back();
  return {.kind = LineRead::Kind::kLine, .text = std::move(line)};
}

}  // namespace banyan::cli
