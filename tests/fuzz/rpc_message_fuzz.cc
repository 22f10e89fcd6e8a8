// Messages of the RPC doors, as a client sends them: envelopes, the text form of gRPC-Web, binary and JSON. What is taken must
// come back the same from both forms.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/connect/envelope.h"
#include "api/connect/protocol.h"
#include "api/rpc/messages.h"

namespace {

using namespace osb::api;

template <class Message>
void try_message(std::string_view bytes) {
  for (auto form : {rpc::Form::binary, rpc::Form::json}) {
    auto message = rpc::decode<Message>(form, bytes);
    if (!message) continue;
    auto binary = rpc::encode(rpc::Form::binary, *message);
    auto again = rpc::decode<Message>(rpc::Form::binary, binary);
    if (!again || rpc::encode(rpc::Form::binary, *again) != binary) std::abort();
  }
}

void try_envelopes(std::string_view bytes) {
  connect::Unpacker unpacker(1024);
  while (!bytes.empty()) {
    auto part = bytes.substr(0, 1 + bytes.size() / 2);
    unpacker.feed(part);
    bytes.remove_prefix(part.size());
    for (;;) {
      auto envelope = unpacker.next();
      if (!envelope) return;
      if (!*envelope) break;
      if ((*envelope)->bytes.size() > 1024) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_message<rpc::ExecRequest>(bytes);
  try_message<rpc::RunRequest>(bytes);
  try_message<rpc::TerminalInput>(bytes);
  try_message<rpc::Session>(bytes);
  try_envelopes(bytes);
  (void)connect::from_text_form(bytes);
  (void)connect::protocol_of(bytes);
  return 0;
}
