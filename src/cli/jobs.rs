//! `jobs`: what a node was asked, planned and did, whether it runs or not.

use super::{AtArgs, Exit, Options, operate, show};
use node::control_socket::Verb;
use node::{job_list, open, state_folder};

pub(super) async fn run(
    node: &Options,
    id: Option<String>,
    json: bool,
    at: &AtArgs,
) -> anyhow::Result<Exit> {
    if operate::is_meant(node, at) {
        return operate::verb(at, Verb::Jobs { id, json }).await;
    }
    let folder = state_folder::place(node, &open::file(node)?)?;
    let told = job_list::told(&folder, id.as_deref(), json);
    show::line(&told.text);
    Ok(if told.done { Exit::Done } else { Exit::Refused })
}
