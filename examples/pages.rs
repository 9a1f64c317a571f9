//! Writes the manual's pages and the shells' completions into a folder: `cargo run --example pages -- DIR`.

use std::path::PathBuf;

use clap::CommandFactory;
use clap_complete::{Shell, generate_to};
use steadyhand::cli::Cli;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| std::io::Error::other("name a folder to write to"))?;
    for kind in ["man", "completions"] {
        std::fs::create_dir_all(folder.join(kind))?;
    }
    clap_mangen::generate_to(Cli::command(), folder.join("man"))?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(
            shell,
            &mut Cli::command(),
            "steadyhand",
            folder.join("completions"),
        )?;
    }
    Ok(())
}
