#include "execd/commands.h"

#include <algorithm>

namespace osb::execd {
namespace {

std::string shorten(std::string_view text) {
  if (text.size() <= Commands::kMaxContent) return std::string(text);
  return std::string(text.substr(0, Commands::kMaxContent)) + "...";
}

}  // namespace

void Command::keep(std::string_view bytes) {
  if (!forgotten) output->append(bytes);
}

void Command::catch_up() {
  OutputPipe& pipe = process->out();
  std::size_t left = pipe.available();
  if (left > 0) pipe.expect_bytes();
  while (left > 0) {
    std::size_t n = pipe.read(scratch().first(std::min(left, scratch().size())));
    if (n == 0) return;
    keep({scratch().data(), n});
    left -= n;
  }
}

std::shared_ptr<Command> Commands::add(std::string id, std::string_view content, std::shared_ptr<Process> process, bool background) {
  if (commands_.size() >= kMaxEnded) forget_old();  // it looks at all of them
  auto command = std::make_shared<Command>();
  command->id = std::move(id);
  command->content = shorten(content);
  command->process = std::move(process);
  if (background) command->output = std::make_unique<Ring>(kRingBytes, &budget_);
  commands_.push_back(command);
  return command;
}

std::shared_ptr<Command> Commands::find(std::string_view id) {
  forget_old();
  auto found = std::find_if(commands_.begin(), commands_.end(), [&](const auto& command) { return command->id == id; });
  return found == commands_.end() ? nullptr : *found;
}

void Commands::forget_old() {
  std::int64_t oldest = boot_now_nanos() - kKeepNanos;
  auto ended =
      static_cast<std::size_t>(std::count_if(commands_.begin(), commands_.end(), [](const auto& c) { return !c->process->running(); }));
  std::erase_if(commands_, [&](const auto& command) {
    if (command->process->running()) return false;
    bool old = command->process->ended_nanos() < oldest || ended > kMaxEnded;
    if (!old) return false;
    --ended;
    command->forgotten = true;
    if (command->output) command->output->release();
    return true;
  });
}

bool Commands::release_oldest(const void* asker) {
  for (const auto& command : commands_) {
    Ring* ring = command->output.get();
    if (!ring || ring == asker || ring->memory() == 0 || command->process->running()) continue;
    ring->release();
    return true;
  }
  return false;
}

}  // namespace osb::execd
