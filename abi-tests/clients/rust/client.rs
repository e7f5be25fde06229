// SPDX-License-Identifier: Apache-2.0
//! The client of ../README.md in Rust, over bindings that bindgen makes from the installed header.
use std::ffi::{CStr, CString};
use std::{env, process, ptr};

#[allow(non_camel_case_types, non_upper_case_globals, dead_code)]
mod rlx {
    include!(concat!(env!("OUT_DIR"), "/rlx.rs"));
}

fn text(pointer: *const std::os::raw::c_char) -> String {
    unsafe { CStr::from_ptr(pointer) }.to_str().expect("text is UTF-8").to_owned()
}

/// Turns a status into a result, and releases it.
fn check(status: *mut rlx::rlx_status_t) -> Result<(), String> {
    if status.is_null() {
        return Ok(());
    }
    unsafe {
        let words = format!(
            "{}: {}",
            text(rlx::rlx_code_name(rlx::rlx_status_code(status))),
            text(rlx::rlx_status_message(status))
        );
        rlx::rlx_status_release(status);
        Err(words)
    }
}

struct Client {
    env: *mut rlx::rlx_env_t,
    model: *mut rlx::rlx_model_t,
    graph: *const rlx::rlx_graph_t,
}

struct Output {
    shape: Vec<i64>,
    values: Vec<f32>,
}

impl Client {
    fn open(path: &str) -> Result<Client, String> {
        let path = CString::new(path).map_err(|error| error.to_string())?;
        let mut client = Client { env: ptr::null_mut(), model: ptr::null_mut(), graph: ptr::null() };
        unsafe {
            check(rlx::rlx_env_create(ptr::null(), ptr::null(), &mut client.env))?;
            check(rlx::rlx_model_open(client.env, path.as_ptr(), ptr::null(), &mut client.model))?;
            client.graph = rlx::rlx_model_graph(client.model);
        }
        Ok(client)
    }

    fn names(&self, kind: i32) -> Vec<String> {
        let count = unsafe { rlx::rlx_graph_count(self.graph, kind) };
        (0..count).map(|i| text(unsafe { rlx::rlx_graph_name(self.graph, kind, i) })).collect()
    }

    fn info(&self, kind: i32, name: &str) -> Result<(i32, Vec<i64>), String> {
        let name = CString::new(name).map_err(|error| error.to_string())?;
        let (mut dtype, mut rank, mut dims) = (0, 0, [0i64; 8]);
        unsafe {
            let value = rlx::rlx_graph_find(self.graph, kind, name.as_ptr());
            check(rlx::rlx_graph_value_info(self.graph, value, &mut dtype, dims.as_mut_ptr(), 8, &mut rank))?;
        }
        Ok((dtype, dims[..rank].to_vec()))
    }

    fn dim_text(&self, dim: i64) -> String {
        let mut buffer = [0; 128];
        unsafe { rlx::rlx_graph_dim_text(self.graph, dim, buffer.as_mut_ptr(), buffer.len()) };
        text(buffer.as_ptr())
    }

    fn describe(&self, kind: i32, word: &str) -> Result<(), String> {
        for name in self.names(kind) {
            let (dtype, dims) = self.info(kind, &name)?;
            let shape: Vec<String> = dims.iter().map(|dim| self.dim_text(*dim)).collect();
            println!("{word} {name}: {} [{}]", text(unsafe { rlx::rlx_dtype_name(dtype) }), shape.join(","));
        }
        Ok(())
    }

    fn run(&self, dtype: i32, dims: &[i64], values: &[f32]) -> Result<Vec<Output>, String> {
        let mut input = ptr::null_mut();
        let mut out = vec![ptr::null_mut(); self.names(rlx::RLX_OUTPUT).len()];
        unsafe {
            check(rlx::rlx_tensor_copy_from(
                self.env, dtype, dims.as_ptr(), dims.len(), values.as_ptr().cast(), 4 * values.len(), &mut input,
            ))?;
            let status = rlx::rlx_model_run(
                self.model, ptr::null(), ptr::null(), &input, 1, ptr::null(), out.as_mut_ptr(), out.len(), ptr::null_mut(),
            );
            rlx::rlx_tensor_release(input);
            check(status)?;
        }
        Ok(out.into_iter().map(taken).collect())
    }

    fn run_at(&self, size: i64) -> Result<(), String> {
        let (dtype, mut dims) = self.info(rlx::RLX_INPUT, &self.names(rlx::RLX_INPUT)[0])?;
        for dim in dims.iter_mut().filter(|dim| **dim < 0) {
            *dim = size;
        }
        let values: Vec<f32> = (0..dims.iter().product()).map(|i| (i * 37 % 101) as f32 / 128.0).collect();
        let outputs = self.run(dtype, &dims, &values)?;
        println!("size {size}");
        for (name, output) in self.names(rlx::RLX_OUTPUT).iter().zip(outputs) {
            output.print(name);
        }
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        unsafe {
            rlx::rlx_model_release(self.model);
            rlx::rlx_env_release(self.env);
        }
    }
}

/// Copies a tensor and releases it.
fn taken(tensor: *mut rlx::rlx_tensor_t) -> Output {
    unsafe {
        let mut shape = vec![0; rlx::rlx_tensor_shape(tensor, ptr::null_mut(), 0)];
        rlx::rlx_tensor_shape(tensor, shape.as_mut_ptr(), shape.len());
        let data = rlx::rlx_tensor_data(tensor) as *const f32;
        let values = std::slice::from_raw_parts(data, rlx::rlx_tensor_bytes(tensor) / 4).to_vec();
        rlx::rlx_tensor_release(tensor);
        Output { shape, values }
    }
}

impl Output {
    fn print(&self, name: &str) {
        let shape: Vec<String> = self.shape.iter().map(i64::to_string).collect();
        let sum = self.values.iter().fold(0u32, |sum, value| sum.wrapping_add(value.to_bits()));
        print!("  {name} [{}] bits {sum} largest", shape.join(","));
        for row in self.values.chunks(self.shape.last().map_or(1, |size| *size as usize)) {
            let best = (1..row.len()).fold(0, |best, i| if row[i] > row[best] { i } else { best });
            print!(" {best}");
        }
        println!();
    }
}

fn misbuild(env: *mut rlx::rlx_env_t) -> Result<(), String> {
    let name = |text: &str| CString::new(text).expect("no NUL");
    let mut graph = ptr::null_mut();
    unsafe {
        check(rlx::rlx_graph_create(env, name("built").as_ptr(), &mut graph))?;
        let a = rlx::rlx_graph_input(graph, name("a").as_ptr(), rlx::RLX_F32, [2, 3].as_ptr(), 2);
        let b = rlx::rlx_graph_input(graph, name("b").as_ptr(), rlx::RLX_F32, [5, 4].as_ptr(), 2);
        rlx::rlx_graph_push_name(graph, name("layer.0").as_ptr());
        rlx::rlx_graph_matmul(graph, a, b);
        rlx::rlx_graph_pop_name(graph);
        let status = rlx::rlx_graph_status(graph);
        rlx::rlx_graph_release(graph);
        check(status)
    }
}

fn main_or(path: &str) -> Result<(), String> {
    println!("librlx {}", text(unsafe { rlx::rlx_version_string() }));
    let client = Client::open(path)?;
    client.describe(rlx::RLX_INPUT, "input")?;
    client.describe(rlx::RLX_OUTPUT, "output")?;
    client.run_at(1)?;
    client.run_at(3)?;
    if let Err(error) = client.run(rlx::RLX_F32, &[2, 3], &[0.0; 6]) {
        println!("error {error}");
    }
    if let Err(error) = misbuild(client.env) {
        println!("error {error}");
    }
    Ok(())
}

fn main() {
    let path = env::args().nth(1).unwrap_or_default();
    if let Err(error) = main_or(&path) {
        eprintln!("{error}");
        process::exit(1);
    }
}
