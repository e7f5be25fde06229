/* SPDX-License-Identifier: Apache-2.0
 * rlx.h - build, import, compile and run tensor graphs.
 *
 * Rules that hold for every function
 *  - A function that can fail returns rlx_status_t *: NULL is success, anything else is owned by the caller
 *    (rlx_status_take reads and releases it). Its out parameters come last and are always written: NULL, 0 or "" on
 *    failure, and -1 for a file descriptor.
 *  - Strings are UTF-8 and NUL-terminated. If they are not UTF-8: a new name, an attribute or an option is
 *    RLX_E_INVALID_ARGUMENT; a name to look up is that, or not found. Paths of files may be any bytes; messages show
 *    bytes that are not UTF-8 by number.
 *  - A pointer argument is used before the call returns and never kept, unless its comment says "retained" (a reference
 *    is taken) or "borrowed" (must outlive the handle).
 *  - A required pointer that is NULL is RLX_E_INVALID_ARGUMENT; where no status is returned the result is NULL, 0 or
 *    "". An array of length 0 may be NULL. A length whose bytes exceed PTRDIFF_MAX is RLX_E_INVALID_ARGUMENT, and
 *    nothing is touched.
 *  - A handle that an out parameter receives belongs to the caller, who releases it. Devices are borrowed.
 *  - Shared handles and graphs are reference counted: X_retain returns its argument. attrs and exec have one owner.
 *    X_release(NULL) does nothing. Handles may be released in any order: a child holds its parents.
 *  - A handle belongs to the environment in which it was made. Mixing two environments is RLX_E_INVALID_ARGUMENT.
 *  - Any function that allocates may return RLX_E_NO_MEMORY. A function that gets a handle made before fork() returns
 *    RLX_E_FORKED. The comments below name the other errors. The message of a status says what was expected and what
 *    was given.
 *  - Nothing prints, exits, aborts, throws, changes a floating-point mode, installs a signal handler, or starts a
 *    thread at load.
 *  - A new op, option, format, device or statistic is a new string, never a new function. Numbers are never reused.
 */
#ifndef RLX_H
#define RLX_H
#include <stddef.h>
#include <stdint.h>

/* RLX_API exports a function. RLX_MUST also makes the compiler warn where a caller ignores the result. */
#if defined(_WIN32) && defined(RLX_BUILD)
#define RLX_API __declspec(dllexport)
#elif defined(_WIN32)
#define RLX_API __declspec(dllimport)
#elif defined(__GNUC__)
#define RLX_API __attribute__((visibility("default")))
#else
#define RLX_API
#endif
#if defined(__GNUC__)
#define RLX_MUST RLX_API __attribute__((warn_unused_result))
#else
#define RLX_MUST RLX_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- handles: "shared" ones may be used from any thread at once, "single" ones by one thread at a time ---- */

typedef struct rlx_status rlx_status_t;     /* shared: an error: code, message, details                           */
typedef struct rlx_env rlx_env_t;           /* shared: devices, threads, memory and log of one user               */
typedef struct rlx_device rlx_device_t;     /* shared: borrowed from its env, never released                      */
typedef struct rlx_attrs rlx_attrs_t;       /* single: named values: attributes of an op, options of a call       */
typedef struct rlx_tensor rlx_tensor_t;     /* shared: dtype, shape and dense row-major bytes                     */
typedef struct rlx_graph rlx_graph_t;       /* single while it is built; shared once nobody changes it            */
typedef struct rlx_weights rlx_weights_t;   /* shared: name -> tensor, and what was prepared from them            */
typedef struct rlx_compiled rlx_compiled_t; /* shared: a program for one device; only its params can change       */
typedef struct rlx_exec rlx_exec_t;         /* single: one execution context of a program: arena, bindings, sizes */
typedef struct rlx_fence rlx_fence_t;       /* shared: whether asynchronous work is done, and its status         */
typedef struct rlx_model rlx_model_t;       /* shared: graph + weights + policy; compiled on demand               */
typedef struct rlx_opcall rlx_opcall_t;     /* single: one call of a custom op; borrowed while the callback runs   */
typedef struct rlx_blob rlx_blob_t;         /* shared: bytes owned by the library, followed by a 0 byte           */

typedef uint64_t rlx_value_t; /* a value of a graph; 0 is "invalid" and poisons what is built on it */
typedef int32_t rlx_code_t;   /* RLX_OK or one of RLX_E_* */
typedef int32_t rlx_dtype_t;  /* RLX_F32 ... */

/* Gives memory back to its owner. The library calls it once, on any thread, while it holds no lock. */
typedef void (*rlx_free_fn)(void *user, void *data);

/* One of many pieces of work that threads share: number i. */
typedef void (*rlx_index_fn)(void *arg, size_t i);

/* Stands for an optional input that is left out. Every value of a graph is 2 or more. */
#define RLX_ABSENT 1

/* ---- version and features ---- */

/* The version of this header: major * 1000000 + minor * 1000 + patch. It is 0.x until the ABI is frozen as 1.0. */
#define RLX_VERSION 1000

/* The version of the library that runs, coded as RLX_VERSION is. */
RLX_API uint32_t rlx_version(void);

/* The version as text, "0.1.0". Never NULL; static. */
RLX_API const char *rlx_version_string(void);

/* Whether this build of the library has a feature: "backend.NAME", "format.NAME" or "op.NAME", for example
 * "op.softmax". Returns 1 if it has, else 0. */
RLX_API int32_t rlx_feature(const char *name);

/* ---- status ---- */

#define RLX_OK 0
#define RLX_E_CANCELLED 1        /* stopped on request                                              */
#define RLX_E_UNKNOWN 2          /* a driver or library failed without saying why                   */
#define RLX_E_INVALID_ARGUMENT 3 /* NULL, a bad length, a handle of another environment             */
#define RLX_E_TIMEOUT 4          /* the time that the caller allowed is over                        */
#define RLX_E_NOT_FOUND 5        /* no such name, file, symbol or device                            */
#define RLX_E_EXISTS 6           /* the name is taken                                               */
#define RLX_E_DENIED 7           /* refused by a policy or by the system                            */
#define RLX_E_NO_MEMORY 8        /* an allocation failed, or a plan is above its limit              */
#define RLX_E_STATE 9            /* impossible now: a param is not set, a tensor is frozen          */
#define RLX_E_ABORTED 10         /* work that depended on something that failed                     */
#define RLX_E_RANGE 11           /* an index, size or number outside its range                      */
#define RLX_E_UNSUPPORTED 12     /* known, but refused; the message says by what and why            */
#define RLX_E_INTERNAL 13        /* our bug                                                         */
#define RLX_E_UNAVAILABLE 14     /* a device that is absent, lost or denied                         */
#define RLX_E_DATA 15            /* a damaged file or message                                       */
#define RLX_E_VERSION 16         /* a file or struct of another version                             */
#define RLX_E_IO 17              /* the system could not read a file                                */
#define RLX_E_SHAPE 18           /* a rank or dim that does not fit                                 */
#define RLX_E_DTYPE 19           /* a dtype that does not fit                                       */
#define RLX_E_OPTION 20          /* an unknown, missing, repeated or illegal attribute or option    */
#define RLX_E_FORKED 21          /* a handle that was made before fork()                            */
#define RLX_E_CALLBACK 22        /* a callback of the host failed                                   */

/* Copies "RLX_E_SHAPE: ..." into text, cut to capacity bytes including the NUL, releases the status, returns its code.
 * For a NULL status the text is "" and the code RLX_OK. text may be NULL if capacity is 0. */
RLX_API rlx_code_t rlx_status_take(rlx_status_t *status, char *text, size_t capacity);

/* The code of a status; RLX_OK for NULL. */
RLX_API rlx_code_t rlx_status_code(const rlx_status_t *status);

/* What went wrong, in words that a person can act on. The text lives as long as the status. Never NULL: "" for a NULL
 * status. */
RLX_API const char *rlx_status_message(const rlx_status_t *status);

/* One detail, for programs: "op" (the name of an op), "value" (the name of a value, param, size, option ...), "input",
 * "device", "expected", "got", "line", "column", "offset" (in a file). Names have no quotes. NULL if the status has no
 * such detail, else text that lives as long as the status. */
RLX_API const char *rlx_status_detail(const rlx_status_t *status, const char *key);

/* The name of a code, "RLX_E_SHAPE". Static, never NULL. A number that is not a code gives "RLX_E_UNKNOWN". */
RLX_API const char *rlx_code_name(rlx_code_t code);

/* A status of the caller's own, for rlx_fence_signal. Returns NULL for RLX_OK. A number that is not a code becomes
 * RLX_E_UNKNOWN. The message is copied; NULL means "". */
RLX_API rlx_status_t *rlx_status_create(rlx_code_t code, const char *message);

/* Takes one more reference and returns its argument. */
RLX_API rlx_status_t *rlx_status_retain(rlx_status_t *status);

/* Gives one reference back; the last one frees the status. Does nothing for NULL. */
RLX_API void rlx_status_release(rlx_status_t *status);

/* ---- named values: op attributes and options alike ----
 * Text, op strings and the textual IR share one syntax: `axis=-1 eps=1e-5 perm=[0,2,1] act=gelu
 * shape=[batch,past+seq,64]`. Strings with spaces or commas need double quotes. A bool is true, false, 0 or 1. Setting
 * a key again replaces its value. Setters return nothing: the attrs keep the first failure, and the call that takes
 * them returns it. */

/* New attrs from text. NULL or "" gives empty ones. The caller owns them. Errors: RLX_E_OPTION for a syntax error
 * (detail "column") or a repeated key. */
RLX_MUST rlx_status_t *rlx_attrs_create(const char *text, rlx_attrs_t **out);

/* Frees the attrs. Does nothing for NULL. */
RLX_API void rlx_attrs_release(rlx_attrs_t *attrs);

/* Sets an integer. A bool is 0 or 1. Where the attribute is a dim, the integer may be a token of rlx_graph_dim. */
RLX_API void rlx_attrs_set_i64(rlx_attrs_t *attrs, const char *key, int64_t value);

/* Sets a number. An attribute that expects an f64 also takes an integer. */
RLX_API void rlx_attrs_set_f64(rlx_attrs_t *attrs, const char *key, double value);

/* Sets a string, an enum, a dtype by its name, or a dim as text. Copied. */
RLX_API void rlx_attrs_set_str(rlx_attrs_t *attrs, const char *key, const char *value);

/* Sets a list of n integers. Where the attribute is a list of dims, they may be tokens. Copied. */
RLX_API void rlx_attrs_set_i64s(rlx_attrs_t *attrs, const char *key, const int64_t *values, size_t n);

/* Sets a list of n numbers. Copied. */
RLX_API void rlx_attrs_set_f64s(rlx_attrs_t *attrs, const char *key, const double *values, size_t n);

/* Sets a list of n strings, none of them NULL. Copied. */
RLX_API void rlx_attrs_set_strs(rlx_attrs_t *attrs, const char *key, const char *const *values, size_t n);

/* Sets a sub-graph: a branch of if, the body of while or scan. The graph is copied, and so is the error that it may
 * hold. At most 64 graphs nest, and at most 65,536 in all; more are RLX_E_UNSUPPORTED. */
RLX_API void rlx_attrs_set_graph(rlx_attrs_t *attrs, const char *key, const rlx_graph_t *graph);

/* Sets a tensor, which is retained and frozen. Errors, kept: RLX_E_STATE (bound as an output of a context). */
RLX_API void rlx_attrs_set_tensor(rlx_attrs_t *attrs, const char *key, rlx_tensor_t *tensor);

/* Reads integers: n receives their number, values the first `capacity` of them. A single integer is a list of one, and
 * a bool is 0 or 1. Errors: RLX_E_NOT_FOUND (no such key), RLX_E_OPTION for a value of another kind, the kept error. */
RLX_MUST rlx_status_t *rlx_attrs_get_i64s(const rlx_attrs_t *attrs, const char *key, int64_t *values, size_t capacity,
                                          size_t *n);

/* Reads numbers, as rlx_attrs_get_i64s does; integers are converted. */
RLX_MUST rlx_status_t *rlx_attrs_get_f64s(const rlx_attrs_t *attrs, const char *key, double *values, size_t capacity,
                                          size_t *n);

/* Reads a string; value lives until the key is set again or the attrs are released. Errors: as for
 * rlx_attrs_get_i64s. */
RLX_MUST rlx_status_t *rlx_attrs_get_str(const rlx_attrs_t *attrs, const char *key, const char **value);

/* The ops and options that the library knows, as JSON. what: "op.softmax" (its meaning, inputs and outputs with their
 * dtypes, attributes with kinds and defaults, and the kernels of each device), "ops" (all ops), or the options of a
 * call: "options.env", "options.compile", "options.import", "options.model" (the policy, beside the options of
 * compile). Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_schema(const rlx_env_t *env, const char *what, rlx_blob_t **json);

/* ---- what the host may own ---- */

#define RLX_LOG_TRACE 0 /* severities, least first */
#define RLX_LOG_DEBUG 1
#define RLX_LOG_INFO 2
#define RLX_LOG_WARN 3
#define RLX_LOG_ERROR 4
#define RLX_LOG_OFF 5

#define RLX_MEM_TENSOR 1   /* what alloc is asked for: the bytes of a tensor   */
#define RLX_MEM_ARENA 2    /* intermediate values of an execution context      */
#define RLX_MEM_PREPARED 3 /* packed weights                                   */
#define RLX_MEM_SCRATCH 4  /* working memory of kernels                        */

#define RLX_CB_OK 0x524c5831   /* what a callback returns if all is well                              */
#define RLX_CB_STOP 0x524c5832 /* the host wants the call to stop: it returns RLX_E_CANCELLED         */

/* A transparent struct. New members are added at its end. struct_size says which members the caller's struct
 * has; any size from that of version 0.1 on is accepted. Members that this library does not know must be zero, else the
 * call returns RLX_E_VERSION. Where a member is zero, the library uses its own service. The library may call these
 * functions on any thread until the last handle of the environment is released, and holds no lock then.
 *   log_level     the least severe level that is passed to log: RLX_LOG_TRACE (passes, plans, what was reused),
 *                 RLX_LOG_DEBUG (kernels chosen and refused), RLX_LOG_INFO (devices), RLX_LOG_WARN (what runs slower
 *                 than it could: an op without a native kernel). Zero is RLX_LOG_TRACE: everything
 *   user          the first argument of every function below. The library never looks at it
 *   log           category: "device" "compile" "kernel" "plan" "params"; message: one line
 *   alloc         returns size bytes, aligned to align (a power of two). If it returns NULL, the call of the library
 *                 returns RLX_E_NO_MEMORY, unless less will do. Set together with dealloc. Small objects,
 *                 constants of graphs and the working memory of ops without a kernel of their own use operator new
 *   dealloc       gives back what alloc gave, with the same size, align and kind
 *   thread_count  how many threads parallel_for may use. Set together with parallel_for; the library then makes no
 *                 threads.
 *   thread_index  the index of the calling thread among them, from 0; UINT32_MAX on any other thread. May be zero. The
 *                 library asks before it calls parallel_for, so that work on one of these threads does not start
 *                 parallel work of its own.
 *   parallel_for  calls fn(arg, i) once for each i below n, in any order, even one by one, and returns when all are
 *                 done
 *   progress      called now and then by long calls (importing, compiling, setting params): what they do, and the
 *                 fraction that is done, 0 to 1. One call of the library never has two of these at once. RLX_CB_OK: the
 *                 call goes on. RLX_CB_STOP: it returns RLX_E_CANCELLED. Any other value: it returns RLX_E_CALLBACK. A
 *                 call that ends so has changed nothing. A struct that ends before this member is accepted too.
 * Where log, alloc, parallel_for or progress throws an exception of C++, the call of the library returns
 * RLX_E_CALLBACK. No other function may throw, and no thread may still be in parallel_for's work when it does. */
typedef struct rlx_host {
  uint32_t struct_size;
  int32_t log_level;
  void *user;
  void (*log)(void *user, int32_t level, const char *category, const char *message);
  void *(*alloc)(void *user, size_t size, size_t align, uint32_t kind);
  void (*dealloc)(void *user, void *data, size_t size, size_t align, uint32_t kind);
  uint32_t (*thread_count)(void *user);
  uint32_t (*thread_index)(void *user);
  void (*parallel_for)(void *user, size_t n, void (*fn)(void *arg, size_t i), void *arg);
  int32_t (*progress)(void *user, const char *what, double fraction);
} rlx_host_t;

/* Zeroes the first struct_size bytes of *host and sets the member struct_size: rlx_host_init(&host, sizeof host).
 * Does nothing for NULL, or for a size that cannot be right (below 4 or above 4096). */
RLX_API void rlx_host_init(rlx_host_t *host, size_t struct_size);

/* ---- environment and devices; two environments in one process never see each other ---- */

/* A new environment. options, or NULL for the defaults:
 *   threads       the most threads of a run. With 0 the library makes no thread, and the caller does all the work; with
 *                 1 it makes one thread, if rlx_exec_submit is called. Default: one per physical core that the process
 *                 may use; where a processor has fast and slow cores, the fast ones. Concurrent runs share the threads
 *                 evenly.
 *   threads.pin   true binds each thread to a core of its own. Default: false
 *   threads.spin  how many microseconds an idle thread of the library, or a thread that waits for a run, stays awake
 *                 before it sleeps; 0: it sleeps at once. Default: 100, or 1 if there are more threads than processors
 *   env.prefix    the prefix of environment variables. Default: "RLX"
 *   memory.cache  the most bytes of freed buffers that are kept for later tensors; 0: none. Default: 268435456
 * host: the struct is copied, its callbacks and user pointer are borrowed; NULL: the library's own services.
 * Environment variables are read here and nowhere else; rlx_env_report(env, "environment") lists them. An option wins
 * over its variable. Errors: RLX_E_OPTION (for the value of a variable too), RLX_E_VERSION (struct_size),
 * RLX_E_INVALID_ARGUMENT (half a pair of callbacks; log_level), RLX_E_UNAVAILABLE (RLX_DEVICE names no device). */
RLX_MUST rlx_status_t *rlx_env_create(const rlx_attrs_t *options, const rlx_host_t *host, rlx_env_t **out);

/* Takes one more reference and returns its argument. */
RLX_API rlx_env_t *rlx_env_retain(rlx_env_t *env);

/* Gives one reference back. The last release, of the environment or of anything made in it, waits for the runs in
 * flight and joins every thread that the library made; in a callback of such a run it does not wait, and the run goes
 * on. Does nothing for NULL. */
RLX_API void rlx_env_release(rlx_env_t *env);

/* The number of devices. It stays as it is while the environment lives. */
RLX_API size_t rlx_env_device_count(const rlx_env_t *env);

/* A device by its number; NULL past the end. The first one is the default: the one that the environment variable
 * RLX_DEVICE names, else "cpu". Borrowed: lives as long as the environment. */
RLX_API const rlx_device_t *rlx_env_device(const rlx_env_t *env, size_t index);

/* A device by its spec: its name (rlx_device_name), with or without ":0" at the end, so "cpu" or "cpu:0". If spec is
 * NULL: the default device. Errors: RLX_E_UNAVAILABLE for an unknown name, "" included; the message lists the
 * devices. */
RLX_MUST rlx_status_t *rlx_env_find_device(const rlx_env_t *env, const char *spec, const rlx_device_t **out);

/* A report as JSON: "devices" (each with its capabilities), "threads" (how many a run may use, and their owner),
 * "environment" (the variables that were read, with their values). Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_env_report(const rlx_env_t *env, const char *what, rlx_blob_t **json);

/* Gives back to the allocator what is kept for later: freed buffers (rlx_env_create, "memory.cache"), and the contexts
 * of rlx_compiled_run and rlx_model_run that no run uses, with their arenas. Any thread may call it at any time. Does
 * nothing for NULL. */
RLX_API void rlx_env_trim(rlx_env_t *env);

/* One counter: "threads" (how many a run may use), "memory.kept" (bytes, see rlx_env_trim), "memory.<kind>.now" and
 * "memory.<kind>.peak" (bytes), and "memory.<kind>.allocations" (ever), where kind is tensor, arena, prepared or
 * scratch. Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_env_stat(const rlx_env_t *env, const char *key, int64_t *out);

/* The name that rlx_env_find_device takes, "cpu". Lives as long as the environment. */
RLX_API const char *rlx_device_name(const rlx_device_t *device);

/* A capability that is a number; rlx_env_report(env, "devices") lists them. Errors: RLX_E_NOT_FOUND (also for text). */
RLX_MUST rlx_status_t *rlx_device_get_i64(const rlx_device_t *device, const char *key, int64_t *out);

/* A capability that is text: "name", "kind" ("cpu"), "description", "isa" or another of rlx_env_report(env, "devices").
 * The text lives as long as the environment. Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_device_get_str(const rlx_device_t *device, const char *key, const char **out);

/* The report "dispatch" (rlx_compiled_report) of a graph as it is, without compiling it: for each node its path on this
 * device, and why kernels refused it. "expanded" here: the device has no kernel for the composite, and would run its
 * decomposition. A graph with unsupported nodes is not an error. options: as in rlx_compile, may be NULL. Errors: the
 * one that the graph holds, and those of rlx_compile for its options. */
RLX_MUST rlx_status_t *rlx_device_supports(const rlx_device_t *device, const rlx_graph_t *graph,
                                           const rlx_attrs_t *options, rlx_blob_t **json);

/* ---- tensors: dense, row-major, little-endian; at most 8 dims, each >= 0; rank 0 is a scalar ---- */

#define RLX_F32 1
#define RLX_F16 2
#define RLX_BF16 3
#define RLX_F64 4
#define RLX_I8 5
#define RLX_I16 6
#define RLX_I32 7
#define RLX_I64 8
#define RLX_U8 9
#define RLX_U16 10
#define RLX_U32 11
#define RLX_U64 12
#define RLX_BOOL 13   /* a byte: 0 is false, any other is true */
#define RLX_C64 14    /* two f32: real and imaginary part       */
#define RLX_C128 15   /* two f64                                */
#define RLX_F8E4M3 16 /* 4 bits of exponent, no infinity        */
#define RLX_F8E5M2 17 /* 5 bits of exponent                     */
/* Block-quantised dtypes are 64 and above: rlx_dtype_find("q4_0"). */

/* The name of a dtype, "bf16"; static. Returns NULL if there is no such dtype. */
RLX_API const char *rlx_dtype_name(rlx_dtype_t dtype);

/* The dtype of a name. Returns 0 if there is no such dtype. */
RLX_API rlx_dtype_t rlx_dtype_find(const char *name);

/* The bytes of that many consecutive elements. Returns 0 for an unknown dtype, for a number of elements that is not a
 * whole number of blocks, and where the bytes exceed PTRDIFF_MAX. */
RLX_API size_t rlx_dtype_bytes(rlx_dtype_t dtype, size_t elements);

/* A new tensor of zeros, on a device, or on the host if device is NULL. Errors: RLX_E_DTYPE, RLX_E_SHAPE (rank, a
 * negative dim, too many bytes), RLX_E_UNAVAILABLE. */
RLX_MUST rlx_status_t *rlx_tensor_create(rlx_env_t *env, const rlx_device_t *device, rlx_dtype_t dtype,
                                         const int64_t *dims, size_t rank, rlx_tensor_t **out);

/* A new host tensor with a copy of the data. bytes must be exactly what dtype and dims need. Errors: as
 * rlx_tensor_create; RLX_E_INVALID_ARGUMENT for a wrong number of bytes. */
RLX_MUST rlx_status_t *rlx_tensor_copy_from(rlx_env_t *env, rlx_dtype_t dtype, const int64_t *dims, size_t rank,
                                            const void *data, size_t bytes, rlx_tensor_t **out);

/* A tensor over the caller's memory, of any alignment. The memory is borrowed until the library calls done(user, data),
 * which may be later than the last release. If done is NULL, the memory must outlive the tensor and all that retains
 * it. On failure done is not called. Errors: as rlx_tensor_copy_from. */
RLX_MUST rlx_status_t *rlx_tensor_wrap(rlx_env_t *env, rlx_dtype_t dtype, const int64_t *dims, size_t rank, void *data,
                                       size_t bytes, rlx_free_fn done, void *user, rlx_tensor_t **out);

/* A read-only tensor over a part of a file, from a byte offset on. The file is mapped: a page is read when it is first
 * used, and the file must not change while the tensor lives. Errors: RLX_E_NOT_FOUND, RLX_E_DENIED, RLX_E_IO,
 * RLX_E_RANGE (the file ends before the tensor does), RLX_E_DTYPE, RLX_E_SHAPE. */
RLX_MUST rlx_status_t *rlx_tensor_map_file(rlx_env_t *env, rlx_dtype_t dtype, const int64_t *dims, size_t rank,
                                           const char *path, uint64_t offset, rlx_tensor_t **out);

/* Takes one more reference and returns its argument. */
RLX_API rlx_tensor_t *rlx_tensor_retain(rlx_tensor_t *tensor);

/* Gives one reference back; the last one frees the memory, or calls done. Does nothing for NULL. */
RLX_API void rlx_tensor_release(rlx_tensor_t *tensor);

/* RLX_F32 ...; 0 for NULL. */
RLX_API rlx_dtype_t rlx_tensor_dtype(const rlx_tensor_t *tensor);

/* Returns the rank and writes the first `capacity` dims. dims may be NULL if capacity is 0. */
RLX_API size_t rlx_tensor_shape(const rlx_tensor_t *tensor, int64_t *dims, size_t capacity);

/* The bytes of the data. */
RLX_API size_t rlx_tensor_bytes(const rlx_tensor_t *tensor);

/* The device that holds the data; NULL for the host. */
RLX_API const rlx_device_t *rlx_tensor_device(const rlx_tensor_t *tensor);

/* The bytes themselves; NULL if the host cannot address them or there are none. They live as long as the tensor.
 * Writing here while a run reads them is a data race. Writing to a frozen or mapped tensor is undefined. */
RLX_API void *rlx_tensor_data(const rlx_tensor_t *tensor);

/* Overwrites `bytes` bytes from a byte offset on. Errors: RLX_E_RANGE, RLX_E_STATE for a tensor that is read-only, or
 * frozen because it is a param, a constant or a weight. On failure nothing is written. */
RLX_MUST rlx_status_t *rlx_tensor_write(rlx_tensor_t *tensor, uint64_t offset, const void *data, size_t bytes);

/* Copies `bytes` bytes, from a byte offset on, to data. Errors: RLX_E_RANGE; nothing is written then. */
RLX_MUST rlx_status_t *rlx_tensor_read(const rlx_tensor_t *tensor, uint64_t offset, void *data, size_t bytes);

/* Copies bytes between two tensors on any two devices; the two ranges may overlap. Offsets and length are in bytes.
 * Errors: RLX_E_RANGE, RLX_E_STATE as in rlx_tensor_write. */
RLX_MUST rlx_status_t *rlx_tensor_copy(rlx_tensor_t *to, uint64_t to_offset, const rlx_tensor_t *from,
                                       uint64_t from_offset, uint64_t bytes);

/* A new host tensor with the elements converted as the op `cast` does: to a narrower float by rounding to nearest
 * even, to an integer by truncation and saturation, NaN to 0. Errors: RLX_E_DTYPE (no dtype; complex to real; from or
 * to a block-quantised dtype: the op `dequantize` reads one), RLX_E_STATE for a tensor of a call of a custom op that
 * has returned, or whose environment was released meanwhile, RLX_E_RANGE (a dim above 2^48). */
RLX_MUST rlx_status_t *rlx_tensor_cast(const rlx_tensor_t *tensor, rlx_dtype_t dtype, rlx_tensor_t **out);

/* The dtype, the shape and at most max_elements elements as text for people. The form of the text may change. */
RLX_MUST rlx_status_t *rlx_tensor_print(const rlx_tensor_t *tensor, size_t max_elements, rlx_blob_t **text);

/* ---- graphs ----
 * A call that adds to a graph returns 0 on error, and an op with an input of 0 returns 0. The graph keeps the first
 * error, so one check at the end suffices: rlx_graph_status. rlx_compile and rlx_model_create return that error too.
 * Below, "Errors, kept" lists what a graph keeps in this way. A value belongs to its graph: in any other graph, a
 * sub-graph included, it is RLX_E_INVALID_ARGUMENT. A dim is a number or a token of rlx_graph_dim. */

#define RLX_INPUT 1  /* given at every run                                        */
#define RLX_OUTPUT 2 /* what a run makes                                          */
#define RLX_PARAM 3  /* kept between runs: from weights, or by set_param          */
#define RLX_SYMBOL 4 /* a size that is open until a run                           */

/* A new, empty graph. name: for prints and messages, may be NULL. */
RLX_MUST rlx_status_t *rlx_graph_create(rlx_env_t *env, const char *name, rlx_graph_t **out);

/* Takes one more reference to the same graph (no copy) and returns its argument. */
RLX_API rlx_graph_t *rlx_graph_retain(rlx_graph_t *graph);

/* Gives one reference back. Does nothing for NULL. */
RLX_API void rlx_graph_release(rlx_graph_t *graph);

/* The first error met while the graph was built, as a new reference, or NULL. Its details name the op and the value. */
RLX_MUST rlx_status_t *rlx_graph_status(const rlx_graph_t *graph);

/* A token for an open size: a symbol "seq", whose range [min, max] is declared for this graph (max 0: no maximum),
 * or an expression "past + seq" with + - * / (rounding down), min, max and parentheses, for which min and max are 0.
 * The same text is the same token in every graph of an environment. A token is below -2^48. Returns INT64_MIN on error.
 * Errors, kept: RLX_E_INVALID_ARGUMENT for a syntax error, RLX_E_RANGE for a range that is empty. Declaring a symbol
 * again narrows its range. */
RLX_API int64_t rlx_graph_dim(rlx_graph_t *graph, const char *text, int64_t min, int64_t max);

/* Prints a dim (a number or a token) as text, cut to capacity bytes including the NUL. Returns the length of the whole
 * text without the NUL, or 0 (with the text "") if it is not a dim. */
RLX_API size_t rlx_graph_dim_text(const rlx_graph_t *graph, int64_t dim, char *text, size_t capacity);

/* Declares an input. Errors, kept: RLX_E_EXISTS if an input or param has this name, RLX_E_INVALID_ARGUMENT for an empty
 * one, RLX_E_DTYPE, RLX_E_SHAPE, RLX_E_RANGE (a dim that is not a token of this environment). */
RLX_API rlx_value_t rlx_graph_input(rlx_graph_t *graph, const char *name, rlx_dtype_t dtype, const int64_t *dims,
                                    size_t rank);

/* Declares a param, whose tensor comes from weights or rlx_compiled_set_param. Its dims are numbers. Errors as for
 * an input. */
RLX_API rlx_value_t rlx_graph_param(rlx_graph_t *graph, const char *name, rlx_dtype_t dtype, const int64_t *dims,
                                    size_t rank);

/* A constant with a copy of the data. bytes must be exactly what dtype and dims need. Errors, kept: RLX_E_DTYPE,
 * RLX_E_SHAPE, RLX_E_INVALID_ARGUMENT (bytes). */
RLX_API rlx_value_t rlx_graph_constant(rlx_graph_t *graph, rlx_dtype_t dtype, const int64_t *dims, size_t rank,
                                       const void *data, size_t bytes);

/* A constant without a copy. The tensor is retained, and frozen while the graph or anything made from it lives; until
 * then rlx_tensor_write to it is RLX_E_STATE. Errors, kept: RLX_E_STATE if the tensor is bound as an output of a
 * context. */
RLX_API rlx_value_t rlx_graph_tensor(rlx_graph_t *graph, rlx_tensor_t *tensor);

/* A constant of rank 0, converted from f64 as `cast` does. Errors, kept: RLX_E_DTYPE for a block-quantised dtype. */
RLX_API rlx_value_t rlx_graph_scalar(rlx_graph_t *graph, rlx_dtype_t dtype, double value);

/* Any op of rlx_schema(env, "ops"): its name, or name and attributes, "layer_norm eps=1e-5". attrs adds more
 * attributes and may be NULL; a key in both is an error. in: n_in values, RLX_ABSENT for an optional one that is
 * left out; trailing absent ones may be dropped. Returns the first output, whose shape and dtype follow from the
 * inputs. Errors, kept: RLX_E_NOT_FOUND (no such op), RLX_E_OPTION, RLX_E_DTYPE, RLX_E_SHAPE, RLX_E_RANGE (an axis),
 * RLX_E_INVALID_ARGUMENT (number of inputs). */
RLX_API rlx_value_t rlx_graph_op(rlx_graph_t *graph, const char *op, const rlx_value_t *in, size_t n_in,
                                 const rlx_attrs_t *attrs);

/* As rlx_graph_op, for several outputs: out receives the first n_out of them. Returns out[0]. More outputs than the
 * op has are RLX_E_INVALID_ARGUMENT, kept. */
RLX_API rlx_value_t rlx_graph_op_n(rlx_graph_t *graph, const char *op, const rlx_value_t *in, size_t n_in,
                                   const rlx_attrs_t *attrs, rlx_value_t *out, size_t n_out);

/* Makes a value an output. A value may be several outputs. Errors, kept: RLX_E_EXISTS if an output has this name,
 * RLX_E_INVALID_ARGUMENT (a name that is empty or not UTF-8, a value that failed or is of another graph). */
RLX_API void rlx_graph_output(rlx_graph_t *graph, const char *name, rlx_value_t value);

/* Names a value for messages and prints. Two values may have one name. Inside rlx_graph_push_name("layer.3"), "q"
 * becomes "layer.3/q". */
RLX_API void rlx_graph_set_name(rlx_graph_t *graph, rlx_value_t value, const char *name);

/* Names the ops that are added from now on, until rlx_graph_pop_name. After the name "layer.3" the first matmul is
 * "layer.3/matmul", the second "layer.3/matmul_2". Names nest: "layer.3" and then "attention" give
 * "layer.3/attention/matmul". Texts, reports, and errors of building, compiling and running show them. Names of inputs,
 * params, constants and outputs stay as given. Errors, kept: RLX_E_INVALID_ARGUMENT for an empty name. */
RLX_API void rlx_graph_push_name(rlx_graph_t *graph, const char *name);

/* Ends the innermost name of rlx_graph_push_name. Errors, kept: RLX_E_STATE if there is none. */
RLX_API void rlx_graph_pop_name(rlx_graph_t *graph);

/* An elementwise op of one input: "relu" "exp" "neg" ... This and the functions down to rlx_graph_softmax are short
 * forms of rlx_graph_op: the graph keeps the same errors. */
RLX_API rlx_value_t rlx_graph_unary(rlx_graph_t *graph, const char *op, rlx_value_t x);

/* An elementwise op of two inputs of one dtype: "add" "mul" "lt" ... Shapes are aligned at the right, and a literal dim
 * of 1 broadcasts. */
RLX_API rlx_value_t rlx_graph_binary(rlx_graph_t *graph, const char *op, rlx_value_t a, rlx_value_t b);

/* The matrix product: a[..., m, k] and b[..., k, n] give [..., m, n]; the leading dims broadcast. The dtype is that of
 * both operands, or i32 for 8-bit integers. */
RLX_API rlx_value_t rlx_graph_matmul(rlx_graph_t *graph, rlx_value_t a, rlx_value_t b);

/* The elements converted to another dtype, as by rlx_tensor_cast. */
RLX_API rlx_value_t rlx_graph_cast(rlx_graph_t *graph, rlx_value_t x, rlx_dtype_t dtype);

/* The same elements in other dims. One dim may be -1: it is computed from the number of elements. */
RLX_API rlx_value_t rlx_graph_reshape(rlx_graph_t *graph, rlx_value_t x, const int64_t *dims, size_t rank);

/* Axes in another order: dim i of the result is dim perm[i] of x; perm has the rank of x. */
RLX_API rlx_value_t rlx_graph_transpose(rlx_graph_t *graph, rlx_value_t x, const int64_t *perm, size_t rank);

/* Reduces x over n axes by "sum" "prod" "max" "min" "mean" "any" or "all". A negative axis counts from the end; axes
 * NULL and n 0 mean all axes. If keep_dims is 1, a reduced dim stays, as 1; if 0, it is removed. Errors, kept:
 * RLX_E_NOT_FOUND for another name. */
RLX_API rlx_value_t rlx_graph_reduce(rlx_graph_t *graph, const char *op, rlx_value_t x, const int64_t *axes, size_t n,
                                     int32_t keep_dims);

/* exp(x - max) divided by the sum of these along one axis, for floats: the shape and dtype of x. A negative axis counts
 * from the end. */
RLX_API rlx_value_t rlx_graph_softmax(rlx_graph_t *graph, rlx_value_t x, int64_t axis);

/* The number of inputs, outputs, params or symbols (kind: RLX_INPUT ...) of the graph; 0 for an unknown kind. */
RLX_API size_t rlx_graph_count(const rlx_graph_t *graph, int32_t kind);

/* The name of one of them, in the order of declaration; NULL past the end. Lives until the graph is released or
 * added to. */
RLX_API const char *rlx_graph_name(const rlx_graph_t *graph, int32_t kind, size_t index);

/* The value of an input, output or param by its name. Returns 0 if there is none, and for RLX_SYMBOL. */
RLX_API rlx_value_t rlx_graph_find(const rlx_graph_t *graph, int32_t kind, const char *name);

/* The dtype, the rank and the first `capacity` dims of a value. An open dim is a token; rlx_graph_dim_text prints it.
 * dims may be NULL if capacity is 0; dtype and rank may be NULL. Errors: RLX_E_INVALID_ARGUMENT for a value of another
 * graph. */
RLX_MUST rlx_status_t *rlx_graph_value_info(const rlx_graph_t *graph, rlx_value_t value, rlx_dtype_t *dtype,
                                            int64_t *dims, size_t capacity, size_t *rank);

/* The graph as text. format: "rlx", which rlx_import_memory reads back. Errors: RLX_E_NOT_FOUND for another format,
 * and the error that the graph holds. */
RLX_MUST rlx_status_t *rlx_graph_print(const rlx_graph_t *graph, const char *format, rlx_blob_t **out);

/* ---- files. They are mapped: one must not change while what was made from it lives; another may take its name ----
 * format: "onnx", "safetensors", "gguf", "rlx" (the text of rlx_graph_print), or NULL: the first bytes decide. */

/* Reads a file into a new graph and new weights, which the caller owns. Initialisers with at least 65 float, 8-bit or
 * block-quantised elements become params, with their tensors in *weights; all others, and scales and zero points of any
 * size, become constants. If weights is NULL, all initialisers become constants. If graph is NULL, only the weights are
 * read. An open size of the file becomes a symbol; one without a name becomes "<input>.<axis>". External data must lie
 * in the folder of the file. options, or NULL (rlx_schema(env, "options.import") lists them):
 *   params.min          how many elements an initialiser needs to become a param. Default: 65. With 1 every initialiser
 *                       becomes a param, scales and zero points included.
 *   dims.<symbol>       makes a size a number
 *   value.<input>       makes an input a constant; the input stays, but nothing reads it
 *   rank.<input>        the rank of an input where the file does not say it: required there
 *   sequence.<input>    the number of elements of an input that is a sequence: required there. Each element is an input
 *                       of its own, "<input>.0", "<input>.1" and so on, as are the elements of an output sequence.
 *   absent.<input>      true leaves out an input that is optional
 *   input.<initialiser> true makes an input of an initialiser that the file lists as an input too: every run must be
 *                       given it. Else it is a param or a constant, with the value of the file
 *   decode              true converts the tq1_0 and tq2_0 tensors of a gguf file to f32
 * Errors: RLX_E_NOT_FOUND, RLX_E_IO, RLX_E_DENIED (external data elsewhere), RLX_E_DATA (a damaged file),
 * RLX_E_UNSUPPORTED (an unknown op or version, named with its node; a file of an unknown format; elements of a type
 * that is not a dtype; a graph from safetensors or gguf, which hold none), RLX_E_OPTION, RLX_E_INVALID_ARGUMENT (both
 * graph and weights are NULL), and the errors of building a graph. */
RLX_MUST rlx_status_t *rlx_import_file(rlx_env_t *env, const char *format, const char *path, const rlx_attrs_t *options,
                                       rlx_graph_t **graph, rlx_weights_t **weights);

/* As rlx_import_file, from memory. The memory is borrowed until the library calls done(user, data): once, and at the
 * latest when the last object made from it is released. If done is NULL, the memory must outlive the graph, the weights
 * and all that retains them. On failure done is not called. External data is RLX_E_DENIED. */
RLX_MUST rlx_status_t *rlx_import_memory(rlx_env_t *env, const char *format, const void *data, size_t bytes,
                                         rlx_free_fn done, void *user, const rlx_attrs_t *options, rlx_graph_t **graph,
                                         rlx_weights_t **weights);

/* New, empty weights. */
RLX_MUST rlx_status_t *rlx_weights_create(rlx_env_t *env, rlx_weights_t **out);

/* Takes one more reference and returns its argument. */
RLX_API rlx_weights_t *rlx_weights_retain(rlx_weights_t *weights);

/* Gives one reference back. Does nothing for NULL. */
RLX_API void rlx_weights_release(rlx_weights_t *weights);

/* Adds a tensor, or replaces the one of that name. The tensor is retained and frozen. A program that is already
 * compiled uses it after rlx_compiled_set_params. Errors: RLX_E_INVALID_ARGUMENT (an empty name), RLX_E_STATE (the
 * tensor is bound as an output of a context). */
RLX_MUST rlx_status_t *rlx_weights_put(rlx_weights_t *weights, const char *name, rlx_tensor_t *tensor);

/* The tensor of a name, frozen, as a new reference. Where the bytes of a file are not aligned for their dtype, it is a
 * copy, made once. Errors: RLX_E_NOT_FOUND, RLX_E_NO_MEMORY, RLX_E_STATE (weights.drop has released its bytes). */
RLX_MUST rlx_status_t *rlx_weights_get(const rlx_weights_t *weights, const char *name, rlx_tensor_t **out);

/* The number of names. */
RLX_API size_t rlx_weights_count(const rlx_weights_t *weights);

/* A name, in the order of the first put; NULL past the end. Lives as long as the weights. */
RLX_API const char *rlx_weights_name(const rlx_weights_t *weights, size_t index);

/* A report as JSON: "metadata" (the entries that the file has beside its tensors), "memory" (bytes of originals and of
 * prepared forms). Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_weights_report(const rlx_weights_t *weights, const char *what, rlx_blob_t **json);

/* ---- compiled graphs: planned at upper sizes, run at any sizes up to them ----
 * Inputs, outputs and params are "slots", numbered from 0 in the order of declaration. */

/* Compiles a copy of the graph for a device; NULL means the default device. The tensors that weights (retained, may be
 * NULL) holds now become the params; names that the graph lacks are not an error. options, or NULL, are those of
 * rlx_schema(env, "options.compile"), among them:
 *   dims.<symbol>  the upper size of a symbol: required where the graph declares no maximum
 *   threads        the most threads of one run
 *   math           strict, close or fast: which rewrites are allowed
 *   io.convert     true converts inputs: f16 bf16 f32 f64 to each other, integers to wider ones that hold all their
 *                  numbers
 *   io.alias       a list of "output=input". The two slots share one memory: a run consumes the input and leaves the
 *                  output in its place, so a run writes only the rows that it appends to a cache, or the state that it
 *                  changes. Where the old value is still read after the new one is made, the plan copies; the report
 *                  "passes" says so. Binding one of the two slots binds both. Their memory has the slot's own dtype; it
 *                  is RLX_E_STATE if it cannot be written. After a failed run its contents are unspecified.
 *                  rlx_compiled_run and rlx_model_run copy, and leave their arguments as they are.
 * Errors: the one that the graph holds; RLX_E_INVALID_ARGUMENT for a graph without outputs or a param of a sub-graph
 * with the name of an input; RLX_E_SHAPE naming all symbols without an upper size; RLX_E_RANGE for an upper size
 * outside its declared range; RLX_E_UNSUPPORTED naming the nodes without a kernel, and why; RLX_E_OPTION; RLX_E_DTYPE
 * or RLX_E_SHAPE for a param; RLX_E_STATE for a weight whose bytes weights.drop has released; RLX_E_NO_MEMORY, with
 * the largest buffers, for a plan above memory.limit; RLX_E_NOT_FOUND (a rule of passes.expect that did not fire, the
 * folder of dump). For io.alias: RLX_E_NOT_FOUND (no such slot), RLX_E_DTYPE and RLX_E_SHAPE (the types differ, or
 * nothing bounds the size), RLX_E_OPTION (a slot is named twice). */
RLX_MUST rlx_status_t *rlx_compile(const rlx_graph_t *graph, rlx_weights_t *weights, const rlx_device_t *device,
                                   const rlx_attrs_t *options, rlx_compiled_t **out);

/* Takes one more reference and returns its argument. */
RLX_API rlx_compiled_t *rlx_compiled_retain(rlx_compiled_t *compiled);

/* Gives one reference back. Does nothing for NULL. */
RLX_API void rlx_compiled_release(rlx_compiled_t *compiled);

/* The device that it runs on; lives as long as the environment. */
RLX_API const rlx_device_t *rlx_compiled_device(const rlx_compiled_t *compiled);

/* The number of inputs, outputs, params or symbols (kind: RLX_INPUT ...); 0 for an unknown kind. */
RLX_API size_t rlx_compiled_count(const rlx_compiled_t *compiled, int32_t kind);

/* The name of a slot or symbol; NULL past the end. Lives as long as the program. */
RLX_API const char *rlx_compiled_name(const rlx_compiled_t *compiled, int32_t kind, size_t slot);

/* The slot of a name, or -1. */
RLX_API int64_t rlx_compiled_find(const rlx_compiled_t *compiled, int32_t kind, const char *name);

/* The dtype of a slot; 0 past the end and for RLX_SYMBOL. */
RLX_API rlx_dtype_t rlx_compiled_dtype(const rlx_compiled_t *compiled, int32_t kind, size_t slot);

/* Returns the rank of a slot and writes its first `capacity` dims, at the upper sizes. A symbol has rank 1: its
 * upper size. */
RLX_API size_t rlx_compiled_shape(const rlx_compiled_t *compiled, int32_t kind, size_t slot, int64_t *dims,
                                  size_t capacity);

/* Sets one param; the tensor is retained and frozen. What depends on it is computed here, on the caller's thread.
 * Runs in flight finish with the old values; later runs use the new ones. If a param is set meanwhile, by another
 * thread or by a callback of the host, the work is done again with it; so a callback must not set one at each call.
 * Errors: RLX_E_NOT_FOUND, RLX_E_DTYPE, RLX_E_SHAPE, RLX_E_STATE for the program of a model (use rlx_model_set_param);
 * nothing changes then. */
RLX_MUST rlx_status_t *rlx_compiled_set_param(rlx_compiled_t *compiled, const char *name, rlx_tensor_t *tensor);

/* Sets every param that the weights (retained) hold, all at once; otherwise as rlx_compiled_set_param. RLX_E_STATE if
 * weights.drop has released the bytes of one, unless this program holds what it made of such bytes. */
RLX_MUST rlx_status_t *rlx_compiled_set_params(rlx_compiled_t *compiled, rlx_weights_t *weights);

/* Runs once. Any number of threads may call it at once. in: all inputs, under the names in_names, or in the order of
 * their slots if in_names is NULL. out receives n_out new host tensors, which the caller owns: the outputs named by
 * out_names, or the first n_out outputs if that is NULL. On failure every out[i] is NULL. Errors:
 * RLX_E_INVALID_ARGUMENT (a missing, extra or repeated input; too many or repeated outputs), RLX_E_NOT_FOUND (a name),
 * RLX_E_DTYPE, RLX_E_SHAPE (a dim, or inputs that disagree about a size), RLX_E_RANGE (a size above the plan, an index
 * out of bounds), RLX_E_STATE (a param that is not set). */
RLX_MUST rlx_status_t *rlx_compiled_run(rlx_compiled_t *compiled, const char *const *in_names, rlx_tensor_t *const *in,
                                        size_t n_in, const char *const *out_names, rlx_tensor_t **out, size_t n_out);

/* A report. As JSON:
 *   dispatch  for each node its path, its kernel, and why other kernels refused it. Paths: native (a kernel), region
 *             (one kernel with other elementwise nodes), reference (plain loops), host (the CPU, for a device that has
 *             no kernel), view (nothing runs), prologue (ran when the params were set). "expanded": the composites
 *             that run as their decompositions
 *   passes    rules that fired, near misses, the time of each pass
 *   memory    the arena, its buffers and those of bodies with lifetime and offset, params, prepared forms
 *   bindings  dtype, shape and bytes of every slot
 * "text": the optimised graph in the format "rlx", and the plan in comments. Errors: RLX_E_NOT_FOUND. */
RLX_MUST rlx_status_t *rlx_compiled_report(const rlx_compiled_t *compiled, const char *what, rlx_blob_t **out);

/* ---- execution contexts: bind once, run many times ----
 * rlx_exec_run allocates nothing if every slot has its memory and no size has changed. Only custom ops, and ops without
 * a kernel of their own (sort along another axis than the last, fft, linear algebra ...), take working memory from
 * operator new. rlx_exec_submit makes a fence and what waits for others. kind: RLX_INPUT or RLX_OUTPUT. */

/* A new context with an arena. A slot without a binding gets memory of its own when it is first needed. Memory that
 * runs write (outputs, linked inputs) must not overlap other bound memory: binding it is RLX_E_INVALID_ARGUMENT then,
 * and RLX_E_STATE if it is frozen or read-only. options: there are none yet; may be NULL. Errors: RLX_E_OPTION. */
RLX_MUST rlx_status_t *rlx_exec_create(rlx_compiled_t *compiled, const rlx_attrs_t *options, rlx_exec_t **out);

/* Frees the context. Runs in flight hold what they use, and go on. Tensors that the context gave out live on. Does
 * nothing for NULL. */
RLX_API void rlx_exec_release(rlx_exec_t *exec);

/* From the next run on, reads the input from this tensor, or writes the output to it. The tensor is retained until the
 * slot is bound again. NULL goes back to the slot's own memory. The dims of inputs give the sizes of the run, and those
 * of an output must be exactly what the output has at these sizes, else the run returns RLX_E_SHAPE. If the run itself
 * decides the dims of an output, its tensor may have any dims of this rank. Its bytes must then suffice for the planned
 * dims or, where none are planned, for what the run finds. Errors: RLX_E_RANGE (slot), RLX_E_INVALID_ARGUMENT (kind),
 * RLX_E_DTYPE, RLX_E_SHAPE (the rank), RLX_E_STATE (an output that is read-only or frozen). */
RLX_MUST rlx_status_t *rlx_exec_bind(rlx_exec_t *exec, int32_t kind, size_t slot, rlx_tensor_t *tensor);

/* As rlx_exec_bind, over the caller's memory. It is borrowed until the slot is bound again, or the context is released
 * and its runs have ended. NULL goes back to the slot's own memory. Memory has no shape: the sizes come from other
 * inputs or from rlx_exec_set_dim, else they are the planned ones. bytes must be exact for a shape without open dims,
 * else at least what the run needs.
 *     rlx_exec_bind_ptr(exec, RLX_INPUT, 0, data, bytes);      x is f32[batch,3], data holds 2 rows
 *     rlx_exec_set_dim(exec, "batch", 2);
 *     rlx_exec_run(exec);
 * To bind memory with a shape, wrap it: rlx_tensor_wrap and rlx_exec_bind. Errors: RLX_E_RANGE (slot),
 * RLX_E_INVALID_ARGUMENT (kind, bytes). */
RLX_MUST rlx_status_t *rlx_exec_bind_ptr(rlx_exec_t *exec, int32_t kind, size_t slot, void *data, size_t bytes);

/* The memory of a slot, its own or the bound one, as a tensor (a new reference) of the slot's present shape: write an
 * input before a run, read an output after it. The tensor keeps the memory alive past the context. The present shape
 * is that of the last run or, as soon as a binding or rlx_exec_set_dim has changed a size, that of the next one, for
 * which linked slots count as exchanged: read outputs before that, and ask again after it. Errors: RLX_E_RANGE (slot),
 * RLX_E_INVALID_ARGUMENT (kind). */
RLX_MUST rlx_status_t *rlx_exec_tensor(rlx_exec_t *exec, int32_t kind, size_t slot, rlx_tensor_t **out);

/* Sets a size that no bound input gives, for later runs. The initial size is the planned one. Where the bound inputs
 * allow several sizes, as f32[n/2] of 3 rows allows 6 and 7, it must be one of them, else the run returns RLX_E_SHAPE;
 * if none was set, the least is taken. Errors: RLX_E_NOT_FOUND, RLX_E_RANGE (below the declared minimum or above the
 * planned size), RLX_E_INVALID_ARGUMENT for a size that the run finds or that an `if` chooses. */
RLX_MUST rlx_status_t *rlx_exec_set_dim(rlx_exec_t *exec, const char *symbol, int64_t size);

/* Carries state from run to run without a copy: at the start of every run but the first after this call, the output
 * slot and the input slot exchange their memory, and the input takes the sizes of the output. Between two runs the
 * output holds what the last run wrote. Waits for runs in flight. Errors: RLX_E_RANGE (slot), RLX_E_DTYPE, RLX_E_SHAPE
 * (rank), RLX_E_EXISTS (a slot is linked already). A run that has to exchange the two slots returns RLX_E_STATE if one
 * of them is bound and the other is not. Binding the output keeps the state: what it holds is copied to the input
 * (after the runs in flight), whose bound memory must have room for it. Binding the input begins a new state. */
RLX_MUST rlx_status_t *rlx_exec_link(rlx_exec_t *exec, size_t output, size_t input);

/* Later runs, until the next call of this, need to deliver only these n output slots, and may leave the others
 * unwritten. NULL and 0 mean all. Errors: RLX_E_RANGE. */
RLX_MUST rlx_status_t *rlx_exec_want(rlx_exec_t *exec, const size_t *outputs, size_t n);

/* Sets options of later runs. There are none yet. Errors: RLX_E_OPTION. */
RLX_MUST rlx_status_t *rlx_exec_set(rlx_exec_t *exec, const rlx_attrs_t *options);

/* Runs once, after the runs submitted before, and waits for the end. Errors: RLX_E_SHAPE, RLX_E_RANGE and RLX_E_STATE
 * as in rlx_compiled_run; RLX_E_SHAPE for a bound output of other dims; RLX_E_INVALID_ARGUMENT for memory that is too
 * small, RLX_E_RANGE if only the run finds that it is; RLX_E_CANCELLED. After a failure the contents of the outputs are
 * unspecified, links stand as before the run, and the context can be used again. */
RLX_MUST rlx_status_t *rlx_exec_run(rlx_exec_t *exec);

/* Runs without waiting. The run begins when all n_wait fences are done and all earlier runs of this context have ended;
 * runs of several contexts overlap. Errors of bindings and sizes are returned here, as by rlx_exec_run. *done (a new
 * reference) tells when the run has ended, and how. If a fence in wait or the run before this one fails, the run ends
 * with RLX_E_ABORTED, whatever else it waits for. Links then stand as the failed run found them. If a slot of a link
 * was bound after the failed run was submitted, the link keeps what is bound now, and its state is lost. The context
 * may be used and released meanwhile: rlx_exec_bind, rlx_exec_set_dim and others act on later runs. Where data decide a
 * size, a call that needs this size waits for the run. Bound memory stays in use until the fence is done. With the env
 * option threads=0, or with threads of the host, the run has ended when this returns, unless a fence in wait is still
 * open: then the thread that waits for the run executes it. */
RLX_MUST rlx_status_t *rlx_exec_submit(rlx_exec_t *exec, rlx_fence_t *const *wait, size_t n_wait, rlx_fence_t **done);

/* Stops the runs that were begun or submitted before, between two steps: they end with RLX_E_CANCELLED. Later runs are
 * not cancelled; one that is submitted before these have ended stands behind them, and ends with RLX_E_ABORTED. Any
 * thread may call it, while another thread uses the context too, and so may a signal handler. A run that waits for a
 * fence ends once the fence is signalled. */
RLX_API void rlx_exec_cancel(rlx_exec_t *exec);

/* A report, as JSON. "sizes": for each symbol its size, as the slots are bound now or as the last run found it, and its
 * upper size. Waits for runs in flight. Errors: RLX_E_NOT_FOUND, RLX_E_SHAPE and RLX_E_RANGE for sizes with which no
 * run could begin. */
RLX_MUST rlx_status_t *rlx_exec_report(rlx_exec_t *exec, const char *what, rlx_blob_t **json);

/* ---- fences: whether work is done. All functions may be called from any thread ---- */

/* A new fence, which the caller signals with rlx_fence_signal. */
RLX_MUST rlx_status_t *rlx_fence_create(rlx_env_t *env, rlx_fence_t **out);

/* Takes one more reference and returns its argument. */
RLX_API rlx_fence_t *rlx_fence_retain(rlx_fence_t *fence);

/* Gives one reference back. The last one does not stop a run; a fence of the caller that was never signalled ends with
 * RLX_E_ABORTED. Does nothing for NULL. */
RLX_API void rlx_fence_release(rlx_fence_t *fence);

/* Marks a fence of rlx_fence_create as done. result becomes its status; NULL means success. The call takes the caller's
 * reference to result, on failure too. Errors: RLX_E_STATE for the fence of a run, and for one that is already done. */
RLX_MUST rlx_status_t *rlx_fence_signal(rlx_fence_t *fence, rlx_status_t *result);

/* Waits until one of n fences is done, or, if `all` is not 0, all of them. *which (may be NULL) is the index of the
 * first one that is done. timeout_ns is in nanoseconds; 0 does not wait, UINT64_MAX waits for ever. The calling thread
 * may execute the work. rlx_fence_result says how it ended. The fences may be of several environments. With n = 0 it
 * returns at once. Errors: RLX_E_TIMEOUT. */
RLX_MUST rlx_status_t *rlx_fence_wait(rlx_fence_t *const *fences, size_t n, int32_t all, uint64_t timeout_ns,
                                      size_t *which);

/* The status of the work, as a new reference: NULL on success, and while the work goes on. *done (may be NULL) is 1 if
 * it has ended, else 0. Never waits. */
RLX_MUST rlx_status_t *rlx_fence_result(const rlx_fence_t *fence, int32_t *done);

/* A file descriptor that becomes readable when the work is done, for poll and its like. The caller closes it. On
 * failure *fd is -1. Errors: RLX_E_IO, RLX_E_UNSUPPORTED for a run that no thread of the library will begin
 * (threads=0). */
RLX_MUST rlx_status_t *rlx_fence_export_fd(rlx_fence_t *fence, int32_t *fd);

/* ---- models: one graph at all sizes, compiled on demand ---- */

/* A model of a graph (copied) and its weights (retained, may be NULL). Compiles nothing yet: a param becomes the tensor
 * that the weights hold when the model first compiles with it, and stays so on every device until rlx_model_set_param.
 * policy, or NULL: any option of rlx_compile but weights.drop, used for every plan, and
 *   cache.capacity    the most plans that the model keeps for a device. Default: 8
 *   buckets.<symbol>  the sizes to plan for: a list, or pow2 for powers of two
 *   chain             the devices to try in turn
 *   allow, deny       the only devices to use; the devices not to use
 * Without a chain a run takes the default device if allow and deny permit it, else the first device of allow.
 * "reference" and "null" run only if they are named. Errors: the one that the graph holds; RLX_E_OPTION, also for an
 * unknown device, symbol or pass; RLX_E_RANGE for a dims.<symbol> outside of the symbol's range; those of rlx_compile
 * for io.alias; RLX_E_INVALID_ARGUMENT for a graph without outputs. */
RLX_MUST rlx_status_t *rlx_model_create(const rlx_graph_t *graph, rlx_weights_t *weights, const rlx_attrs_t *policy,
                                        rlx_model_t **out);

/* rlx_import_file and rlx_model_create in one call. policy: the options of both; dims.<symbol> is that of rlx_compile.
 * Where values of an input decide the structure of the graph (the axes of a reduction, say), or the file does not say
 * the rank of an input, the model imports the file again for each set of values, of at most 64 elements, and ranks. It
 * keeps at most cache.capacity of these graphs. rlx_model_graph then has only the inputs and params, and rlx_model_get
 * is RLX_E_UNSUPPORTED. If a rank is open, rlx_graph_print, and rlx_graph_value_info of that input, are
 * RLX_E_UNSUPPORTED too. This call maps the file and all its external data, so no later import looks for them by name;
 * data that cannot be opened in this call are looked for again when an import needs them, in the folder that holds the
 * file at this call. Errors: of both. */
RLX_MUST rlx_status_t *rlx_model_open(rlx_env_t *env, const char *path, const rlx_attrs_t *policy, rlx_model_t **out);

/* Takes one more reference and returns its argument. */
RLX_API rlx_model_t *rlx_model_retain(rlx_model_t *model);

/* Gives one reference back. Does nothing for NULL. */
RLX_API void rlx_model_release(rlx_model_t *model);

/* The graph, to ask for names, dtypes and shapes. Borrowed: lives as long as the model; it must not be changed. */
RLX_API const rlx_graph_t *rlx_model_graph(const rlx_model_t *model);

/* Sets one param in every plan, now and later; otherwise as rlx_compiled_set_param. */
RLX_MUST rlx_status_t *rlx_model_set_param(rlx_model_t *model, const char *name, rlx_tensor_t *tensor);

/* Sets another policy (as in rlx_model_create), or with NULL keeps the present one. Either way the model forgets its
 * plans and keeps its params. Runs in flight, and programs that rlx_model_get gave, are not touched. Errors:
 * RLX_E_OPTION and RLX_E_RANGE as rlx_model_create; nothing changes then. */
RLX_MUST rlx_status_t *rlx_model_set_policy(rlx_model_t *model, const rlx_attrs_t *policy);

/* The device that rlx_model_run would use for this `device`: the first that can run the graph. Compiles for it if there
 * is no program yet. Borrowed from the env. Errors: those of rlx_compile. */
RLX_MUST rlx_status_t *rlx_model_resolve(rlx_model_t *model, const char *device, const rlx_device_t **out);

/* A program planned for at least these n sizes, as a new reference: the smallest existing one that fits, else a new
 * one. device: as in rlx_model_run. Errors: RLX_E_NOT_FOUND (symbol), RLX_E_INVALID_ARGUMENT (a symbol twice),
 * RLX_E_RANGE (a size outside its range, or above dims.<symbol> of the policy), RLX_E_SHAPE for a symbol whose size is
 * given neither here nor by the policy, and has no maximum, and those of rlx_compile. */
RLX_MUST rlx_status_t *rlx_model_get(rlx_model_t *model, const char *device, const char *const *symbols,
                                     const int64_t *sizes, size_t n, rlx_compiled_t **out);

/* Runs once, at the sizes of the inputs. Any number of threads may call it at once. Compiles if no plan fits. device: a
 * name, a list of names to try in turn ("vulkan,cpu"), or NULL for the devices of the policy. Names, inputs and
 * outputs: as in rlx_compiled_run. *ran_on (may be NULL) is the device that was used; it lives as long as the
 * environment. If the sizes break a condition of the graph, or memory does not suffice for a range of sizes, the model
 * builds the graph again for exactly these sizes (a size of 1 then broadcasts), and the run fails only if that fails
 * too. The model keeps at most cache.capacity such graphs. Errors: those of rlx_compiled_run and rlx_compile; a size is
 * RLX_E_RANGE only outside its declared range; without a declared maximum, above 2^30 - 1 where a plan needs one. */
RLX_MUST rlx_status_t *rlx_model_run(rlx_model_t *model, const char *device, const char *const *in_names,
                                     rlx_tensor_t *const *in, size_t n_in, const char *const *out_names,
                                     rlx_tensor_t **out, size_t n_out, const rlx_device_t **ran_on);

/* Measures every device of the env that can run the model on these inputs (as in rlx_model_run): one run to warm up,
 * then `runs` measured ones. json: for each device its name, and median_seconds and best_seconds, or why it failed.
 * Errors: RLX_E_INVALID_ARGUMENT (runs below 1), RLX_E_CANCELLED (the host's progress stopped it). */
RLX_MUST rlx_status_t *rlx_model_benchmark(rlx_model_t *model, const char *const *in_names, rlx_tensor_t *const *in,
                                           size_t n_in, int32_t runs, rlx_blob_t **json);

/* A report: as JSON "policy", "cache" (the plans, with their sizes), "bindings" (names, dtypes and symbolic shapes),
 * "devices" (which can run it, and why the others cannot), "special" (graphs made for one set of sizes or values: how
 * many, for which inputs, and why no general graph exists); "text": the graph in the format "rlx". Errors:
 * RLX_E_NOT_FOUND, RLX_E_UNSUPPORTED ("devices": only a run knows the graph; "text": a rank is open). */
RLX_MUST rlx_status_t *rlx_model_report(const rlx_model_t *model, const char *what, rlx_blob_t **json);

/* ---- custom ops: the host defines an op, and its graphs use it: "custom name=vendor.scale by=3" ---- */

/* What rlx_env_register_op takes. A transparent struct, as rlx_host_t is.
 *   flags    0
 *   user     passed to the callbacks
 *   name     any text, "vendor.scale"; copied
 *   infer    says the dtype and the shape of every output (rlx_opcall_set_shape), by those of the inputs and by the
 *            attributes. The same question gets the same answer, another one is RLX_E_CALLBACK. An open size is a
 *            token below -2^48, as in rlx_graph_dim: it can be copied, not computed with
 *   run      writes the outputs, which do not overlap the inputs. The CPU calls it, whatever device runs the program;
 *            a call whose inputs are constants is not folded
 *   destroy  called once, when the environment and everything that uses the op are gone; may be NULL
 *   body     the op as a graph, which is copied; then infer and run are not called and may be NULL. The graph has no
 *            params, and each symbol of its sizes is by itself an axis of an input: a call takes the symbol's size
 *            from that axis, so one body serves many sizes. The inputs of a call must then have the dims of the body's
 *            inputs, and the ranges of its symbols hold. The op takes no attributes, and runs as if the nodes of the
 *            body stood in its place
 * Callbacks may be called any number of times, on any thread, on several at once; the library holds no lock then. They
 * may not use the graph that is being built, or the model, program or context that calls them. They return RLX_CB_OK,
 * RLX_CB_STOP (the call of the library returns RLX_E_CANCELLED), or what rlx_opcall_fail returned. Any other value is
 * RLX_E_CALLBACK, and so is an exception. */
typedef struct rlx_op_def {
  uint32_t struct_size;
  uint32_t flags;
  void *user;
  const char *name;
  int32_t (*infer)(void *user, rlx_opcall_t *call);
  int32_t (*run)(void *user, rlx_opcall_t *call);
  void (*destroy)(void *user);
  const rlx_graph_t *body;
} rlx_op_def_t;

/* Zeroes the first struct_size bytes of *def and sets the member struct_size: rlx_op_def_init(&def, sizeof def). Does
 * nothing for NULL, or for a size that cannot be right (below 4 or above 4096). */
RLX_API void rlx_op_def_init(rlx_op_def_t *def, size_t struct_size);

/* Registers an op, for good. Graphs that are built or imported from then on may use it as the op "custom", by its name.
 * Its other attributes are free: numbers, strings and lists of them, except for "name" and "effects". With effects=true
 * a call is never left out, merged with an equal one, or moved before or behind another one with effects; else the
 * library may do so. A graph keeps the ops that it uses. On failure destroy is not called. Any thread may call it.
 * Errors: RLX_E_EXISTS for a name that is taken, RLX_E_VERSION (struct_size, flags), RLX_E_INVALID_ARGUMENT (no name;
 * neither a body nor both infer and run; a body of another environment, or without inputs or outputs),
 * RLX_E_UNSUPPORTED for a body with params, with sizes that its contents decide, of more than 2^20 nodes with those of
 * the bodies that it uses, or with more graphs in it than rlx_attrs_set_graph takes, RLX_E_SHAPE for a body with a
 * symbol that is not an axis of an input, and the error that the body holds. */
RLX_MUST rlx_status_t *rlx_env_register_op(rlx_env_t *env, const rlx_op_def_t *def);

/* The number of inputs or outputs (kind: RLX_INPUT or RLX_OUTPUT) of a call; 0 for any other kind. In infer, which says
 * what outputs there are, they are counted up to the last one that has been given a shape. */
RLX_API size_t rlx_opcall_count(const rlx_opcall_t *call, int32_t kind);

/* An input or output of a call, for rlx_tensor_dtype, _shape, _bytes, _data and their like; NULL past the end, for
 * another kind, and in infer for an output without a shape. Borrowed: lives as long as the callback runs.
 *   in run    a host tensor: dense and row-major, aligned for its elements. An input must not be written;
 *             rlx_tensor_write and _copy refuse it (RLX_E_STATE)
 *   in infer  has a dtype and a shape, in which a dim may be a token, but no bytes: rlx_tensor_bytes is 0 and
 *             rlx_tensor_data is NULL
 * Its bytes belong to the run. So to bind it, or to make it a param, a constant, a weight or the input of another run,
 * is RLX_E_STATE: copy it for that. The host may retain the handle. Once the callback has returned, it still has its
 * dtype and its shape, but a call that needs its bytes is RLX_E_STATE. Other threads of the host must have stopped
 * using the bytes by then. */
RLX_API rlx_tensor_t *rlx_opcall_tensor(const rlx_opcall_t *call, int32_t kind, size_t index);

/* The free attributes, for rlx_attrs_get_i64s and its like. Borrowed: lives as long as the callback runs. */
RLX_API const rlx_attrs_t *rlx_opcall_attrs(const rlx_opcall_t *call);

/* In infer: the dtype and the shape of an output, numbers or tokens of the inputs. Outputs may come in any order; one
 * that comes again replaces the first. Errors: RLX_E_STATE in run, RLX_E_RANGE (64 outputs at most; an unknown token),
 * RLX_E_DTYPE, RLX_E_SHAPE (rank, a negative size). */
RLX_MUST rlx_status_t *rlx_opcall_set_shape(rlx_opcall_t *call, size_t output, rlx_dtype_t dtype, const int64_t *dims,
                                            size_t rank);

/* Says why a callback fails: the call of the library returns this code and message, and the name of the op. Returns
 * what the callback should return. RLX_OK becomes RLX_E_CALLBACK, a number that is not a code RLX_E_UNKNOWN. The
 * message is copied; NULL means "". The first failure of a call stays. */
RLX_API int32_t rlx_opcall_fail(rlx_opcall_t *call, rlx_code_t code, const char *message);

/* Calls fn(arg, i) once for each i below n, on the threads of the environment or of the host's pool, in any order, and
 * returns when all are done. In infer, within fn, and where no thread is free, it calls fn here, one after another. fn
 * may use the call, but not set a shape. If fn throws, calls that have not begun are left out, and the call fails as if
 * the callback had thrown. If fn is NULL or n is above PTRDIFF_MAX, it fails with RLX_E_INVALID_ARGUMENT. */
RLX_API void rlx_opcall_parallel_for(rlx_opcall_t *call, size_t n, rlx_index_fn fn, void *arg);

/* ---- bytes ---- */

/* The bytes. They live as long as the blob. Never NULL: "" for a NULL blob. */
RLX_API const void *rlx_blob_data(const rlx_blob_t *blob);

/* The number of bytes, without the final 0. */
RLX_API size_t rlx_blob_size(const rlx_blob_t *blob);

/* Takes one more reference and returns its argument. */
RLX_API rlx_blob_t *rlx_blob_retain(rlx_blob_t *blob);

/* Gives one reference back. Does nothing for NULL. */
RLX_API void rlx_blob_release(rlx_blob_t *blob);

#ifdef __cplusplus
}
#endif
#endif
