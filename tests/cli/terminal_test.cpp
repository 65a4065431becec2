// The program on a terminal, with Ctrl-C, and the chat through a pipe.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "cli/program.h"

namespace banyan::terminal_test {
namespace {

using test::ProgramResult;
using test::run_program;
using test::TemporaryFolder;

std::vector<std::string> endless(const char* verb, const TemporaryFolder& folder) {
  return {verb,        "--model", folder.path(),  "--load-format",    "dummy",
          "--threads", "1",       "--ignore-eos", "--max-new-tokens", "1000000"};
}

// A program on a terminal of its own.
class TerminalProgram {
 public:
  explicit TerminalProgram(const std::vector<std::string>& arguments,
                           const std::string& state_folder = "", unsigned short columns = 80) {
    winsize window = {.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    child_ = forkpty(&terminal_, nullptr, nullptr, &window);
    if (child_ == 0) {
      setenv("XDG_STATE_HOME", state_folder.empty() ? "/dev/null/none" : state_folder.c_str(), 1);
      setenv("TERM", "xterm", 1);
      setenv("LC_ALL", "C", 1);
      alarm(300);
      test::become_program(arguments);
    }
  }
  ~TerminalProgram() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    close(terminal_);
  }

  void type(const std::string& keys) {
    EXPECT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  // Waits until `text` appears after what was waited for before; a minute at most.
  bool shows(const std::string& text) {
    auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < end) {
      if (size_t at = screen_.find(text, seen_); at != std::string::npos) {
        seen_ = at + text.size();
        return true;
      }
      pollfd readable = {terminal_, POLLIN, 0};
      if (poll(&readable, 1, 1000) < 1) continue;
      char bytes[4096];
      ssize_t count = read(terminal_, bytes, sizeof bytes);
      if (count <= 0) return false;
      screen_.append(bytes, static_cast<size_t>(count));
    }
    return false;
  }

  // Resizes the terminal window.
  void resize(unsigned short columns) {
    winsize window = {.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(ioctl(terminal_, TIOCSWINSZ, &window), 0);
  }

  // Stops the program, restores the terminal as a shell does, and resumes the program.
  void stop_and_continue() {
    kill(child_, SIGSTOP);
    waitpid(child_, nullptr, WUNTRACED);
    termios mode = {};
    EXPECT_EQ(tcgetattr(terminal_, &mode), 0);
    mode.c_lflag |= ICANON | ECHO;
    EXPECT_EQ(tcsetattr(terminal_, TCSANOW, &mode), 0);
    kill(child_, SIGCONT);
  }
  // Waits up to a minute until the program has switched the terminal to its own mode.
  bool has_raw_mode() const {
    auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    termios mode = {};
    while (std::chrono::steady_clock::now() < end && tcgetattr(terminal_, &mode) == 0) {
      if ((mode.c_lflag & ICANON) == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  int wait() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return test::exit_code_of(status);
  }

  const std::string& screen() const { return screen_; }

 private:
  pid_t child_ = -1;
  int terminal_ = -1;
  std::string screen_;
  size_t seen_ = 0;
};

TEST(Loading, ShowsProgressOnATerminalAndErasesIt) {
  TerminalProgram program({"generate", "--model", test::golden_model(), "--prompt-ids", "1"});
  EXPECT_TRUE(program.shows("loading")) << program.screen();
  EXPECT_TRUE(program.shows("\r\033[K")) << program.screen();
  EXPECT_EQ(program.wait(), 0);
}

TEST(Chat, InterruptStopsAReplyAndNotTheProgram) {
  TemporaryFolder folder;
  test::make_endless_model(folder);
  TerminalProgram program(endless("run", folder));
  ASSERT_TRUE(program.shows("no chat template")) << program.screen();
  ASSERT_TRUE(program.shows(">>> ")) << program.screen();
  program.type("Once upon a time\n");
  ASSERT_TRUE(program.shows("Once upon a time")) << program.screen();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  program.type("\x03");
  ASSERT_TRUE(program.shows("; context ")) << program.screen();
  ASSERT_TRUE(program.shows(">>> ")) << program.screen();
  program.type("\x03");
  ASSERT_TRUE(program.shows("Ctrl-D or /bye leaves")) << program.screen();
  ASSERT_TRUE(program.shows(">>> ")) << program.screen();
  program.type("/show\n");
  ASSERT_TRUE(program.shows("max_new_tokens      1000000")) << program.screen();
  ASSERT_TRUE(program.shows(">>> ")) << program.screen();
  program.type("\x04");
  EXPECT_EQ(program.wait(), 0);
}

TEST(Chat, APastedTextIsOneMessage) {
  TemporaryFolder folder;
  test::make_story_model(folder, "{% for m in messages %}{{ m.content }}\n{% endfor %}");
  TerminalProgram program({"run", folder.path(), "-n", "2"});
  ASSERT_TRUE(program.shows("\033[?2004h")) << program.screen();
  program.type("\033[200~one\rtwo\tx\nthree\n\033[201~");
  ASSERT_TRUE(program.shows("one\u2424two x\u2424three")) << program.screen();
  program.type("\n");
  ASSERT_TRUE(program.shows("tokens")) << program.screen();
  ASSERT_TRUE(program.shows(">>> ")) << program.screen();
  program.type("/show\n");
  EXPECT_TRUE(program.shows("messages            2")) << program.screen();
  program.type("\x04");
  EXPECT_EQ(program.wait(), 0);
}

TEST(Chat, ALineIsDrawnAgainFromItsBeginAfterAResize) {
  TemporaryFolder folder;
  test::make_story_model(folder);
  TerminalProgram program({"run", folder.path()});
  ASSERT_TRUE(program.shows(">>> ")) << program.screen();
  // Input that arrives before the editor is ready is echoed by the terminal itself; only that part
  // moves.
  program.type("ab\x01");
  ASSERT_TRUE(program.shows("\b\b")) << program.screen();
  program.type("\x0b/show " + std::string(90, 'x') + "end");
  ASSERT_TRUE(program.shows("end")) << program.screen();
  program.resize(40);  // 4 + 99 columns: the cursor is now on the third row
  EXPECT_TRUE(program.shows("\033[2A\r\033[J")) << program.screen();
  EXPECT_TRUE(program.shows(">>> /show xxx")) << program.screen();
  EXPECT_TRUE(program.shows("end")) << program.screen();
  program.resize(60);
  EXPECT_TRUE(program.shows("\033[1A\r\033[J")) << program.screen();
  EXPECT_TRUE(program.shows("end")) << program.screen();  // Ctrl-C discards what is not yet drawn
  program.type("\x03");
  ASSERT_TRUE(program.shows("\033[?2004h")) << program.screen();
  size_t drawn = 0;
  for (size_t at = 0; (at = program.screen().find(">>> /show", at)) != std::string::npos; ++at) {
    ++drawn;
  }
  EXPECT_EQ(drawn, 2u) << program.screen();  // once for each size
}

TEST(Chat, TakesTheTerminalBackEachTimeItWasStopped) {
  TemporaryFolder folder;
  test::make_story_model(folder);
  TerminalProgram program({"run", folder.path()});
  ASSERT_TRUE(program.shows(">>> ")) << program.screen();
  ASSERT_TRUE(program.has_raw_mode());
  program.type("/think may");
  for (int stops = 0; stops < 3; ++stops) {
    ASSERT_TRUE(program.has_raw_mode()) << stops;
    ASSERT_TRUE(program.shows("/think may")) << program.screen();
    program.stop_and_continue();
  }
  ASSERT_TRUE(program.has_raw_mode());
  program.type("be\n");
  EXPECT_TRUE(program.shows("/think takes on or off")) << program.screen();
}

TEST(Chat, HistoryOutlivesTheProgram) {
  TemporaryFolder folder, state;
  test::make_story_model(folder);
  for (const char* keys : {"/think maybe\n", "\033[A\n"}) {
    TerminalProgram program({"run", folder.path()}, state.path());
    ASSERT_TRUE(program.shows(">>> ")) << program.screen();
    program.type(keys);
    EXPECT_TRUE(program.shows("/think takes on or off")) << program.screen();
    program.type("\x04");
    EXPECT_EQ(program.wait(), 0);
  }
}

TEST(Chat, RepliesBreakBetweenWords) {
  TemporaryFolder folder;
  test::make_story_model(folder);
  TerminalProgram program({"run", folder.path(), "--regex", "(alpha beta gamma ){2}"}, "", 18);
  ASSERT_TRUE(program.shows(">>> ")) << program.screen();
  program.type("Go\n");
  EXPECT_TRUE(program.shows("alpha beta gamma\r\nalpha beta gamma")) << program.screen();
  ASSERT_TRUE(program.shows(">>> ")) << program.screen();
  program.type("\x04");
  EXPECT_EQ(program.wait(), 0);
}

TEST(Generate, InterruptPrintsWhatThereIs) {
  TemporaryFolder folder;
  test::make_endless_model(folder);
  std::string out = folder.write("out", "");
  std::vector<std::string> words = endless("generate", folder);
  words.insert(words.end(), {"--prompt", "Once", "--json"});
  test::OpenFile stdout_file(out, O_WRONLY);
  pid_t child = test::start_program(words, -1, stdout_file.descriptor(), -1);
  test::wait_until_it_catches_interrupts(child);
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(test::exit_code_of(status), 130);
  Result<Json> json = parse_json(read_file(out).value(), "stdout");
  ASSERT_TRUE(json.has_value());
  EXPECT_EQ((*json)["finish_reason"], "cancelled");
}

// An interrupt may come while the program waits for a reader in the middle of a write.
TEST(Generate, InterruptLosesNothingOfAFullPipe) {
  TemporaryFolder folder;
  test::make_endless_model(folder);
  std::string err = folder.write("err", "");
  std::vector<std::string> words = endless("generate", folder);
  words.insert(words.end(), {"--prompt", "Once", "--stream"});
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  int capacity = fcntl(ends[1], F_SETPIPE_SZ, 4096);
  ASSERT_GT(capacity, 0);
  test::OpenFile stderr_file(err, O_WRONLY);
  pid_t child = test::start_program(words, -1, ends[1], stderr_file.descriptor());
  close(ends[1]);
  int waiting = 0;
  while (waiting < capacity / 2 && waitpid(child, nullptr, WNOHANG) == 0) {
    ioctl(ends[0], FIONREAD, &waiting);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (int before = -1; before != waiting;) {  // a pipe is full before it holds its capacity
    before = waiting;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ioctl(ends[0], FIONREAD, &waiting);
  }
  kill(child, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  char bytes[4096];
  while (read(ends[0], bytes, sizeof bytes) > 0) continue;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(test::exit_code_of(status), 130);
  EXPECT_EQ(read_file(err).value(), "");
}

TEST(Chat, ThroughAPipePrintsRepliesAlone) {
  TemporaryFolder folder;
  test::make_story_model(folder);
  const std::string& model = folder.path();
  std::vector<std::string> greedy = {"--model",          model, "--temperature", "0",
                                     "--max-new-tokens", "20"};
  std::vector<std::string> run = {"run"}, generate = {"generate", "--prompt", "Once upon a time"};
  run.insert(run.end(), greedy.begin(), greedy.end());
  generate.insert(generate.end(), greedy.begin(), greedy.end());
  ProgramResult chat = run_program(run, "/set top_k 3\nOnce upon a time\n");
  EXPECT_EQ(chat.exit_code, 0);
  EXPECT_EQ(chat.out, run_program(generate).out);
  EXPECT_NE(chat.err.find("top_k is now 3"), std::string::npos) << chat.err;
}

// One-shot answers said "/set max_new_tokens", which only a chat takes.
TEST(Chat, SettingsAndHintsHaveTheNamesOfTheCommandLine) {
  TemporaryFolder folder;
  test::make_story_model(folder);
  ProgramResult chat = run_program(
      {"run", folder.path(), "--temp", "0"},
      "/set top_k -1\n/set max_tokens 2\n/set seed -1\n/set top_p high\n/json {\nOnce upon\n");
  for (const char* said : {"top_k is now -1", "max_tokens is now 2", "seed is now -1",
                           "top_p: \"high\" is not a number",
                           "/json: ", "Stopped after 2 tokens; /set max_tokens N changes that."}) {
    EXPECT_NE(chat.err.find(said), std::string::npos) << said << "\n" << chat.err;
  }
  ProgramResult once = run_program({"run", folder.path(), "Once", "--temp", "0", "-n", "2"});
  EXPECT_NE(once.err.find("; --max-tokens (-n) N changes that."), std::string::npos) << once.err;
}

// Every turn goes through the template with all earlier turns.
TEST(Chat, TemplateGetsTheHistoryAndTheSystemMessage) {
  TemporaryFolder folder;
  test::make_story_model(folder,
                         "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}\n{% endfor %}");
  std::vector<std::string> options = {"--model", folder.path(),      "--temperature",
                                      "0",       "--max-new-tokens", "8"};
  std::vector<std::string> run = {"run", "--system", "Sun"};
  run.insert(run.end(), options.begin(), options.end());
  ProgramResult chat = run_program(run, "one\n\n//two\n/show\n");
  EXPECT_EQ(chat.exit_code, 0);
  EXPECT_NE(chat.err.find("messages            4"), std::string::npos) << chat.err;

  auto continued = [&](const std::string& prompt) {
    std::vector<std::string> words = {"generate", "--prompt", prompt, "--no-special-tokens"};
    words.insert(words.end(), options.begin(), options.end());
    return run_program(words).out;
  };
  std::string first = continued("s:Sun\nu:one\n");
  std::string second = continued("s:Sun\nu:one\na:" + first + "u:/two\n");
  EXPECT_EQ(chat.out, first + second);
}

TEST(Chat, TheEndOfAPipeEndsAMessageToo) {
  TemporaryFolder folder;
  test::make_story_model(folder);
  const std::string& model = folder.path();
  std::vector<std::string> run = {"run", "--model",          model, "--temperature",
                                  "0",   "--max-new-tokens", "4"};
  std::string whole = run_program(run, "Once upon\n").out;
  EXPECT_EQ(run_program(run, "\"\"\"Once upon\n").out, whole);
  ASSERT_NE(whole, "");
}

TEST(Chat, OptionsOfATemplateNeedOne) {
  TemporaryFolder folder;
  test::make_story_model(folder);
  const std::string& model = folder.path();
  ProgramResult chat = run_program({"run", "--model", model, "--system", "Be brief."}, "Hi\n");
  EXPECT_EQ(chat.exit_code, 2);
  EXPECT_NE(chat.err.find("need a chat template"), std::string::npos) << chat.err;
}

// A full context drops the oldest messages and continues.
TEST(Chat, AFullContextDropsTheOldest) {
  TemporaryFolder folder;
  test::make_story_model(folder,
                         "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}\n{% endfor %}");
  std::vector<std::string> run = {"run", folder.path(), "-c", "64", "--ignore-eos", "-n", "20"};
  ProgramResult chat = run_program(run, "one\ntwo\nthree\nfour\nfive\n/show\n");
  EXPECT_EQ(chat.exit_code, 0) << chat.err;
  EXPECT_NE(chat.err.find("is full: the 2 oldest messages are dropped"), std::string::npos)
      << chat.err;
  std::string large(400, 'x');
  ProgramResult refused = run_program(run, large + " " + large + "\n");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("this message alone has"), std::string::npos) << refused.err;

  TemporaryFolder plain;
  test::make_story_model(plain);
  std::vector<std::string> text = {"run", plain.path(), "-c", "32", "--ignore-eos", "-n", "20"};
  ProgramResult story = run_program(text, "Once upon a time\nmore\nand more\n");
  EXPECT_EQ(story.exit_code, 0) << story.err;
  EXPECT_NE(story.err.find("characters are dropped"), std::string::npos) << story.err;
}

TEST(Chat, CommandsHaveTheirOtherNames) {
  TemporaryFolder folder;
  test::make_story_model(folder);
  ProgramResult chat = run_program({"run", folder.path()}, "/?\n/clear\n/bye\nnever\n");
  EXPECT_EQ(chat.exit_code, 0);
  EXPECT_EQ(chat.out, "");
  EXPECT_NE(chat.err.find("/quit, /bye"), std::string::npos) << chat.err;
  EXPECT_NE(chat.err.find("starts over"), std::string::npos) << chat.err;
}

// They were called in JSON of the schema before.
TEST(Chat, ToolsEndRepliesInJson) {
  std::vector<std::string> run = {"run", test::nano_model(), "--temp", "0"};
  ProgramResult chat = run_program(
      run,
      "/json {\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},"
      "\"age\":{\"type\":\"integer\"}}}\n"
      "Extract name, age as JSON: Mia Stone is 34 years old and lives in Oslo.\n/tools " +
          test::nano_model() + "/tools.json\nSet a timer for 12 minutes.\n");
  EXPECT_EQ(chat.exit_code, 0) << chat.err;
  EXPECT_TRUE(chat.out.starts_with("{\"name\":\"Mia\"")) << chat.out;
  EXPECT_NE(chat.err.find("Replies are any text again."), std::string::npos) << chat.err;
}

// The template prints its input, so the second prompt shows how a call is stored.
TEST(Chat, RepliesFollowASchemaAndCallTools) {
  TemporaryFolder folder;
  test::make_story_model(folder,
                         "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}\n{% endfor %}"
                         "{% if tools %}<tool_call></tool_call>{% endif %}");
  std::string tools = folder.write("tools", R"([{"type": "function", "function": {"name": "f"}}])");
  std::vector<std::string> run = {"run", "--model", folder.path(), "--temperature", "0"};
  ProgramResult chat =
      run_program(run, "/json {\"enum\": [[7]]}\none\n/json off\n/tools " + tools + "\n/show\n");
  EXPECT_EQ(chat.exit_code, 0) << chat.err;
  EXPECT_EQ(chat.out, "[7]\n");
  EXPECT_NE(chat.err.find("The model may call 1 tool."), std::string::npos) << chat.err;
  EXPECT_NE(chat.err.find("tools               1"), std::string::npos) << chat.err;

  run.insert(run.end(), {"--tools", tools, "--regex",
                         R"(<tool_call>\{"name": "f", "arguments": \{\}\}</tool_call>)"});
  ProgramResult call = run_program(run, "one\n/show\ntwo\n");
  EXPECT_EQ(call.exit_code, 0) << call.err;
  size_t first = call.err.find("What does f give back?");
  ASSERT_NE(first, std::string::npos) << call.err;
  EXPECT_NE(call.err.find("What does f give back?", first + 1), std::string::npos) << call.err;
}

TEST(Chat, WrongCommandsAreTold) {
  TemporaryFolder folder;
  test::make_story_model(folder);
  const std::string& model = folder.path();
  ProgramResult chat = run_program({"run", "--model", model, "--max-new-tokens", "2"},
                                   "/json {\"type\": 1}\n/think maybe\n/tools /no/such\n");
  for (const char* told : {"#/type", "/think takes on or off", "/no/such"}) {
    EXPECT_NE(chat.err.find(told), std::string::npos) << told << "\n" << chat.err;
  }
  ProgramResult tools = run_program({"run", "--model", model, "--tools", "[]"}, "Hi\n");
  EXPECT_EQ(tools.exit_code, 2);
  EXPECT_NE(tools.err.find("contains no tool"), std::string::npos) << tools.err;
}

TEST(Chat, NeedsATokenizer) {
  ProgramResult chat = run_program({"run", "--model", test::golden_model()}, "hello\n");
  EXPECT_EQ(chat.exit_code, 1);
  EXPECT_EQ(chat.out, "");
  EXPECT_NE(chat.err.find("tokenizer"), std::string::npos) << chat.err;
}

}  // namespace
}  // namespace banyan::terminal_test
