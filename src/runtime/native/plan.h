// From what was asked for to what the launcher is told: pure values, no system calls.
#pragma once
#include <string>

#include "image/image.h"
#include "model/launch_wire.h"
#include "model/sandbox.h"

namespace osb::runtime {

wire::Key key_of(const SandboxId& id);

// Errc::invalid_argument when the image has more layers than a root can be stacked from.
Result<wire::CreateRequest> plan_create(const SandboxId& id, const SandboxSpec& spec, const image::Image& image,
                                        std::uint64_t deadline_boot_nanos);

// What turns a spare, made from plan_create(), into the sandbox of `spec`.
wire::ClaimRequest plan_claim(const SandboxId& id, const SandboxSpec& spec, std::uint64_t deadline_boot_nanos);

// What execd reads before it serves: who commands run as, with which environment, and the sandbox's first program.
// `one_user`: execd is the same user as the programs it starts.
std::string plan_setup(const SandboxSpec& spec, const image::Image& image, bool one_user = false);

// The words for a create that failed, and whose fault it is.
Error describe_failure(wire::Step step, int sys, std::string_view detail);

}  // namespace osb::runtime
