// SPDX-License-Identifier: Apache-2.0
// Finds the installed library by pkg-config and makes the bindings from its header, as it is.
use std::{env, path::PathBuf};

fn main() {
    let rlx = pkg_config::probe_library("rlx").expect("pkg-config knows rlx");
    let header = rlx.include_paths.iter().map(|folder| folder.join("rlx.h")).find(|path| path.exists());
    bindgen::Builder::default()
        .header(header.expect("rlx.h is installed").display().to_string())
        .allowlist_function("rlx_.*")
        .allowlist_var("RLX_.*")
        .default_macro_constant_type(bindgen::MacroTypeVariation::Signed)
        .generate()
        .expect("bindgen reads rlx.h")
        .write_to_file(PathBuf::from(env::var("OUT_DIR").unwrap()).join("rlx.rs"))
        .expect("the bindings can be written");
}
