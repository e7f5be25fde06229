# SPDX-License-Identifier: Apache-2.0
"""Writes calls.inc: for every function of rlx.h one C function that calls it with chosen arguments.

Each parameter has a list of choices, the first of which is right; arguments.c walks them, one and two wrong ones at a
time. A parameter that no rule here knows is an error, so that a new function brings its own choices.

usage: generate_calls.py rlx.h calls.inc
"""
import re
import sys

import header

BAD_TEXT = ["NULL", '""', '"\\xff\\xfe"', "long_text"]
WHAT = ["ops", "op.add", "op.nothing", "options.env", "options.compile", "options.model", "dispatch", "passes", "memory",
        "bindings", "text", "metadata", "devices", "threads", "environment", "cache", "policy", "nothing"]
TEXT = {  # by function, or else by name of the parameter: the texts that mean something there
    "rlx_graph_dim": ["seq", "batch * 2", "a + ", "((((", "9223372036854775807 * 9"],
    "rlx_attrs_create": ["axis=1", "axis=-1 eps=1e-5 perm=[0,2,1]", "axis=1 axis=2", "perm=[", "a==b", '\\"'],
    "rlx_feature": ["format.onnx"],
    "op": ["add", "relu", "softmax axis=1", "sum", "concat axis=0", "nothing", "add axis=", "if", "while", "scan"],
    "key": ["axis", "memory", "kind", "op", "memory.host.peak", "nothing"],
    "what": WHAT,
    "name": ["x", "w", "y", "f32", "layer.3", "nothing"],
    "format": ["rlx", "onnx", "safetensors", "nothing"],
    "path": ["/nonexistent/file", "/", "/dev/null"],
    "spec": ["cpu", "vulkan:9"],
    "device": ["cpu", "vulkan:9"],
    "symbol": ["batch", "nothing"],
    "value": ["gelu"],
    "text": [],
    "message": ["driver"],
}
NUMBERS = {  # by function and name of the parameter, or else by name, or else by type
    "timeout_ns": ["0", "1", "100000"],  # nobody signals a fence of these calls
    "rlx_import_memory bytes": ["model_bytes", "0", "1", "24", "SIZE_MAX"],
    "rlx_graph_value_info value": ["graph_x", "x", "RLX_ABSENT", "0", "999", "UINT64_MAX"],
    "rank": ["2", "0", "8", "9", "33", "SIZE_MAX"],
    "bytes": ["24", "0", "1", "25", "SIZE_MAX"],
    "capacity": ["8", "0", "1", "SIZE_MAX"],
    "n": ["2", "0", "5", "SIZE_MAX", "SIZE_MAX / 8"],
    "n_in": ["1", "0", "2", "5", "SIZE_MAX", "SIZE_MAX / 8"],
    "n_wait": ["1", "0", "2", "SIZE_MAX", "SIZE_MAX / 8"],
    "n_out": ["1", "0", "5", "SIZE_MAX", "SIZE_MAX / 8"],
    "elements": ["32", "0", "33", "SIZE_MAX"],
    "max_elements": ["4", "0", "SIZE_MAX"],
    "index": ["0", "1", "2147483648u", "SIZE_MAX"],
    "slot": ["0", "1", "2147483648u", "SIZE_MAX"],
    "output": ["0", "1", "SIZE_MAX"],
    "input": ["0", "1", "SIZE_MAX"],
    "struct_size": ["sizeof(rlx_host_t)", "0", "3", "4", "4096", "4097", "SIZE_MAX"],
    "kind": ["RLX_INPUT", "RLX_OUTPUT", "RLX_PARAM", "RLX_SYMBOL", "0", "-1", "INT32_MAX", "INT32_MIN"],
    "all": ["0", "1", "7", "INT32_MIN"],
    "keep_dims": ["0", "1", "7", "INT32_MIN"],
    "rlx_dtype_t": ["RLX_F32", "RLX_I64", "RLX_BOOL", "RLX_C128", "RLX_F8E4M3", "64", "78", "0", "-1", "12345", "INT32_MAX",
                    "INT32_MIN"],
    "rlx_code_t": ["RLX_E_SHAPE", "0", "-1", "INT32_MAX", "INT32_MIN"],
    "int64_t": ["1", "0", "-1", "2", "4", "(int64_t)1 << 40", "-((int64_t)1 << 50)", "INT64_MAX", "INT64_MIN"],
    "uint64_t": ["0", "1", "24", "UINT64_MAX", "UINT64_MAX - 8"],
    "runs": ["1", "0", "-1", "INT32_MIN"],
    "double": ["0.5", "NAN", "INFINITY", "1e300"],
    "rlx_value_t": ["x", "RLX_ABSENT", "0", "999", "UINT64_MAX"],
}
ARRAYS = {  # by type: pointers to blocks on the heap, so that a sanitizer sees the first byte past them
    "const int64_t *": ["dims_23", "dims_zero", "dims_negative", "dims_huge", "dims_open"],
    "const double *": ["doubles"],
    "const size_t *": ["slots_zero", "slots_bad"],
    "const char *const *": ["names_x", "names_y", "names_batch", "names_null"],
    "const rlx_value_t *": ["values_x", "values_zero", "values_bad"],
    "rlx_tensor_t *const *": ["tensors_good", "tensors_null"],
    "rlx_fence_t *const *": ["fences_done", "fences_null"],
    "const void *": ["model_text", "zeros"],
    "void *": ["scratch"],
    "int64_t *": ["out_i64s"],
    "double *": ["out_f64s"],
    "char *": ["out_text"],
}
SHARED = {  # handles that every call may use
    "rlx_env_t": "env", "rlx_device_t": "device", "rlx_tensor_t": "tensor", "rlx_graph_t": "graph",
    "rlx_weights_t": "weights", "rlx_compiled_t": "compiled", "rlx_exec_t": "exec", "rlx_model_t": "model",
    "rlx_blob_t": "blob", "rlx_status_t": "status", "rlx_attrs_t": "attrs",
    "rlx_fence_t": "fence",
}
FRESH = {"rlx_graph_t": "new_graph()", "rlx_attrs_t": "new_attrs()"}  # what a call may change: one for each call
OUT_ARRAYS = {("rlx_tensor_t **", "n_out"), ("rlx_value_t *", "n_out")}
MAX_OUT = 8


def text_choices(function, name):
    good = TEXT.get(function, TEXT.get(name))
    if good is None:
        raise SystemExit(f"{function}: no texts are known for '{name}': add them to TEXT")
    return [f'"{text}"' for text in good] + BAD_TEXT


def handle_of(type_):
    match = re.fullmatch(r"(const )?(rlx_\w+_t) \*", type_)
    return match[2] if match and match[2] in SHARED else None


def consumes(function, handle):
    takes = ("rlx_status_take", "rlx_fence_signal")
    return function.name.endswith("_release") or function.name in takes and handle == "rlx_status_t"


def consumed_choice(handle):
    if handle in FRESH and handle != "rlx_graph_t":
        return FRESH[handle]
    return "new_exec()" if handle == "rlx_exec_t" else f"{handle[:-2]}_retain({SHARED[handle]})"


def choices(function, parameter):
    """The C expressions that may stand for this parameter, the right one first."""
    type_, name = parameter.type, parameter.name
    handle = handle_of(type_)
    if handle:
        if consumes(function, handle):
            return [consumed_choice(handle), "NULL"]
        if handle == "rlx_attrs_t" and type_.startswith("const") and name != "attrs":
            return ["NULL", "attrs", "attrs_unknown", "attrs_failed"]
        if handle in FRESH and not type_.startswith("const"):
            return [f"own_{name}", "NULL"]
        if handle == "rlx_attrs_t":
            return ["NULL", "attrs", "attrs_unknown", "attrs_failed"] if "attrs_get" not in function.name else ["attrs", "NULL"]
        return [SHARED[handle], "NULL"] + (["tensor_other"] if handle == "rlx_tensor_t" else [])
    if type_ == "const char *":
        return text_choices(function.name, name)
    if "rlx_host_t *" in type_:
        return ["host_block", "NULL"] if not type_.startswith("const") else ["NULL"] + [f"hosts[{i}]" for i in range(8)]
    if "rlx_op_def_t *" in type_:
        return ["op_def_block", "NULL"] if not type_.startswith("const") else ["NULL"] + [f"op_defs[{i}]" for i in range(6)]
    if "rlx_opcall_t *" in type_:
        return ["NULL"]  # there is none outside of a callback: tests/unit/capi/custom_call.cpp has the rest
    if type_ in ARRAYS:
        return ARRAYS[type_] + ["NULL"]
    if type_ == "rlx_free_fn":
        return ["NULL", "count_free"]
    if type_ == "rlx_index_fn":
        return ["NULL"]
    if "*" not in type_:
        for key in (f"{function.name} {name}", name, type_):
            if key in NUMBERS:
                return NUMBERS[key]
    raise SystemExit(f"{function.name}: no choices are known for '{type_} {name}': add them to this script")


def is_out(function, parameter):
    if parameter.type in ("int64_t *", "double *") and parameter.name in ("dims", "values"):
        return False
    if parameter.type in ("size_t *", "int32_t *") or re.fullmatch(r"(const )?\w+ \*\*", parameter.type):
        return True
    return parameter.type in ("int64_t *", "rlx_dtype_t *") or (parameter.type == "rlx_value_t *")


def out_length(function, parameter):
    """The parameter that says how long an output array is, or None for a single output."""
    names = [p.name for p in function.parameters]
    return "n_out" if "n_out" in names and (parameter.type, "n_out") in OUT_ARRAYS and parameter.name == "out" else None


class Call:
    """One generated function; `lines` is its body."""

    def __init__(self, function):
        self.function = function
        self.counts = []
        self.lines = []

    def emit(self):
        f = self.function
        owned = [(handle_of(p.type), p.name) for p in f.parameters
                 if handle_of(p.type) in FRESH and not p.type.startswith("const") and not consumes(f, handle_of(p.type))]
        for handle, name in owned:
            self.lines.append(f"{handle} *own_{name} = {FRESH[handle]};")
        for index, p in enumerate(f.parameters):
            self.argument(index, p)
        self.lines.append("before_call();")
        self.result(f"{f.name}({', '.join(p.name + '_' for p in f.parameters)})")
        for handle, name in owned:
            self.lines.append(f"{handle[:-2]}_release(own_{name});")
        body = "\n".join("  " + line for line in self.lines)
        return f"static void call_{f.name}(const unsigned char *pick) {{\n  (void)pick;\n{body}\n}}\n"

    def argument(self, index, p):
        if is_out(self.function, p):
            base = p.type[:-1].strip()
            self.counts.append(2)
            length = MAX_OUT if out_length(self.function, p) else 1
            self.lines.append(f"{base}{'' if base.endswith('*') else ' '}{p.name}_block[{length}];")
            self.lines.append(f"memset((void *){p.name}_block, 0xa5, sizeof {p.name}_block);")
            self.lines.append(f"{p.type}{p.name}_ = pick[{index}] == 0 ? {p.name}_block : NULL;")
            return
        options = choices(self.function, p)
        self.counts.append(len(options))
        spaced = p.type if p.type.endswith("*") else p.type + " "
        expression = options[-1]
        for choice in range(len(options) - 2, -1, -1):
            expression = f"pick[{index}] == {choice} ? {options[choice]} : {expression}"
        self.lines.append(f"{spaced}{p.name}_ = {expression};")

    def result(self, call):
        f = self.function
        outs = [p for p in f.parameters if is_out(f, p)]
        if f.result == "void":
            self.lines += [f"{call};", f'after_call("{f.name}");']
        elif f.result == "rlx_status_t *" and not f.name.startswith("rlx_status_"):
            self.lines.append(f"rlx_status_t *result = {call};")
            self.lines.append(f'int ok = after_status("{f.name}", result);')
            self.lines.append("(void)ok;")
            for p in outs:
                self.check_out(p)
        else:
            spaced = f.result if f.result.endswith("*") else f.result + " "
            self.lines += [f"{spaced}result = {call};", f'after_call("{f.name}");']
            if f.result == "const char *":
                self.lines.append("read_text(result);")
            elif f.name.endswith("_retain"):
                self.lines.append(f"{f.name[:-7]}_release(result);")
            elif f.name == "rlx_status_create":
                self.lines.append("rlx_status_release(result);")
            self.lines.append("(void)result;")

    def check_out(self, p):
        name = self.function.name
        handle = re.fullmatch(r"(rlx_\w+_t) \*\*", p.type)
        length = out_length(self.function, p)
        if p.name == "fd":  # -1, as 0 is one
            self.lines.append("if (fd_ && *fd_ >= 0) close(*fd_);")
            return
        count = f"{length}_" if length else "1"
        self.lines.append(f'if (!ok && {p.name}_) must_be_zero("{name}", "{p.name}", {p.name}_block, sizeof *{p.name}_block, {count});')
        if length:
            self.lines.append(f'if (ok && {length}_ > {MAX_OUT}) fail("{name}", "took an absurd {length}");')
        if handle:
            self.lines.append(f"if (ok && {p.name}_)")
            self.lines.append(f"  for (size_t i = 0; i < {count}; i++) {handle[1][:-2]}_release({p.name}_block[i]);")
        elif "char **" in p.type:
            self.lines.append(f"if (ok && {p.name}_) read_text({p.name}_block[0]);")


def main(header_path, out_path):
    bodies, rows = [], []
    for function in header.read(header_path):
        call = Call(function)
        bodies.append(call.emit())
        counts = ", ".join(map(str, call.counts)) or "1"
        status = int(function.must_use)
        rows.append(f'    {{"{function.name}", call_{function.name}, {status}, {len(call.counts)}, {{{counts}}}}},')
    with open(out_path, "w", encoding="utf-8") as file:
        file.write("/* Made by generate_calls.py from rlx.h. */\n" + "\n".join(bodies))
        file.write("\nstatic const struct call kCalls[] = {\n" + "\n".join(rows) + "\n};\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
