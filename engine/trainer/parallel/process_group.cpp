// Makes c10d stores and groups, and translates their errors into PeerLoss. Gloo reports a lost peer by an exception,
// and only its message distinguishes a timeout; NCCL ends operations silently, so require_no_loss must be called.
// Builds without Gloo's headers too.
#ifdef STEPLADDER_GLOO
#define USE_C10D_GLOO
#endif

#include "engine/trainer/parallel/process_group.h"

#include <cstdlib>
#include <string_view>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "engine/trainer/cuda/cuda_parts.h"
#include "engine/trainer/cuda_library.h"

namespace stepladder {

std::string process_groups_note(at::DeviceType device) {
#ifndef STEPLADDER_GLOO
  return "this build has no process groups: Gloo's headers (libgloo-dev) were missing";
#endif
  if (device == at::kCPU) return "";
  if (device != at::kCUDA) return "process groups support only CPUs and NVIDIA GPUs";
  const CudaLibrary& cuda = cuda_library();
  if (!cuda.parts) return cuda.gpus.empty() ? cuda.note : cuda.parts_note;
  return cuda.parts->join_nccl ? "" : "this build has no process groups for GPUs: NCCL's header was missing";
}

c10::intrusive_ptr<c10d::Store> join_store(const Placement& placement, ListeningSocket* listening,
                                           std::chrono::milliseconds patience) {
  if (placement.store_descriptor >= 0) {
    constexpr int nobody_removes_it = -1;
    auto file = c10::make_intrusive<c10d::FileStore>("/proc/self/fd/" + std::to_string(placement.store_descriptor),
                                                     nobody_removes_it);
    file->setTimeout(patience);
    return file;
  }
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(placement.master_port);
  options.isServer = listening != nullptr;
  options.waitWorkers = false;
  options.timeout = patience;
  if (listening) options.masterListenFd = static_cast<std::size_t>(listening->release());
  auto store = c10::make_intrusive<c10d::TCPStore>(placement.master_addr, options);
  return c10::make_intrusive<c10d::PrefixStore>("stepladder/" + placement.attempt, std::move(store));
}

#ifdef STEPLADDER_GLOO

namespace {

// NCCL's operations don't throw when they fail: they end with wrong results.
struct GpuPeerLoss : std::runtime_error {
  explicit GpuPeerLoss(PeerLoss which) : std::runtime_error("NCCL has lost a rank"), loss(which) {}
  PeerLoss loss;
};

}  // namespace

c10::intrusive_ptr<c10d::ProcessGroup> join_group(const c10::intrusive_ptr<c10d::Store>& store,
                                                  const Placement& placement, at::DeviceType device,
                                                  std::chrono::milliseconds patience) {
  using c10d::ProcessGroupGloo;
  const auto options = ProcessGroupGloo::Options::create(patience);
  const char* interface = placement.store_descriptor < 0 ? std::getenv("GLOO_SOCKET_IFNAME") : nullptr;
  const std::string own_address = address_towards(placement.master_addr, placement.master_port);
  options->devices.push_back(interface && *interface ? ProcessGroupGloo::createDeviceForInterface(interface)
                                                     : ProcessGroupGloo::createDeviceForHostname(own_address));
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, placement.rank, placement.world_size);
  group->setBackend(at::kCPU, c10d::ProcessGroup::BackendType::GLOO,
                    c10::make_intrusive<ProcessGroupGloo>(store, placement.rank, placement.world_size, options));
  group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  if (device == at::kCUDA) {
    const std::string name = interface && *interface ? interface : interface_of(own_address);
    group->setBackend(device, c10d::ProcessGroup::BackendType::NCCL,
                      cuda_library().parts->join_nccl(c10::make_intrusive<c10d::PrefixStore>("nccl", store),
                                                      placement.rank, placement.world_size, patience, name));
  }
  return group;
}

void require_no_loss(c10d::ProcessGroup& group, at::DeviceType device) {
  if (device != at::kCUDA) return;
  const c10d::ErrorType error = group.getBackend(device)->getError();
  if (error == c10d::ErrorType::SUCCESS) return;
  throw GpuPeerLoss(error == c10d::ErrorType::TIMEOUT ? PeerLoss::no_answer : PeerLoss::connection_closed);
}

void leave_group(c10d::ProcessGroup& group, at::DeviceType device, bool together) noexcept {
  if (device != at::kCUDA) return;
  try {
    if (together) {
      group.getBackend(device)->shutdown();
    } else {
      group.getBackend(device)->abort();
    }
  } catch (const std::exception&) {
    // The other ranks have exited or are about to, so the error is useless.
  }
}

std::optional<PeerLoss> peer_loss(const std::exception& error) {
  if (const auto* loss = dynamic_cast<const GpuPeerLoss*>(&error)) return loss->loss;
  const std::string_view what = error.what();
  const bool timed_out = what.find("Timed out") != std::string_view::npos ||  // Gloo
                         what.find("timeout") != std::string_view::npos;      // NCCL
  if (!dynamic_cast<const gloo::IoException*>(&error) && !dynamic_cast<const c10::DistBackendError*>(&error)) {
    return std::nullopt;
  }
  return timed_out ? PeerLoss::no_answer : PeerLoss::connection_closed;
}

#else

c10::intrusive_ptr<c10d::ProcessGroup> join_group(const c10::intrusive_ptr<c10d::Store>&, const Placement&,
                                                  at::DeviceType device, std::chrono::milliseconds) {
  throw std::runtime_error(process_groups_note(device));
}

void require_no_loss(c10d::ProcessGroup&, at::DeviceType) {}

void leave_group(c10d::ProcessGroup&, at::DeviceType, bool) noexcept {}

std::optional<PeerLoss> peer_loss(const std::exception&) {
  return std::nullopt;
}

#endif

}  // namespace stepladder
