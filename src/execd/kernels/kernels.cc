#include "execd/kernels/kernels.h"

#include <algorithm>

#include "base/id.h"
#include "base/text.h"
#include "execd/sandbox.h"
#include "execd/shell/session.h"

namespace osb::execd {
namespace {

// As long as the published clients wait for an interpreter that is still starting.
constexpr auto kStartPatience = std::chrono::seconds(60);
// What the client does first with its new context comes before the spare of the next one.
constexpr auto kSparePause = std::chrono::milliseconds(100);
constexpr auto kMovePatience = std::chrono::seconds(5);

bool is_plain_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

bool wants(std::string_view list, std::string_view word) {
  for (std::string_view part : split(list, ','))
    if (trim(part) == word) return true;
  return false;
}

}  // namespace

Context::Context(Executor executor, std::string the_language, std::string directory)
    : id(random_hex(16)), language(std::move(the_language)), cwd(std::move(directory)), turn_(executor) {}

bool Context::full() const { return shell ? shell->full() : next_ - serving_ > kMaxWaiting; }

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
  if (!spec && language != "bash") return std::move(spec).error();
  auto context = std::make_shared<Context>(executor_, std::move(language), std::move(cwd));
  if (!spec) CHECK_OK(give_shell(*context));
  contexts_.push_back(context);
  return context;
}

Result<> Kernels::give_shell(Context& context) {
  const Setup& setup = sandbox_.setup;
  TRY(std::string path, context.cwd.empty() ? Result(setup.cwd) : expand_path(context.cwd, setup.env, setup.home, setup.cwd));
  context.shell = std::make_shared<shell::Session>(sandbox_, context.id, std::move(path));
  return context.shell->start_shell();
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
  if (context.shell) context.shell->close();
  std::erase_if(contexts_, [&](const auto& other) { return other.get() == &context; });
}

Task<Result<>> Kernels::ensure_kernel(std::shared_ptr<Context> context) {
  if (context->shell || (context->kernel && context->kernel->alive())) co_return Ok{};
  if (context->kernel) context->kernel->stop();
  context->kernel.reset();
  CO_TRY(auto spec, spec_for(context->language));
  ++starting_;
  auto started = co_await start_kernel(std::move(spec), context->language, context->cwd);
  --starting_;
  CO_TRY(auto kernel, std::move(started));
  if (context->removed) {
    kernel->stop();
    co_return Error(Errc::not_found, "the context was deleted while its kernel started");
  }
  context->kernel = std::move(kernel);
  co_return Ok{};
}

Task<Result<std::shared_ptr<Kernel>>> Kernels::start_kernel(Kernelspec spec, std::string language, std::string cwd) {
  bool can_fork = spec.is_ipykernel();
  std::shared_ptr<Kernel> spare;
  if (can_fork) spare = co_await take_spare(spec, cwd);
  if (can_fork) wish_for_spare(spec);
  if (spare) co_return spare;
  Kernel::Wish wish{std::move(spec), std::move(language), std::move(cwd)};
  co_return co_await Kernel::start(sandbox_, std::move(wish), kStartPatience);
}

// ---- the spare -----------------------------------------------------------------------------------------------------

// nullptr: there is none, or it is not as it has to be; whoever asked starts a kernel and learns why it cannot be had.
Task<std::shared_ptr<Kernel>> Kernels::take_spare(Kernelspec spec, std::string cwd) {
  auto spare = std::exchange(spare_, nullptr);
  if (!spare) co_return nullptr;
  bool fits = spare->alive() && spare->is_current(spec) && is_plain_ascii(cwd);
  auto path = expand_path(cwd, sandbox_.setup.env, sandbox_.setup.home, sandbox_.setup.cwd);
  if (fits && !cwd.empty() && path) {
    std::string place = json_string(*path);
    std::string move = cat("__import__('os').chdir(", place, "); __import__('os').environ['PWD'] = ", place);
    fits = co_await spare->execute_silently(std::move(move), kMovePatience);
  }
  if (fits && (cwd.empty() || path)) co_return spare;
  spare->stop();
  co_return nullptr;
}

void Kernels::wish_for_spare(const Kernelspec& spec) {
  if (std::exchange(making_spare_, true)) return;
  sandbox_.tasks.spawn("spare kernel", make_spare(spec, kSparePause));
}

Task<void> Kernels::make_spare(Kernelspec spec, Timer::duration pause) {
  co_await sleep_for(pause);
  while (starting_ > 0) co_await sleep_for(pause);
  Kernel::Wish wish{std::move(spec), "python", {}};
  auto kernel = co_await Kernel::start(sandbox_, std::move(wish), kStartPatience);
  making_spare_ = false;
  if (kernel && !spare_)
    spare_ = *std::move(kernel);
  else if (kernel)
    (*kernel)->stop();
}

void Kernels::prestart() {
  if (!wants(value_of(sandbox_.setup.env, "OPENSANDBOX_PRESTART"), "python")) return;
  auto spec = spec_for("python");
  if (!spec || !spec->is_ipykernel() || std::exchange(making_spare_, true)) return;
  sandbox_.tasks.spawn("spare kernel", make_spare(*std::move(spec), {}));
}

}  // namespace osb::execd
