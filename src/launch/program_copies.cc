#include "launch/program_copies.h"

#include <algorithm>

#include "base/log.h"
#include "launch/sealed_program.h"

namespace osb::launch {

Result<ProgramCopy> ProgramCopies::take() {
  std::erase_if(copies_, [](const auto& copy) { return copy.expired(); });
  auto quietest = std::ranges::min_element(copies_, {}, [](const auto& copy) { return copy.use_count(); });
  auto found = quietest == copies_.end() ? nullptr : quietest->lock();
  if (found && found.use_count() <= kUsers * 3 / 4) return found;  // not soon crowded again
  auto made = seal_program(program_.get(), Pages::large);
  if (!made && !found) return std::move(made).error();
  if (!made) {
    log::warn("more sandboxes than usual share one copy of execd", {{"error", made.error().what()}});
    return found;
  }
  found = std::make_shared<const Fd>(*std::move(made));
  copies_.push_back(found);
  return found;
}

}  // namespace osb::launch
