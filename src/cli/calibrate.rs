//! `calibrate`: touches collected, judged, accepted, taken back; calibrations of others read and written.

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

use super::{ExitStatus, NodeOptions};
use place::CalibrationFolders;

pub(super) async fn run(node: &NodeOptions, what: CalibrateCommand) -> anyhow::Result<ExitStatus> {
    match what {
        CalibrateCommand::Joints(args) => joints::run(node, &args).await,
        CalibrateCommand::Touch(args) => CalibrationFolders::find(node, &args.here.at)
            .await?
            .touch(&args),
        CalibrateCommand::Camera(args) => {
            let place = CalibrationFolders::find(node, &args.at).await?;
            place.camera(&args).await
        }
        CalibrateCommand::Play(args) => play::run(node, &args).await,
        CalibrateCommand::Show { out, json, at } => CalibrationFolders::find(node, &at)
            .await?
            .show(out.as_deref(), json),
        CalibrateCommand::Undo { touch, at } => {
            let place = CalibrationFolders::find(node, &at).await?;
            match touch {
                None => place.undo(),
                Some(number) => place.drop_place_of(usize::from(number)),
            }
        }
        CalibrateCommand::Discard(at) => {
            let place = CalibrationFolders::find(node, &at).await?;
            place.discard()
        }
        CalibrateCommand::Accept { change, at } => CalibrationFolders::find(node, &at)
            .await?
            .accept(change.overridden),
        CalibrateCommand::History(at) => CalibrationFolders::find(node, &at).await?.history(),
        CalibrateCommand::Diff { number, other, at } => CalibrationFolders::find(node, &at)
            .await?
            .diff(number, other),
        CalibrateCommand::Restore {
            number,
            before,
            change,
            at,
        } => {
            let place = CalibrationFolders::find(node, &at).await?;
            place.restore(number, before, change.overridden)
        }
        CalibrateCommand::Import {
            file,
            arm,
            accept,
            change,
            at,
        } => {
            let place = CalibrationFolders::find(node, &at).await?;
            place.import(&file, &arm, accept, change.overridden)
        }
        CalibrateCommand::Export { arm, at, .. } => {
            CalibrationFolders::find(node, &at).await?.export(&arm)
        }
    }
}
