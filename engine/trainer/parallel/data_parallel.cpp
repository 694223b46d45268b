// The group of processes that train one run: joining, averaging gradients, exchanging stop and pause requests, and
// finding out which rank failed. All ranks must make the same collective calls in the same order; `guarded` turns a
// lost peer into a sentence that names the rank.
#include "engine/trainer/parallel/data_parallel.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "engine/processes/worker_processes.h"
#include "engine/trainer/cuda_library.h"
#include "engine/trainer/parallel/process_group.h"

namespace stepladder {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds collective_patience = 20s;  // for a rank that doesn't answer
constexpr std::chrono::milliseconds start_patience = 300s;      // for hosts that are started one after the other
constexpr std::chrono::milliseconds inquest_patience = 3s;      // to find out which rank failed
constexpr std::chrono::milliseconds end_patience = 5s;
constexpr std::chrono::milliseconds glance = 20ms;
constexpr std::chrono::milliseconds between_signs_of_life = 2s;  // of a run that is paused

std::string rank_name(int rank) {
  return "rank " + std::to_string(rank);
}

std::string key(const char* what, int rank) {
  return std::string(what) + "/" + std::to_string(rank);
}

// Each process has a GPU to itself: two on one would only take turns, and NCCL refuses them.
void require_gpu(const Recipe& recipe, const std::optional<Placement>& launched) {
  const int gpus = static_cast<int>(cuda_library().gpus.size());
  const std::string have = "this machine has " + std::to_string(gpus);
  if (!launched && recipe.nproc > gpus) {
    throw RecipeError(FieldName{"nproc"}, std::to_string(recipe.nproc) + " processes need a GPU each, but " + have);
  }
  if (launched && !gpu_of(*launched, gpus)) {
    throw RecipeError("LOCAL_RANK", std::to_string(launched->local_rank) + " has no GPU: " + have);
  }
}

// Requires that the recipe's number of processes is the launcher's.
Placement own_placement(const Recipe& recipe, const std::optional<Placement>& launched) {
  const at::DeviceType device = at::Device(recipe.device).type();
  if (const std::string note = process_groups_note(device); !note.empty()) throw RecipeError(FieldName{"nproc"}, note);
  if (device == at::kCUDA) require_gpu(recipe, launched);
  if (!launched) return {.world_size = recipe.nproc};
  if (launched->world_size != recipe.nproc) {
    throw RecipeError(FieldName{"nproc"}, std::to_string(recipe.nproc) + " processes were asked for, but " +
                                              std::to_string(launched->world_size) + " were launched");
  }
  return *launched;
}

}  // namespace

// Averages a bucket over the processes and records when it was sent. The last bucket is sent once the backward pass has
// nothing left to compute, so from then on the step waits.
class TimedAllReduce : public c10d::CppCommHookInterface<c10::intrusive_ptr<c10d::ProcessGroup>> {
 public:
  TimedAllReduce(const c10::intrusive_ptr<c10d::ProcessGroup>& processes, Clock::time_point& last_sent)
      : CppCommHookInterface(processes), last_sent_(last_sent) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    last_sent_ = Clock::now();
    std::vector<at::Tensor> sums = {bucket.getBufferRef()};
    sums.front().div_(state_->getSize());
    return state_->allreduce(sums)->getFuture();
  }

 private:
  Clock::time_point& last_sent_;
};

struct DataParallel::Group {
  Group(const Recipe& recipe, const std::optional<Placement>& launched);
  ~Group();

  bool connect(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& moments, std::int64_t& done,
               Gradients gradients, const std::stop_token& stop);
  void backward(const at::Tensor& loss, bool average);
  void begin_average(const at::Tensor& gradients);
  void finish_averages();
  void exchange(double& loss, RunControl& control);

  bool is_rank0() const { return placement.rank == 0; }
  bool wait_for_all(const std::stop_token& stop);
  [[noreturn]] void blame_a_stranger() const;
  void make_reducer(const std::vector<at::Tensor>& parameters);
  template <class Collective>
  void guarded(Collective collective);
  [[noreturn]] void explain(PeerLoss loss);
  std::optional<std::string> culprit(PeerLoss loss);

  const at::DeviceType device;
  Placement placement;
  std::optional<MemoryFile> memory;          // rank 0's store, if it starts the others itself
  std::optional<ListeningSocket> listening;  // else the socket of rank 0's store, until the store takes it
  std::optional<WorkerProcesses> workers;    // that this process has started
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroup> processes;
  bool connected = false;  // all processes have the same state
  Clock::time_point last_sent{};
  std::unique_ptr<c10d::Reducer> reducer;                // refers to last_sent
  std::vector<c10::intrusive_ptr<c10d::Work>> averages;  // under way
  double waited_ms = missing;                            // in the last backward pass; unknown on a GPU
  bool stop_agreed = false;                              // the same on all ranks, as of the last exchange
  bool pause_agreed = false;
  int exceptions_before = std::uncaught_exceptions();
};

DataParallel::Group::Group(const Recipe& recipe, const std::optional<Placement>& launched)
    : device(at::Device(recipe.device).type()), placement(own_placement(recipe, launched)) {
  if (!launched) {
    memory.emplace();
    placement.store_descriptor = memory->descriptor();
    workers.emplace(placement, to_json(recipe));
  } else if (is_rank0() && !placement.store_is_served) {
    listening.emplace(placement.master_addr, placement.master_port);
  }
}

DataParallel::Group::~Group() {
  // After a run without errors they exit on their own; after an error they would wait forever.
  const bool ended_well = connected && std::uncaught_exceptions() == exceptions_before;
  if (processes) leave_group(*processes, device, /*together=*/ended_well);
  if (workers && ended_well) workers->wait_all_ended(end_patience);
  workers.reset();  // before the group, whose destructor waits for pending messages
}

// Rank 0 waits for the others, and meanwhile watches for failures of the processes that it started and for stop
// requests. All of them join Gloo afterwards, since Gloo watches neither.
bool DataParallel::Group::wait_for_all(const std::stop_token& stop) {
  store = join_store(placement, listening ? &*listening : nullptr, start_patience);
  store->set(key("here", placement.rank), std::vector<std::uint8_t>{1});
  const auto deadline = Clock::now() + start_patience;
  for (int rank = 0; rank < placement.world_size; ++rank) {
    while (!store->check({key("here", rank)})) {
      if (stop.stop_requested()) return false;
      if (workers) {
        if (const auto failure = workers->failure()) throw std::runtime_error(*failure);
      }
      if (Clock::now() > deadline) throw std::runtime_error(rank_name(rank) + " has not connected");
      std::this_thread::sleep_for(glance);
    }
  }
  return true;
}

void DataParallel::Group::make_reducer(const std::vector<at::Tensor>& parameters) {
  // Gradients become ready from the last layer to the first, so the buckets go backwards. The first one is small, so
  // that sending begins early.
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      parameters, {c10d::kDefaultFirstBucketBytes, c10d::kDefaultBucketBytesCap});
  std::ranges::reverse(buckets);
  // Gradients are stored in the buckets themselves: one copy instead of two.
  reducer = std::make_unique<c10d::Reducer>(
      parameters, std::move(buckets), processes, std::vector<bool>(parameters.size(), false),
      c10d::kDefaultBucketBytesCap, /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true,
      /*param_names=*/std::unordered_map<std::size_t, std::string>{}, c10d::kDefaultFirstBucketBytes,
      /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
      /*bucket_bytes_cap_list=*/std::vector<std::int64_t>{});
  reducer->register_comm_hook(std::make_unique<TimedAllReduce>(processes, last_sent));
}

// Messages of the group are small. One that claims to need more memory than there is was not sent by the group.
void DataParallel::Group::blame_a_stranger() const {
  throw std::runtime_error("the processes got a message from another program while they connected" +
                           (placement.store_descriptor >= 0
                                ? std::string(" on this machine")
                                : " at " + placement.master_addr + ":" + std::to_string(placement.master_port) +
                                      "; choose another MASTER_PORT"));
}

bool DataParallel::Group::connect(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& moments,
                                  std::int64_t& done, Gradients gradients, const std::stop_token& stop) {
  try {
    if (!wait_for_all(stop)) return false;
    guarded([&] { processes = join_group(store, placement, device, collective_patience); });
  } catch (const std::bad_alloc&) {
    blame_a_stranger();
  } catch (const std::length_error&) {
    blame_a_stranger();
  }
  guarded([&] {
    const at::NoGradGuard no_grad;
    c10d::broadcast_coalesced(processes, parameters, c10d::kDefaultBucketBytesCap, /*rank=*/0);
    at::Tensor step = at::scalar_tensor(done, at::kLong);
    c10d::broadcast_coalesced(processes, {step}, c10d::kDefaultBucketBytesCap, /*rank=*/0);
    done = step.item<std::int64_t>();
    if (done > 0) c10d::broadcast_coalesced(processes, moments, c10d::kDefaultBucketBytesCap, /*rank=*/0);
  });
  if (gradients == Gradients::autograd) make_reducer(parameters);
  connected = true;
  return true;
}

void DataParallel::Group::backward(const at::Tensor& loss, bool average) {
  guarded([&] {
    if (average) {
      reducer->prepare_for_forward();
      reducer->rebuild_buckets();  // once, in the order in which gradients became ready
      reducer->prepare_for_backward({});
    }
    loss.backward();
    if (device != at::kCPU) return;
    waited_ms = average ? std::chrono::duration<double, std::milli>(Clock::now() - last_sent).count() : 0;
  });
}

void DataParallel::Group::begin_average(const at::Tensor& gradients) {
  const at::NoGradGuard no_grad;
  last_sent = Clock::now();
  std::vector<at::Tensor> sums = {gradients};
  sums.front().div_(placement.world_size);
  guarded([&] { averages.push_back(processes->allreduce(sums)); });
}

void DataParallel::Group::finish_averages() {
  guarded([&] {
    for (const auto& work : averages) work->wait();
  });
  averages.clear();
  waited_ms = std::chrono::duration<double, std::milli>(Clock::now() - last_sent).count();
}

void DataParallel::Group::exchange(double& loss, RunControl& control) {
  const bool pausing = is_rank0() && control.paused();
  const std::vector<double> own = {loss / placement.world_size, control.stop_token().stop_requested() ? 1.0 : 0.0,
                                   pausing ? 1.0 : 0.0};
  std::vector<at::Tensor> sums = {at::tensor(own, at::kDouble)};
  guarded([&] {
    require_no_loss(*processes, device);
    processes->allreduce(sums)->wait();
  });
  loss = sums.front()[0].item<double>();
  stop_agreed = sums.front()[1].item<double>() > 0;
  pause_agreed = sums.front()[2].item<double>() > 0;
}

template <class Collective>
void DataParallel::Group::guarded(Collective collective) {
  std::optional<PeerLoss> loss;
  try {
    collective();
  } catch (const std::exception& error) {
    loss = peer_loss(error);
    if (!loss) throw;
  }
  if (loss) explain(*loss);
}

// Ranks that only lost contact report that in the store, so that rank 0 can name the rank that failed.
void DataParallel::Group::explain(PeerLoss loss) {
  if (is_rank0()) {
    const auto found = culprit(loss);
    throw std::runtime_error(found ? *found : std::string(lost_contact) + "another rank");
  }
  try {
    store->set(key("survives", placement.rank), std::vector<std::uint8_t>{1});
    std::this_thread::sleep_for(inquest_patience);  // closing a connection now would look like another loss
  } catch (const std::exception&) {
    throw std::runtime_error(std::string(lost_contact) + rank_name(0));
  }
  throw std::runtime_error(std::string(lost_contact) + "another rank");
}

std::optional<std::string> DataParallel::Group::culprit(PeerLoss loss) {
  const auto deadline = Clock::now() + inquest_patience;
  std::vector<int> silent;
  do {
    if (workers) {
      if (auto failure = workers->failure()) return failure;
    }
    silent.clear();
    for (int rank = 1; rank < placement.world_size; ++rank) {
      if (!store->check({key("survives", rank)})) silent.push_back(rank);
    }
    std::this_thread::sleep_for(glance);
  } while (Clock::now() < deadline && !silent.empty());
  if (silent.empty()) return std::nullopt;
  std::string names;
  for (const int rank : silent) names += (names.empty() ? "" : " and ") + rank_name(rank);
  if (loss == PeerLoss::connection_closed) return lost_contact + names;
  return names + (silent.size() == 1 ? " has" : " have") + " not answered for " +
         std::to_string(collective_patience / 1s) + " s";
}

DataParallel::DataParallel(const Recipe& recipe, RunControl& control) : control_(control) {
  if (recipe.nproc > 1) group_ = std::make_unique<Group>(recipe, placement_from_environment());
}

DataParallel::~DataParallel() = default;

bool DataParallel::connect(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& moments,
                           std::int64_t& done, Gradients gradients) {
  return !group_ || group_->connect(parameters, moments, done, gradients, control_.stop_token());
}

bool DataParallel::is_rank0() const {
  return !group_ || group_->is_rank0();
}

std::optional<at::Device> DataParallel::own_gpu() const {
  if (!group_ || group_->device != at::kCUDA) return std::nullopt;
  const int gpu = gpu_of(group_->placement, static_cast<int>(cuda_library().gpus.size())).value();
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(gpu));
}

double DataParallel::waited_ms() const {
  return group_ ? group_->waited_ms : missing;
}

Batch DataParallel::share(Batch batch) const {
  if (!group_) return batch;
  const auto own_rows = [&](std::vector<std::int64_t>& all) {
    const std::size_t size = all.size() / static_cast<std::size_t>(group_->placement.world_size);
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(size) * group_->placement.rank;
    return std::vector<std::int64_t>(first, first + static_cast<std::ptrdiff_t>(size));
  };
  return {own_rows(batch.inputs), own_rows(batch.targets)};
}

void DataParallel::backward(const at::Tensor& loss, bool average) {
  if (!group_) return loss.backward();
  group_->backward(loss, average);
}

void DataParallel::begin_average(const at::Tensor& gradients) {
  if (group_) group_->begin_average(gradients);
}

void DataParallel::finish_averages() {
  if (group_) group_->finish_averages();
}

double DataParallel::mean(double loss) {
  if (group_) group_->exchange(loss, control_);
  return loss;
}

void DataParallel::wait_while_paused() {
  if (!group_) return control_.wait_while_paused();
  while (group_->pause_agreed && !group_->stop_agreed) {
    if (group_->is_rank0()) control_.wait_while_paused(between_signs_of_life);
    double nothing = 0;
    group_->exchange(nothing, control_);
  }
}

bool DataParallel::stop_requested() const {
  return group_ ? group_->stop_agreed : control_.stop_token().stop_requested();
}

int threads_per_process(const Recipe& recipe) {
  return std::max(1, recipe.threads / recipe.nproc);
}

}  // namespace stepladder
