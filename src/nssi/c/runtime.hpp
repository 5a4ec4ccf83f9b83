// SPDX-License-Identifier: BSD-3-Clause
// What the files of nssi/runtime.h share: what its handles are, and how its functions fail.
#pragma once

#include <nssi/runtime.h>
#include <nssi/nssi.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <type_traits>
#include <vector>

namespace nssi::c_runtime {

/// Notes the error for nssi_rt_last_error() and its kin, and returns its code.
int fail(const Error &error) noexcept;
int fail(Code code, std::string_view message) noexcept;

/// The body of a function of the header, which returns a Status, or the code of what was noted: no exception leaves it.
template <class Body> int guarded(Body body) noexcept {
  try {
    if constexpr (std::is_same_v<std::invoke_result_t<Body>, int>) {
      return body();
    } else {
      Status status = body();
      return status.ok() ? NESSIE_OK : fail(status.error());
    }
  } catch (const std::bad_alloc &) {
    return fail(Code::kNoMemory, "memory is exhausted");
  } catch (const std::exception &e) { return fail(Code::kInternal, e.what()); } catch (...) {
    return fail(Code::kInternal, "an exception of unknown type");
  }
}

inline Error invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

inline Result<Deadline> deadline_of(std::int32_t timeout_ms) {
  if (timeout_ms < -1) return invalid("a timeout is -1, for none, or at least 0 ms");
  return Deadline::from_ms(timeout_ms);
}

/// What a handle points to. Its memory is used again, but never given back, so that a closed handle can be told.
template <std::uint32_t kMark> struct Handle {
  std::atomic<std::uint32_t> mark{0};
  static constexpr std::uint32_t kOpen = kMark;
};

template <class T> bool is_open(const T *handle) {
  return handle != nullptr && handle->mark.load(std::memory_order_acquire) == T::kOpen;
}

/// The objects of one kind.
template <class T> class Handles {
 public:
  struct GiveBack {
    void operator()(T *one) const { give_back(one); }
  };
  /// Not open yet; goes back if it is not opened.
  using Taken = std::unique_ptr<T, GiveBack>;
  static Taken take() {
    auto &all = instance();
    std::lock_guard lock(all.mutex_);
    if (all.free_.empty()) {
      all.free_.reserve(++all.made_);
      all.free_.push_back(new T);
    }
    auto *one = all.free_.back();
    all.free_.pop_back();
    return Taken(one);
  }
  static T *open(Taken one) {
    one->mark.store(T::kOpen, std::memory_order_release);
    return one.release();
  }
  /// False: it is not open, or somebody else closes it.
  static bool close(T *one) {
    auto open = T::kOpen;
    return one != nullptr && one->mark.compare_exchange_strong(open, 0);
  }
  /// `one` was closed, or never opened, and holds nothing any more.
  static void give_back(T *one) {
    auto &all = instance();
    std::lock_guard lock(all.mutex_);
    all.free_.push_back(one);
  }

 private:
  static Handles &instance() {
    static auto *all = new Handles;  // a handle may be closed by a destructor that runs at the very end
    return *all;
  }

  std::mutex mutex_;
  std::vector<T *> free_;
  std::size_t made_ = 0;
};

/// Outlives the runtime, for the buffers that do.
struct Home {
  std::shared_ptr<Runtime> runtime;

  /// Until just before the runtime ends. Any thread.
  void keep(std::shared_ptr<void> guest) {
    const std::lock_guard lock(mutex_);
    guests_.push_back(std::move(guest));
  }
  void end() {
    guests_.clear();
    runtime.reset();
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<void>> guests_;
};

/// Somebody else's runtime, as C sees it, until this ends. nssi_rt_close() does not close it. Moves not.
class Lent {
 public:
  explicit Lent(Runtime &runtime);
  ~Lent() { end(); }
  Lent(const Lent &) = delete;
  nssi_rt_runtime *get() const { return handle_; }
  /// Before the runtime goes.
  void end();

 private:
  nssi_rt_runtime *handle_;
};

/// True within a short handler of `runtime`; nssi_rt_close() and run() have no business there.
bool in_short_handler_of(const Runtime &runtime);

}  // namespace nssi::c_runtime

struct nssi_rt_runtime : nssi::c_runtime::Handle<0x4E535201> {
  std::shared_ptr<nssi::c_runtime::Home> home;
  bool is_lent = false;
};

struct nssi_rt_buffer : nssi::c_runtime::Handle<0x4E535202> {
  std::shared_ptr<nssi::c_runtime::Home> home;
  nnti::RegisteredBuffer buffer;
  std::atomic<int> lent{0};  ///< to so many calls
};

struct nssi_rt_call : nssi::c_runtime::Handle<0x4E535203> {
  nssi::Call call;
  nssi_rt_buffer *lends = nullptr;  ///< until the call was seen to be over
  bool is_one_way = false;
};

struct nssi_rt_request : nssi::c_runtime::Handle<0x4E535204> {
  nssi::Request *request = nullptr;
  nssi::Status last;  ///< the last error of a function with this request
  bool replied = false;
};
