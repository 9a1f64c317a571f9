//! The picture of the sheet before a simulated arm. Painting one takes far longer than everything else that `sense` does, so
//! concurrent callers share one picture.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{AttachedArm, pictures};
use base::lock::MutexExt;
use base::units::ClockInstant;
use scene::Scene;

/// Time for which a picture is reused while the arm draws: ten pictures a second, like a camera. Finished ink is never missing.
const SHOWN_FOR: Duration = Duration::from_millis(100);

/// The last picture of the sheet that lies there.
#[derive(Default)]
pub(super) struct SimPhotoCache {
    last: Mutex<Option<CachedPhoto>>,
    /// Number of sheets laid.
    sheets: AtomicU64,
}

impl SimPhotoCache {
    /// Invalidates the picture, because a new sheet lies there. Does not wait for a picture in progress.
    pub(super) fn invalidate(&self) {
        self.sheets.fetch_add(1, Ordering::SeqCst);
    }
}

struct CachedPhoto {
    at: ClockInstant,
    sheet: u64,
    scene: Arc<Scene>,
    ink: Vec<(usize, Vec<[f64; 2]>)>,
    png: Vec<u8>,
}

/// Returns a PNG picture of the workcell of a simulated arm. Returns `None` before a sheet was laid, or if painting
/// fails; the reason is logged. Concurrent callers wait for a picture in progress.
pub(super) fn picture_of(arm: &AttachedArm) -> Option<Vec<u8>> {
    let (workcell, scene) = arm.workcell.as_ref().zip(arm.placed_scene())?;
    let photo_cache = &arm.photo_cache;
    let mut last = photo_cache.last.locked();
    let sheet = photo_cache.sheets.load(Ordering::SeqCst);
    let now = arm.motion.clock().now();
    let is_drawing = arm.board.under_way().is_some();
    let cached = last
        .take()
        .filter(|photo| photo.sheet == sheet && Arc::ptr_eq(&photo.scene, &scene));
    let photo = match cached {
        Some(cached) if is_drawing && now.since(cached.at) < SHOWN_FOR => cached,
        cached => {
            let ink = workcell.ink();
            match cached.filter(|cached| cached.ink == ink) {
                Some(same) => same,
                None => CachedPhoto {
                    at: now,
                    sheet,
                    png: pictures::ink(&scene, &ink)?,
                    scene,
                    ink,
                },
            }
        }
    };
    Some(last.insert(photo).png.clone())
}
