#include "cli/terminal/line_reader.h"

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/signed.h"
#include "cli/terminal/terminal.h"

namespace banyan::cli {
namespace {

constexpr int kHistoryLinesMax = 1000;

// libedit draws according to the locale. An ASCII locale (the default in containers and cron) says
// nothing about the terminal, and nearly all terminals are UTF-8.
void choose_locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) == "ANSI_X3.4-1968") {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
}

// Displayed in place of a line break inside a line: SYMBOL FOR NEWLINE.
constexpr wchar_t kBreak = L'\u2424';
constexpr std::string_view kBreakText = "\u2424";

constexpr std::string_view kPasteBegin = "\033[200~", kPasteEnd = "\033[201~";

// Enables the terminal's bracketed paste while a line is read.
class PasteMarks {
 public:
  PasteMarks() { std::fputs("\033[?2004h", stderr); }
  ~PasteMarks() { std::fputs("\033[?2004l", stderr); }
  PasteMarks(const PasteMarks&) = delete;
  PasteMarks& operator=(const PasteMarks&) = delete;
};

// Whether unread input is available, or arrives within `milliseconds`.
bool has_input(int milliseconds, int descriptor = STDIN_FILENO) {
  pollfd watched = {descriptor, POLLIN, 0};
  return poll(&watched, 1, milliseconds) > 0;
}

// Converts text to the wide characters of one line: line breaks become marks, tabs (which would
// trigger completion) become spaces, and other control characters are dropped.
std::wstring from_utf8(std::string_view bytes) {
  std::wstring text;
  const auto* data = reinterpret_cast<const utf8proc_uint8_t*>(bytes.data());
  auto left = static_cast<utf8proc_ssize_t>(bytes.size());
  bool after_return = false;
  while (left > 0) {
    utf8proc_int32_t point = 0;
    utf8proc_ssize_t length = utf8proc_iterate(data, left, &point);
    if (length < 1) {  // invalid; skip the byte
      length = 1;
      point = 0;
    }
    if (point == '\r' || (point == '\n' && !after_return)) text += kBreak;
    if (point == '\t') text += L' ';
    if (point >= 0x20 && point != 0x7f) text += static_cast<wchar_t>(point);
    after_return = point == '\r';
    data += length;
    left -= length;
  }
  return text;
}

// Reads pasted text up to its end mark.
std::wstring read_paste() {
  std::string bytes;
  char byte = 0;
  while (!bytes.ends_with(kPasteEnd)) {
    ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    bytes += byte;
  }
  if (bytes.ends_with(kPasteEnd)) bytes.resize(bytes.size() - kPasteEnd.size());
  std::wstring text = from_utf8(bytes);
  while (text.ends_with(kBreak)) text.pop_back();
  return text;
}

// The terminal's width in columns; 0 if unknown.
size_t screen_columns() {
  winsize window = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 ? window.ws_col : 0;
}

size_t columns_of(const wchar_t* begin, const wchar_t* end) {
  size_t columns = 0;
  for (const wchar_t* c = begin; c != end; ++c) {
    columns += as_size(utf8proc_charwidth(static_cast<utf8proc_int32_t>(*c)));
  }
  return columns;
}

// State for libedit's callbacks, passed as client data.
struct Screen {
  std::wstring prompt;  // ASCII
  size_t columns = 0;   // when the line was drawn

  static Screen& of(EditLine* editor) {
    Screen* screen = nullptr;
    el_wget(editor, EL_CLIENTDATA, &screen);
    return *screen;
  }
};

// Redraws the line if the width has changed. libedit draws from the cursor's position, and
// terminals rewrap their contents at the new width. So this moves the cursor up to the start of the
// line and clears everything below.
void redraw_resized(EditLine* editor) {
  Screen& screen = Screen::of(editor);
  size_t now = screen_columns();
  if (now == screen.columns || now == 0) return;
  screen.columns = now;
  el_resize(editor);
  const LineInfoW* line = el_wline(editor);
  size_t rows = (screen.prompt.size() + columns_of(line->buffer, line->cursor)) / now;
  if (rows > 0) std::fprintf(stderr, "\033[%zuA", rows);
  std::fputs("\r\033[J", stderr);
  el_wset(editor, EL_REFRESH);
}

// Both handlers below write to it; it is polled together with the keyboard.
int terminal_event = -1;  // an eventfd
volatile std::sig_atomic_t was_stopped = 0;

void wake_reader() {
  int error = errno;
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(terminal_event, &one, sizeof one);
  errno = error;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

// libedit handles each of these signals once per line, then restores the previous handler. From
// then on our handlers do the work.
void notice_terminal_changes() {
  if (terminal_event < 0) terminal_event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  handle(SIGWINCH, [](int) { wake_reader(); });
  handle(SIGCONT, [](int) {
    was_stopped = 1;
    wake_reader();
  });
}

// The window was resized, or the program was stopped and a shell has used the terminal since.
// libedit does not notice that its terminal mode was lost, so leave and enter it again.
void take_terminal_back(EditLine* editor) {
  if (was_stopped != 0) {
    was_stopped = 0;
    el_wset(editor, EL_PREP_TERM, 0);
    el_wset(editor, EL_PREP_TERM, 1);
    el_wset(editor, EL_REFRESH);
  }
  redraw_resized(editor);
}

// Reads one character for libedit, whose own reader would miss Ctrl-C and pasted text.
int read_character(EditLine* editor, wchar_t* character) {
  std::mbstate_t state = {};
  while (true) {
    InterruptScope::Wait wait = InterruptScope::wait_for_input(STDIN_FILENO, terminal_event);
    if (wait == InterruptScope::Wait::kInterrupted) return -1;
    if (wait == InterruptScope::Wait::kOtherSignal) continue;
    if (wait == InterruptScope::Wait::kEvent) {
      take_terminal_back(editor);
      continue;
    }
    char byte = 0;
    ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count <= 0) return static_cast<int>(count);
    if (byte == '\033' && std::mbsinit(&state) != 0) {
      std::string mark = "\033";
      while (mark.size() < kPasteBegin.size() && kPasteBegin.starts_with(mark) && has_input(20)) {
        char next = 0;
        if (::read(STDIN_FILENO, &next, 1) != 1) break;
        mark += next;
      }
      if (mark == kPasteBegin) {
        el_winsertstr(editor, read_paste().c_str());
        el_wset(editor, EL_REFRESH);
        continue;
      }
      std::wstring keys(mark.begin() + 1, mark.end());  // an ordinary key sequence
      if (!keys.empty()) el_wpush(editor, keys.c_str());
    }
    // A Ctrl-D typed before libedit took over the terminal is read as NUL.
    const LineInfoW* line = el_wline(editor);
    if (byte == '\0' && line->buffer == line->lastchar) return 0;
    size_t length = std::mbrtowc(character, &byte, 1, &state);
    if (length <= 1) return 1;
    if (length == static_cast<size_t>(-1)) state = {};  // invalid; skip it
  }
}

std::string to_utf8(const wchar_t* text, size_t length) {
  std::string out;
  for (size_t i = 0; i < length; ++i) {
    utf8proc_uint8_t bytes[4];
    auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(text[i]), bytes);
    out.append(reinterpret_cast<const char*>(bytes), as_size(count));
  }
  return out;
}

std::string with_breaks(std::string text) {
  for (size_t at = 0; (at = text.find(kBreakText, at)) != text.npos; ++at) {
    text.replace(at, kBreakText.size(), "\n");
  }
  return text;
}

// $XDG_STATE_HOME/banyan or $HOME/.local/state/banyan; "" if neither is an absolute path.
std::string user_state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/banyan";
  if (home != nullptr && *home == '/') return std::string(home) + "/.local/state/banyan";
  return "";
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
    el_wset(editor_, EL_CLIENTDATA, &screen_);
    el_wset(editor_, EL_PROMPT, &Editor::prompt_of);
    el_wset(editor_, EL_SIGNAL, 1);
    el_wset(editor_, EL_EDITOR, L"emacs");
    el_wset(editor_, EL_GETCFN, read_character);
    bind_keys();
    el_source(editor_, nullptr);  // ~/.editrc
    notice_terminal_changes();
    load_history();
  }

  ~Editor() {
    el_end(editor_);
    history_wend(history_);
  }

  LineRead read(const std::string& prompt) {
    screen_ = {.prompt = {prompt.begin(), prompt.end()}, .columns = screen_columns()};
    int count = 0;
    PasteMarks marks;
    const wchar_t* line = el_wgets(editor_, &count);
    if (line == nullptr || count <= 0) {
      const LineInfoW* info = el_wline(editor_);
      std::string typed = to_utf8(info->buffer, as_size(info->lastchar - info->buffer));
      std::fputc('\n', stderr);
      if (!InterruptScope::raised() && !typed.empty()) {  // the next read reports the end
        return {.kind = LineRead::Kind::kLine, .text = with_breaks(std::move(typed))};
      }
      if (!InterruptScope::raised()) return {.kind = LineRead::Kind::kEnd, .text = ""};
      InterruptScope::clear();
      return {.kind = LineRead::Kind::kInterrupted, .text = std::move(typed)};
    }
    auto length = as_size(count);
    while (length > 0 && (line[length - 1] == L'\n' || line[length - 1] == L'\r')) --length;
    std::string text = to_utf8(line, length);
    if (length > 0) remember(line, text);
    return {.kind = LineRead::Kind::kLine, .text = with_breaks(std::move(text))};
  }

 private:
  static wchar_t* prompt_of(EditLine* editor) { return Screen::of(editor).prompt.data(); }

  void remember(const wchar_t* line, const std::string& text) {
    HistEventW event;
    history_w(history_, &event, H_ENTER, line);
    if (history_file_.empty()) return;
    std::ofstream(history_file_, std::ios::app) << text << "\n";
  }

  // Reads the history of earlier runs, one line each. Rewrites a file that has grown too long.
  void load_history() {
    std::string folder = user_state_folder();
    if (folder.empty()) return;
    history_file_ = folder + "/history";
    std::string text = read_file(history_file_, 64 << 20).value_or("");
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    bool long_file = lines.size() > 2 * size_t{kHistoryLinesMax};
    if (lines.size() > size_t{kHistoryLinesMax})
      lines.erase(lines.begin(), lines.end() - kHistoryLinesMax);
    HistEventW event;
    std::string kept;
    for (const std::string& line : lines) {
      std::wstring wide = from_utf8(line);
      if (!wide.empty()) history_w(history_, &event, H_ENTER, wide.c_str());
      kept += line + "\n";
    }
    // If it is not writable, history ends with the program.
    bool written =
        !text.empty() && !long_file ? true : replace_file(history_file_, kept).has_value();
    if (!written) history_file_.clear();
  }

  // Binds keys that terminals send but libedit leaves unbound.
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
  Screen screen_;
  std::string history_file_;  // empty: no file
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
    unread_.append(bytes, as_size(count));
    end = unread_.find('\n', before);
  }
  if (unread_.empty()) return {.kind = LineRead::Kind::kEnd, .text = ""};
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end == std::string::npos ? end : end + 1);
  if (line.ends_with('\r')) line.pop_back();
  return {.kind = LineRead::Kind::kLine, .text = std::move(line)};
}

}  // namespace banyan::cli
