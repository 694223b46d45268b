#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "engine/trainer/cuda/make_parts.h"

namespace stepladder {
namespace {

// The numbers of lt_api.h against NVIDIA's header.
template <class Own, class Theirs>
constexpr bool same(Own own, Theirs theirs) {
  return sizeof own == sizeof theirs && static_cast<long long>(own) == static_cast<long long>(theirs);
}
static_assert(same(lt::float32, CUDA_R_32F) && same(lt::bfloat16, CUDA_R_16BF));
static_assert(same(lt::in_float32, CUBLAS_COMPUTE_32F) && same(lt::in_tf32, CUBLAS_COMPUTE_32F_FAST_TF32));
static_assert(same(lt::as_is, CUBLAS_OP_N) && same(lt::transposed, CUBLAS_OP_T));
static_assert(same(lt::transpose_a, CUBLASLT_MATMUL_DESC_TRANSA) && same(lt::transpose_b, CUBLASLT_MATMUL_DESC_TRANSB));
static_assert(same(lt::epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE));
static_assert(same(lt::bias_pointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER));
static_assert(same(lt::aux_pointer, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER));
static_assert(same(lt::aux_ld, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD));
static_assert(same(lt::bias_type, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE));
static_assert(same(lt::reduction_schemes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK));
static_assert(lt::in_compute_type == static_cast<int>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
static_assert(lt::any_scheme == static_cast<int>(CUBLASLT_REDUCTION_SCHEME_MASK));
static_assert(same(lt::workspace_bytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
static_assert(same(lt::plain, CUBLASLT_EPILOGUE_DEFAULT) && same(lt::bias, CUBLASLT_EPILOGUE_BIAS));
static_assert(same(lt::gelu_aux_bias, CUBLASLT_EPILOGUE_GELU_AUX_BIAS));
static_assert(same(lt::dgelu_bias_gradient, CUBLASLT_EPILOGUE_DGELU_BGRAD));
static_assert(same(lt::bias_gradient_b, CUBLASLT_EPILOGUE_BGRADB));
static_assert(sizeof(lt::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(lt::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));

double time_ms(const std::function<void()>& work) {
  at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
  begin.record();
  work();
  end.record();
  end.synchronize();
  return begin.elapsed_time(end);
}

}  // namespace

lt::Library open_lt_library() {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* const opened = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);  // LibTorch has loaded it; never closed
  if (!opened) throw std::runtime_error(name + " could not be opened");
  lt::Library library{
      .handle = [] { return reinterpret_cast<lt::Handle>(at::cuda::getCurrentCUDABlasLtHandle()); },
      .stream = [] { return reinterpret_cast<void*>(c10::cuda::getCurrentCUDAStream().stream()); },
      .capturing = [] { return c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None; },
      .time_ms = time_ms};
  const auto find = [&](auto& function, const char* symbol) {
    const std::string whole = std::string("cublasLt") + symbol;
    void* const found = ::dlsym(opened, whole.c_str());
    if (!found) throw std::runtime_error(name + " has no " + whole);
    function = reinterpret_cast<std::decay_t<decltype(function)>>(found);
  };
#define FIND(symbol) find(library.api.symbol, #symbol)
  FIND(MatmulDescCreate);
  FIND(MatmulDescSetAttribute);
  FIND(MatmulDescDestroy);
  FIND(MatrixLayoutCreate);
  FIND(MatrixLayoutDestroy);
  FIND(MatmulPreferenceCreate);
  FIND(MatmulPreferenceSetAttribute);
  FIND(MatmulPreferenceDestroy);
  FIND(MatmulAlgoGetHeuristic);
  FIND(MatmulAlgoCheck);
  FIND(Matmul);
#undef FIND
  std::size_t (*version)() = nullptr;
  find(version, "GetVersion");
  int driver = 0;
  ::cudaDriverGetVersion(&driver);  // 0 if it fails: still the same name each time
  library.machine = std::string(at::cuda::getCurrentDeviceProperties()->name) + ", cuBLASLt " +
                    std::to_string(version()) + ", driver " + std::to_string(driver);
  return library;
}

}  // namespace stepladder
