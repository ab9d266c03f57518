// Scripts as text and as a fuzzer's bytes, and what they do.
//
//   script_tool --text FILE       prints the script that these bytes are to kernel_script
//   script_tool --bytes FILE      prints the bytes of a script
//   script_tool FILE              runs a script; 0 all invariants hold, 1 one is violated, 2 usage

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/script_bytes.h"
#include "fuzz/script_run.h"

namespace perfring::fuzz {
namespace {

int refuse(const std::string& why) {
  fmt::print(stderr, "script_tool: {}\nusage: script_tool [--text|--bytes] FILE\n", why);
  return 2;
}

int run(const script::Script& script) {
  ScriptRun run{script};
  const auto violation = run.run();
  fmt::print("{} written, {} refused; {} delivered, {} malformed, {} lost\n{}\n",
             run.written().accepted, run.written().refused, run.received().delivered,
             run.received().malformed, run.received().lost,
             violation ? "violated: " + *violation : "All invariants hold.");
  return violation ? 1 : 0;
}

int main(const std::string& mode, const std::string& path) {
  if (std::filesystem::is_directory(path)) return refuse(path + ": is a folder");
  std::ifstream in{path, std::ios::binary};
  const std::string file{std::istreambuf_iterator<char>{in}, {}};
  if (!in) return refuse(path + ": cannot be read");
  if (mode == "--text") {
    const Input input{reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
    fmt::print("{}", to_text(understood(decode_script(input))));
    return 0;
  }
  const auto script = script::parse_script(file);
  if (!script) return refuse(path + ": " + script.error());
  if (mode.empty()) {
    if (understood(*script) != *script) {
      return refuse(path + ": RAW samples, forward, not overwriting, and no 'tail'");
    }
    return run(*script);
  }
  const auto bytes = encode_script(*script);
  if (!bytes) return refuse(path + ": " + bytes.error());
  std::fwrite(bytes->data(), 1, bytes->size(), stdout);
  return 0;
}

}  // namespace
}  // namespace perfring::fuzz

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  if (argc < 2 || argc > 3 || (argc == 3 && mode != "--text" && mode != "--bytes")) {
    return perfring::fuzz::refuse("one file, and at most one option");
  }
  return perfring::fuzz::main(mode, argv[argc - 1]);
}
