#include "execd/kernels/kernels.h"

#include <algorithm>

#include "base/id.h"
#include "base/text.h"
#include "execd/sandbox.h"

namespace osb::execd {
namespace {

// As long as the published clients wait for an interpreter that is still starting.
constexpr auto kStartPatience = std::chrono::seconds(60);

}  // namespace

Context::Context(Executor executor, std::string the_language, std::string directory)
    : id(random_hex(16)), language(std::move(the_language)), cwd(std::move(directory)), turn_(executor) {}

Task<void> Context::wait_turn(std::uint64_t ticket) {
  while (!first(ticket)) co_await turn_.wait(Timer::time_point::max());
}

void Context::leave() {
  ++serving_;
  turn_.ring();
}

Result<Kernelspec> Kernels::spec_for(std::string_view language) const {
  return find_kernelspec(sandbox_.setup.env, sandbox_.setup.home, language);
}

Result<std::shared_ptr<Context>> Kernels::add(std::string language, std::string cwd) {
  if (contexts_.size() >= kMaxContexts) return Error(Errc::exhausted, "there are 128 contexts; delete one first");
  auto spec = spec_for(language);
  if (!spec) return std::move(spec).error();
  auto context = std::make_shared<Context>(executor_, std::move(language), std::move(cwd));
  contexts_.push_back(context);
  return context;
}

Task<Result<std::shared_ptr<Context>>> Kernels::create(std::string language, std::string cwd) {
  CO_TRY(auto context, add(std::move(language), std::move(cwd)));
  context->draw();
  auto ready = co_await ensure_kernel(context);
  context->leave();
  if (!ready) {
    remove(*context);
    co_return std::move(ready).error();
  }
  co_return context;
}

Result<std::shared_ptr<Context>> Kernels::default_for(std::string_view language) {
  for (const auto& context : contexts_)
    if (context->is_default && context->language == language) return context;
  TRY(auto context, add(std::string(language), {}));
  context->is_default = true;
  return context;
}

std::shared_ptr<Context> Kernels::find(std::string_view id) const {
  auto found = std::find_if(contexts_.begin(), contexts_.end(), [&](const auto& context) { return context->id == id; });
  return found == contexts_.end() ? nullptr : *found;
}

std::vector<std::shared_ptr<Context>> Kernels::list(std::string_view language) const {
  std::vector<std::shared_ptr<Context>> out;
  for (const auto& context : contexts_)
    if (language.empty() || context->language == language) out.push_back(context);
  return out;
}

void Kernels::remove(Context& context) {
  context.removed = true;
  if (context.kernel) context.kernel->stop();
  std::erase_if(contexts_, [&](const auto& other) { return other.get() == &context; });
}

Task<Result<>> Kernels::ensure_kernel(std::shared_ptr<Context> context) {
  if (context->kernel && context->kernel->alive()) co_return Ok{};
  if (context->kernel) context->kernel->stop();
  context->kernel.reset();
  CO_TRY(auto spec, spec_for(context->language));
  Kernel::Wish wish{std::move(spec), context->language, context->cwd};
  CO_TRY(auto kernel, co_await Kernel::start(sandbox_, std::move(wish), kStartPatience));
  if (context->removed) {
    kernel->stop();
    co_return Error(Errc::not_found, "the context was deleted while its kernel started");
  }
  context->kernel = std::move(kernel);
  co_return Ok{};
}

}  // namespace osb::execd
