// Kernelspecs of the image: which program runs which language, found where Jupyter looks for them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "execd/environment.h"

namespace osb::execd {

struct Kernelspec {
  std::string name;      // of its folder
  std::string language;  // as the spec says it
  std::vector<std::string> argv;
  Env env;
  bool interrupt_by_message = false;

  // Started as a plain ipykernel: the fork server can do it.
  bool is_ipykernel() const;
  // Kernels written in Python share one library, which listens on unix sockets; others only know TCP.
  bool speaks_ipc() const;
};

// Folders that hold kernelspecs, most important first: JUPYTER_PATH, the user's, those of the image.
std::vector<std::string> kernelspec_folders(const Env& env, std::string_view home);
// The text of a kernel.json.
Result<Kernelspec> parse_kernelspec(std::string name, std::string_view json);
// "go" is also "gonb", and so on: the name a client uses first, then folder names, then what specs say of themselves.
// Errc::not_found tells what to install.
Result<Kernelspec> find_kernelspec(const Env& env, std::string_view home, std::string_view language);

}  // namespace osb::execd
