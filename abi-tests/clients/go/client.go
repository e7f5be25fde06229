// SPDX-License-Identifier: Apache-2.0

// The client of ../README.md in Go, by cgo.
package main

/*
#cgo pkg-config: rlx
#include <rlx.h>
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"math"
	"os"
	"strings"
	"unsafe"
)

// check turns a status into an error, and releases it.
func check(status *C.rlx_status_t) error {
	if status == nil {
		return nil
	}
	defer C.rlx_status_release(status)
	name, words := C.rlx_code_name(C.rlx_status_code(status)), C.rlx_status_message(status)
	return fmt.Errorf("%s: %s", C.GoString(name), C.GoString(words))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type client struct {
	env   *C.rlx_env_t
	model *C.rlx_model_t
	graph *C.rlx_graph_t
}

func (c *client) names(kind C.int32_t) (names []string) {
	for i := C.size_t(0); i < C.rlx_graph_count(c.graph, kind); i++ {
		names = append(names, C.GoString(C.rlx_graph_name(c.graph, kind, i)))
	}
	return names
}

func (c *client) info(kind C.int32_t, name string) (C.rlx_dtype_t, []C.int64_t) {
	var dtype C.rlx_dtype_t
	var rank C.size_t
	dims := make([]C.int64_t, 8)
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	value := C.rlx_graph_find(c.graph, kind, text)
	must(check(C.rlx_graph_value_info(c.graph, value, &dtype, &dims[0], 8, &rank)))
	return dtype, dims[:rank]
}

func (c *client) describe(kind C.int32_t, word string) {
	for _, name := range c.names(kind) {
		dtype, dims := c.info(kind, name)
		var shape []string
		for _, dim := range dims {
			text := make([]C.char, 128)
			C.rlx_graph_dim_text(c.graph, dim, &text[0], 128)
			shape = append(shape, C.GoString(&text[0]))
		}
		fmt.Printf("%s %s: %s [%s]\n", word, name, C.GoString(C.rlx_dtype_name(dtype)), strings.Join(shape, ","))
	}
}

type output struct {
	shape  []int64
	values []float32
}

// taken copies a tensor into Go memory and releases it.
func taken(tensor *C.rlx_tensor_t) output {
	defer C.rlx_tensor_release(tensor)
	dims := make([]C.int64_t, 8)
	rank := C.rlx_tensor_shape(tensor, &dims[0], 8)
	data := unsafe.Slice((*float32)(C.rlx_tensor_data(tensor)), C.rlx_tensor_bytes(tensor)/4)
	result := output{values: append([]float32(nil), data...)}
	for _, dim := range dims[:rank] {
		result.shape = append(result.shape, int64(dim))
	}
	return result
}

func (c *client) run(dtype C.rlx_dtype_t, dims []C.int64_t, values []float32) ([]output, error) {
	var in *C.rlx_tensor_t
	bytes := C.size_t(4 * len(values))
	err := check(C.rlx_tensor_copy_from(c.env, dtype, &dims[0], C.size_t(len(dims)), unsafe.Pointer(&values[0]), bytes, &in))
	if err != nil {
		return nil, err
	}
	defer C.rlx_tensor_release(in)
	out := make([]*C.rlx_tensor_t, len(c.names(C.RLX_OUTPUT)))
	err = check(C.rlx_model_run(c.model, nil, nil, &in, 1, nil, &out[0], C.size_t(len(out)), nil))
	if err != nil {
		return nil, err
	}
	var outputs []output
	for _, tensor := range out {
		outputs = append(outputs, taken(tensor))
	}
	return outputs, nil
}

func (c *client) runAt(size int64) {
	dtype, dims := c.info(C.RLX_INPUT, c.names(C.RLX_INPUT)[0])
	count := C.int64_t(1)
	for i := range dims {
		if dims[i] < 0 {
			dims[i] = C.int64_t(size)
		}
		count *= dims[i]
	}
	values := make([]float32, count)
	for i := range values {
		values[i] = float32(i*37%101) / 128
	}
	outputs, err := c.run(dtype, dims, values)
	must(err)
	fmt.Printf("size %d\n", size)
	for i, name := range c.names(C.RLX_OUTPUT) {
		outputs[i].print(name)
	}
}

func (o output) print(name string) {
	shape := strings.ReplaceAll(strings.Trim(fmt.Sprint(o.shape), "[]"), " ", ",")
	var sum uint32
	for _, value := range o.values {
		sum += math.Float32bits(value)
	}
	fmt.Printf("  %s [%s] bits %d largest", name, shape, sum)
	row, best := 1, 0
	if len(o.shape) > 0 {
		row = int(o.shape[len(o.shape)-1])
	}
	for i, value := range o.values {
		if i%row == 0 || value > o.values[best] {
			best = i
		}
		if i%row == row-1 {
			fmt.Printf(" %d", best%row)
		}
	}
	fmt.Println()
}

func (c *client) misbuild() error {
	name := func(text string) *C.char { return C.CString(text) } // freed with the process
	var graph *C.rlx_graph_t
	must(check(C.rlx_graph_create(c.env, name("built"), &graph)))
	defer C.rlx_graph_release(graph)
	aDims, bDims := []C.int64_t{2, 3}, []C.int64_t{5, 4}
	a := C.rlx_graph_input(graph, name("a"), C.RLX_F32, &aDims[0], 2)
	b := C.rlx_graph_input(graph, name("b"), C.RLX_F32, &bDims[0], 2)
	C.rlx_graph_push_name(graph, name("layer.0"))
	C.rlx_graph_matmul(graph, a, b)
	C.rlx_graph_pop_name(graph)
	return check(C.rlx_graph_status(graph))
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: client MODEL")
		os.Exit(2)
	}
	path := C.CString(os.Args[1])
	defer C.free(unsafe.Pointer(path))
	fmt.Printf("librlx %s\n", C.GoString(C.rlx_version_string()))
	var c client
	must(check(C.rlx_env_create(nil, nil, &c.env)))
	must(check(C.rlx_model_open(c.env, path, nil, &c.model)))
	c.graph = C.rlx_model_graph(c.model)
	c.describe(C.RLX_INPUT, "input")
	c.describe(C.RLX_OUTPUT, "output")
	c.runAt(1)
	c.runAt(3)
	if _, err := c.run(C.RLX_F32, []C.int64_t{2, 3}, make([]float32, 6)); err != nil {
		fmt.Println("error", err)
	}
	if err := c.misbuild(); err != nil {
		fmt.Println("error", err)
	}
	C.rlx_model_release(c.model)
	C.rlx_env_release(c.env)
}
