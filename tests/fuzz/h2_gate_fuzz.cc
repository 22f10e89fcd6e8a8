// The gate before the gRPC library: however bytes are cut, it says the same of them.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "grpc_door/h2_gate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace osb::grpc_door;
  const std::chrono::steady_clock::time_point now{std::chrono::seconds(1)};
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(reinterpret_cast<const char*>(data), size);
  H2Gate whole, pieces;
  bool at_once = whole.take(bytes, now);
  bool one_by_one = true;
  for (char c : bytes) one_by_one = one_by_one && pieces.take({&c, 1}, now);
  if (at_once != one_by_one) std::abort();
  return 0;
}
