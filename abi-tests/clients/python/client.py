# SPDX-License-Identifier: Apache-2.0
"""The client of ../README.md in Python, by ctypes alone.

usage: client.py librlx.so MODEL
"""
import ctypes as c
import struct
import sys

F32, INPUT, OUTPUT = 1, 1, 2
HANDLE, NAMES, COUNT = c.c_void_p, c.POINTER(c.c_char_p), c.c_size_t
DIMS, OUT, SIZE_OUT = c.POINTER(c.c_int64), c.POINTER(c.c_void_p), c.POINTER(c.c_size_t)
SIGNATURES = {  # result, then parameters; a handle is a void *
    "rlx_version_string": (c.c_char_p,),
    "rlx_code_name": (c.c_char_p, c.c_int32),
    "rlx_status_code": (c.c_int32, HANDLE),
    "rlx_status_message": (c.c_char_p, HANDLE),
    "rlx_status_release": (None, HANDLE),
    "rlx_env_create": (HANDLE, HANDLE, HANDLE, OUT),
    "rlx_env_release": (None, HANDLE),
    "rlx_dtype_name": (c.c_char_p, c.c_int32),
    "rlx_tensor_copy_from": (HANDLE, HANDLE, c.c_int32, DIMS, COUNT, c.c_void_p, COUNT, OUT),
    "rlx_tensor_shape": (COUNT, HANDLE, DIMS, COUNT),
    "rlx_tensor_bytes": (COUNT, HANDLE),
    "rlx_tensor_data": (c.c_void_p, HANDLE),
    "rlx_tensor_release": (None, HANDLE),
    "rlx_graph_create": (HANDLE, HANDLE, c.c_char_p, OUT),
    "rlx_graph_input": (c.c_uint64, HANDLE, c.c_char_p, c.c_int32, DIMS, COUNT),
    "rlx_graph_matmul": (c.c_uint64, HANDLE, c.c_uint64, c.c_uint64),
    "rlx_graph_push_name": (None, HANDLE, c.c_char_p),
    "rlx_graph_pop_name": (None, HANDLE),
    "rlx_graph_status": (HANDLE, HANDLE),
    "rlx_graph_release": (None, HANDLE),
    "rlx_graph_count": (COUNT, HANDLE, c.c_int32),
    "rlx_graph_name": (c.c_char_p, HANDLE, c.c_int32, COUNT),
    "rlx_graph_find": (c.c_uint64, HANDLE, c.c_int32, c.c_char_p),
    "rlx_graph_value_info": (HANDLE, HANDLE, c.c_uint64, c.POINTER(c.c_int32), DIMS, COUNT, SIZE_OUT),
    "rlx_graph_dim_text": (COUNT, HANDLE, c.c_int64, c.c_char_p, COUNT),
    "rlx_model_open": (HANDLE, HANDLE, c.c_char_p, HANDLE, OUT),
    "rlx_model_graph": (HANDLE, HANDLE),
    "rlx_model_run": (HANDLE, HANDLE, c.c_char_p, NAMES, OUT, COUNT, NAMES, OUT, COUNT, OUT),
    "rlx_model_release": (None, HANDLE),
}


class Error(Exception):
    pass


class Library:
    """The functions by name; those that return a status raise Error and are called through `check`."""

    def __init__(self, path):
        library = c.CDLL(path)
        for name, (result, *parameters) in SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, parameters
            setattr(self, name, function)

    def check(self, status):
        if status:
            name, words = self.rlx_code_name(self.rlx_status_code(status)), self.rlx_status_message(status)
            self.rlx_status_release(status)
            raise Error(f"{name.decode()}: {words.decode()}")


class Client:
    def __init__(self, library, model_path):
        self.rlx = library
        self.env, self.model = c.c_void_p(), c.c_void_p()
        library.check(library.rlx_env_create(None, None, c.byref(self.env)))
        library.check(library.rlx_model_open(self.env, model_path.encode(), None, c.byref(self.model)))
        self.graph = library.rlx_model_graph(self.model)

    def names(self, kind):
        return [self.rlx.rlx_graph_name(self.graph, kind, i) for i in range(self.rlx.rlx_graph_count(self.graph, kind))]

    def info(self, kind, name):
        dtype, rank, dims = c.c_int32(), c.c_size_t(), (c.c_int64 * 8)()
        value = self.rlx.rlx_graph_find(self.graph, kind, name)
        self.rlx.check(self.rlx.rlx_graph_value_info(self.graph, value, c.byref(dtype), dims, 8, c.byref(rank)))
        return dtype.value, dims[: rank.value]

    def dim_text(self, dim):
        text = c.create_string_buffer(128)
        self.rlx.rlx_graph_dim_text(self.graph, dim, text, len(text))
        return text.value.decode()

    def describe(self, kind, word):
        for name in self.names(kind):
            dtype, dims = self.info(kind, name)
            shape = ",".join(map(self.dim_text, dims))
            print(f"{word} {name.decode()}: {self.rlx.rlx_dtype_name(dtype).decode()} [{shape}]")

    def run(self, dtype, dims, values):
        """[(shape, bytes)] of every output."""
        tensor, n = c.c_void_p(), len(self.names(OUTPUT))
        data, out = struct.pack(f"={len(values)}f", *values), (c.c_void_p * n)()
        self.rlx.check(self.rlx.rlx_tensor_copy_from(self.env, dtype, (c.c_int64 * len(dims))(*dims), len(dims), data,
                                                     len(data), c.byref(tensor)))
        try:
            self.rlx.check(self.rlx.rlx_model_run(self.model, None, None, c.byref(tensor), 1, None, out, n, None))
        finally:
            self.rlx.rlx_tensor_release(tensor)
        return [self.taken(output) for output in out]

    def taken(self, tensor):
        shape = (c.c_int64 * 8)()
        rank = self.rlx.rlx_tensor_shape(tensor, shape, 8)
        data = c.string_at(self.rlx.rlx_tensor_data(tensor), self.rlx.rlx_tensor_bytes(tensor))
        self.rlx.rlx_tensor_release(tensor)
        return shape[:rank], data

    def run_at(self, size):
        dtype, dims = self.info(INPUT, self.names(INPUT)[0])
        dims = [size if dim < 0 else dim for dim in dims]
        count = 1
        for dim in dims:
            count *= dim
        print(f"size {size}")
        for name, (shape, data) in zip(self.names(OUTPUT), self.run(dtype, dims, [i * 37 % 101 / 128 for i in range(count)])):
            bits, values = struct.unpack(f"={len(data) // 4}I", data), struct.unpack(f"={len(data) // 4}f", data)
            row = shape[-1] if shape else 1
            rows = [values[i : i + row] for i in range(0, len(values), row)]
            largest = " ".join(str(r.index(max(r))) for r in rows)
            print(f"  {name.decode()} [{','.join(map(str, shape))}] bits {sum(bits) % 2**32} largest {largest}")

    def misbuild(self):
        rlx, graph = self.rlx, c.c_void_p()
        rlx.check(rlx.rlx_graph_create(self.env, b"built", c.byref(graph)))
        a = rlx.rlx_graph_input(graph, b"a", F32, (c.c_int64 * 2)(2, 3), 2)
        b = rlx.rlx_graph_input(graph, b"b", F32, (c.c_int64 * 2)(5, 4), 2)
        rlx.rlx_graph_push_name(graph, b"layer.0")
        rlx.rlx_graph_matmul(graph, a, b)
        rlx.rlx_graph_pop_name(graph)
        status = rlx.rlx_graph_status(graph)
        rlx.rlx_graph_release(graph)
        rlx.check(status)

    def close(self):
        self.rlx.rlx_model_release(self.model)
        self.rlx.rlx_env_release(self.env)


def main(library_path, model_path):
    library = Library(library_path)
    print(f"librlx {library.rlx_version_string().decode()}")
    client = Client(library, model_path)
    client.describe(INPUT, "input")
    client.describe(OUTPUT, "output")
    client.run_at(1)
    client.run_at(3)
    try:
        client.run(F32, [2, 3], [0.0] * 6)
    except Error as error:
        print(f"error {error}")
    try:
        client.misbuild()
    except Error as error:
        print(f"error {error}")
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
