// GLFW, OpenGL and ImGui behind one class. A frame whose draw data has the hash of the last one isn't rendered, since
// software rendering is slow. OpenGL's functions are looked up by name, because off screen they are OSMesa's.
#include "app/desktop/window.h"

#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>
#include <imgui_internal.h>  // InputEventsQueue
#include <implot.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "app/desktop/theme.h"

// GLFW's header includes OpenGL's. Functions are looked up by name, since off screen they are OSMesa's rather than
// libGL's.
#include <GLFW/glfw3.h>

// ImGui's own OpenGL loader with a look-up function (its header is private to the backend).
extern "C" int imgl3wInit2(void (*(*get)(const char*))());

namespace stepladder {
namespace {

std::string last_glfw_error;
void keep_error(int, const char* text) {
  last_glfw_error = text;
}

// A size from a larger screen may not fit on this one.
void fit_on_screen(GLFWwindow* window) {
  int x = 0;
  int y = 0;
  int most_width = 0;
  int most_height = 0;
  GLFWmonitor* monitor = glfwGetPrimaryMonitor();
  if (monitor) glfwGetMonitorWorkarea(monitor, &x, &y, &most_width, &most_height);
  int width = 0;
  int height = 0;
  glfwGetWindowSize(window, &width, &height);
  if (most_width <= 0 || most_height <= 0 || (width <= most_width && height <= most_height)) return;
  glfwSetWindowSize(window, std::min(width, most_width), std::min(height, most_height));
}

// A hash of everything that decides what is rendered: the geometry, the clipping, the textures' pixels, and the size.
std::uint64_t hash_of(const ImDrawData& drawn, int width, int height) {
  static std::uint64_t textures = 0;  // counts the frames that change one
  std::uint64_t number = 0;
  const auto add = [&number](const void* bytes, std::size_t size) {
    const std::uint64_t more = std::hash<std::string_view>()({static_cast<const char*>(bytes), size});
    number = (number ^ more) * 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio: an order of equal parts counts
  };
  for (const ImTextureData* texture : *drawn.Textures) textures += texture->Status != ImTextureStatus_OK;
  const ImU32 background = ImGui::GetColorU32(palette().background);
  const std::int64_t sizes[] = {width, height, background, static_cast<std::int64_t>(textures)};
  add(sizes, sizeof sizes);
  for (const ImDrawList* list : drawn.CmdLists) {
    for (const ImDrawCmd& command : list->CmdBuffer) {
      const ImTextureID texture = command.GetTexID();
      const unsigned counts[] = {command.VtxOffset, command.IdxOffset, command.ElemCount};
      add(&command.ClipRect, sizeof command.ClipRect);
      add(&texture, sizeof texture);
      add(counts, sizeof counts);
    }
    add(list->VtxBuffer.Data, list->VtxBuffer.size_in_bytes());
    add(list->IdxBuffer.Data, list->IdxBuffer.size_in_bytes());
  }
  return number;
}

template <class Function>
Function gl(const char* name) {
  return reinterpret_cast<Function>(glfwGetProcAddress(name));
}

}  // namespace

Window::Window(Kind kind, const std::string& title, int width, int height) : off_screen_(kind == Kind::off_screen) {
  glfwSetErrorCallback(keep_error);
  glfwInitHint(GLFW_PLATFORM, off_screen_ ? GLFW_PLATFORM_NULL : GLFW_ANY_PLATFORM);
  if (!glfwInit()) throw std::runtime_error("The window cannot be opened: " + last_glfw_error);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  // The desktop matches the window to the application by these (StartupWMClass in assets/desktop/stepladder.desktop).
  glfwWindowHintString(GLFW_X11_CLASS_NAME, "Stepladder");
  glfwWindowHintString(GLFW_WAYLAND_APP_ID, "Stepladder");
  if (off_screen_) {
    glfwWindowHint(GLFW_CONTEXT_CREATION_API, GLFW_OSMESA_CONTEXT_API);
    glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_FALSE);
  }
  window_ = glfwCreateWindow(width, height, title.c_str(), nullptr, nullptr);
  if (!window_) {
    glfwTerminate();
    throw std::runtime_error(
        "The window cannot be opened: " + last_glfw_error +
        (off_screen_
             ? ""
             : ". It needs OpenGL 3.3, which `ssh -X` rarely has: open the window on the machine with the screen and "
               "train there with `--on HOST`, or take pictures here with `stepladder screenshot`"));
  }
  if (!off_screen_) fit_on_screen(window_);
  glfwMakeContextCurrent(window_);
  glfwSwapInterval(1);
  imgl3wInit2(glfwGetProcAddress);
  IMGUI_CHECKVERSION();
  ImGui::CreateContext();
  ImPlot::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.ConfigFlags |= ImGuiConfigFlags_DockingEnable | ImGuiConfigFlags_NavEnableKeyboard;
  io.ConfigDockingAlwaysTabBar = false;
  io.IniFilename = nullptr;  // the app stores the layout itself
  glfwSetWindowUserPointer(window_, this);
  glfwSetWindowRefreshCallback(window_, [](GLFWwindow* window) {
    static_cast<Window*>(glfwGetWindowUserPointer(window))->has_lost_pixels_ = true;
  });
  glfwSetDropCallback(window_, [](GLFWwindow* window, int count, const char** paths) {
    auto& dropped = static_cast<Window*>(glfwGetWindowUserPointer(window))->dropped_;
    dropped.insert(dropped.end(), paths, paths + count);
  });
  ImGui_ImplGlfw_InitForOpenGL(window_, true);
  ImGui_ImplOpenGL3_Init("#version 330");
}

Window::~Window() {
  ImGui_ImplOpenGL3_Shutdown();
  ImGui_ImplGlfw_Shutdown();
  ImPlot::DestroyContext();
  ImGui::DestroyContext();
  glfwDestroyWindow(window_);
  glfwTerminate();
}

bool Window::is_open() const {
  return !glfwWindowShouldClose(window_);
}
void Window::stay_open() {
  glfwSetWindowShouldClose(window_, GLFW_FALSE);
}

bool Window::is_visible() const {
  return !glfwGetWindowAttrib(window_, GLFW_ICONIFIED);
}

float Window::display_scale() const {
  float x = 1;
  float y = 1;
  if (!off_screen_) glfwGetWindowContentScale(window_, &x, &y);
  return std::max(x, 0.5f);
}

bool Window::is_maximised() const {
  return glfwGetWindowAttrib(window_, GLFW_MAXIMIZED);
}
void Window::maximise() {
  glfwMaximizeWindow(window_);
}
void Window::size(int& width, int& height) const {
  glfwGetWindowSize(window_, &width, &height);
}

std::vector<std::string> Window::take_dropped() {
  return std::exchange(dropped_, {});
}

bool Window::wait_for_input(double seconds) {
  if (ImGui::GetCurrentContext()->InputEventsQueue.Size > 0) {
    glfwPollEvents();
  } else if (seconds < 0) {
    glfwWaitEvents();
  } else {
    glfwWaitEventsTimeout(seconds);
  }
  return has_input();
}

bool Window::is_hovering() const {
  const ImGuiContext& imgui = *ImGui::GetCurrentContext();
  return imgui.HoverItemDelayId != 0 && (imgui.HoverItemUnlockedStationaryId != imgui.HoverItemDelayId ||
                                         imgui.HoverItemDelayTimer < imgui.Style.HoverDelayNormal);
}

bool Window::poll_input() {
  glfwPollEvents();
  return has_input();
}

bool Window::has_input() const {
  return ImGui::GetCurrentContext()->InputEventsQueue.Size > 0 || !dropped_.empty() || has_lost_pixels_;
}

void Window::wake() {
  glfwPostEmptyEvent();
}

bool Window::frame(const std::function<void()>& draw) {
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  input_frames_.begin();
  draw();
  ImGui::Render();
  int width = 0;
  int height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  const std::uint64_t drawn = hash_of(*ImGui::GetDrawData(), width, height);
  const bool is_new = drawn != std::exchange(shown_hash_, drawn);
  if (!std::exchange(has_lost_pixels_, false) && !is_new) return false;
  const ImVec4 background = palette().background;
  gl<void (*)(GLint, GLint, GLsizei, GLsizei)>("glViewport")(0, 0, width, height);
  gl<void (*)(GLfloat, GLfloat, GLfloat, GLfloat)>("glClearColor")(background.x, background.y, background.z, 1);
  gl<void (*)(GLbitfield)>("glClear")(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  glfwSwapBuffers(window_);
  return true;
}

std::vector<std::uint8_t> Window::pixels(int& width, int& height) const {
  glfwGetFramebufferSize(window_, &width, &height);
  std::vector<std::uint8_t> read(static_cast<std::size_t>(width) * height * 4);
  gl<void (*)(GLenum, GLint)>("glPixelStorei")(GL_PACK_ALIGNMENT, 1);
  gl<void (*)(GLint, GLint, GLsizei, GLsizei, GLenum, GLenum, void*)>("glReadPixels")(0, 0, width, height, GL_RGBA,
                                                                                      GL_UNSIGNED_BYTE, read.data());
  // OpenGL counts rows from the bottom.
  const std::size_t row = static_cast<std::size_t>(width) * 4;
  for (int y = 0; y < height / 2; ++y) {
    std::swap_ranges(read.begin() + static_cast<std::ptrdiff_t>(row * y),
                     read.begin() + static_cast<std::ptrdiff_t>(row * (y + 1)),
                     read.begin() + static_cast<std::ptrdiff_t>(row * (height - 1 - y)));
  }
  return read;
}

}  // namespace stepladder
