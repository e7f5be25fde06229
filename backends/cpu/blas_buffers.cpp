// SPDX-License-Identifier: Apache-2.0
// Makes OpenBLAS safe to call from many threads. Its products pack their operands into buffers from one table. The
// serial archive is built without USE_LOCKING (driver/others/memory.c of 0.3.21), so two threads could be given the
// same buffer and then write into each other's products. Linked with --wrap, as blas_core.cpp is.
#include <pthread.h>

#include <mutex>

static constinit std::mutex table;

// A child of fork has only the thread that forked: nobody else could unlock what another thread had locked.
[[gnu::constructor]] static void keep_free_in_children() {
  auto lock = [] { table.lock(); };
  auto unlock = [] { table.unlock(); };
  pthread_atfork(lock, unlock, unlock);
}

extern "C" {
void* __real_blas_memory_alloc(int kind);
void __real_blas_memory_free(void* buffer);
void* __wrap_blas_memory_alloc(int kind);
void __wrap_blas_memory_free(void* buffer);

void* __wrap_blas_memory_alloc(int kind) {
  std::scoped_lock lock(table);
  return __real_blas_memory_alloc(kind);
}

void __wrap_blas_memory_free(void* buffer) {
  std::scoped_lock lock(table);
  __real_blas_memory_free(buffer);
}
}
