//! `calibrate`: collects, judges, accepts and undoes touches, and exchanges calibrations with other programs.

mod arguments;
mod camera;
mod exchange;
pub(super) mod first_line;
mod guided_touches;
mod history;
mod joints;
mod operator_input;
mod place;
mod play;
mod pose_sketch;
mod proposal;
pub(super) mod teach;
mod touch;
mod write;

pub(super) use arguments::CalibrateCommand;

use super::{AtArgs, ExitStatus, NodeOptions};
use place::CalibrationFolders;

pub(super) async fn run(node: &NodeOptions, what: CalibrateCommand) -> anyhow::Result<ExitStatus> {
    let folders = async |at: &AtArgs| CalibrationFolders::find(node, at).await;
    match what {
        CalibrateCommand::Joints(args) => joints::run(node, &args).await,
        CalibrateCommand::Touch(args) => {
            let folders = CalibrationFolders::find_here(node, &args.here).await?;
            folders.touch(&args)
        }
        CalibrateCommand::Camera(args) => folders(&args.at).await?.camera(&args).await,
        CalibrateCommand::Play(args) => play::run(node, &args).await,
        CalibrateCommand::Show { out, json, at } => folders(&at).await?.show(out.as_deref(), json),
        CalibrateCommand::Undo { touch, at } => {
            let target = folders(&at).await?;
            match touch {
                None => target.undo(),
                Some(number) => target.drop_place_of(usize::from(number)),
            }
        }
        CalibrateCommand::Discard(at) => folders(&at).await?.discard(),
        CalibrateCommand::Accept { change, at } => folders(&at).await?.accept(change.overridden),
        CalibrateCommand::History(at) => folders(&at).await?.history(),
        CalibrateCommand::Diff { number, other, at } => folders(&at).await?.diff(number, other),
        CalibrateCommand::Restore {
            number,
            before,
            arm,
            change,
            at,
        } => {
            let folders = folders(&at).await?;
            folders.restore(number, before, arm.as_deref(), change.overridden)
        }
        CalibrateCommand::Import {
            file,
            arm,
            accept,
            change,
            at,
        } => {
            let (folders, model) = folders(&at).await?.named(&arm)?;
            folders.import(&file, &model, accept, change.overridden)
        }
        CalibrateCommand::Export { arm, at, .. } => {
            let (folders, model) = folders(&at).await?.named(&arm)?;
            folders.export(&model)
        }
    }
}
