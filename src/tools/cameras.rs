//! The cameras of a node: fresh pictures of a scene's sheet and their evaluation.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use nalgebra::{Isometry3, Point3, Vector3};

use super::{AttachedArm, Node, RecordedPicture, calibration_check};
use calib::{CalibrationOrigin, CalibrationStore, TagObservation, camera_pose, is_out_of_date};
use call::{Refusal, refusal};
use camera::{CameraHandle, PictureSource};
use config::{CameraEntry, CameraSource, NodeFile, SimulatedCameraEntry};
use scene::{Scene, SheetFiducials, pose};
use vision::{
    ImageFrame, LensModel, PlacedCamera, SheetLocation, SheetOffset, VisionError, find, locate,
    sheet_offset,
};

/// Age beyond which a picture proves nothing about where the sheet lies now.
const AGE_MAX: Duration = Duration::from_secs(3);

/// Message for an arm without a camera.
pub(super) const NO_CAMERA: &str =
    "this node has no camera for this arm. Next: add one as `[[cameras]]` to its node file";

/// Message for a scene whose sheet no camera sees.
const NO_SUCH_CAMERA: &str = "this node has no camera for an arm of this scene. Next: add one as `[[cameras]]` to its node file";

/// Message for a camera whose pictures are shown but not measured.
const NO_FOCAL: &str = "has no `focal_px` in the node file, so its pictures cannot be measured";

/// A camera of a node.
pub(super) struct NodeCamera {
    entry: CameraEntry,
    /// Camera device; `None` for rendered pictures.
    camera: Option<CameraHandle>,
    /// Number of the next picture, which seeds its noise.
    pictures_taken: AtomicU64,
}

/// The light of a rendered picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenderExposure {
    /// 1 shows white paper as nearly white.
    pub light: f64,
    /// One sigma of each pixel, in grey levels.
    pub noise_grey: f64,
    /// Seed of the noise.
    pub seed: u64,
}

/// One picture of a camera and its evaluation.
pub(super) struct CameraCapture {
    pub(super) camera: String,
    pub(super) frame: ImageFrame,
    /// The camera's own JPEG, if it made one.
    pub(super) jpeg: Option<Vec<u8>>,
    /// Time of the picture, in milliseconds since 1970.
    pub(super) at_ms: u64,
    pub(super) age: Duration,
    /// Observation of the sheet; `None` if the scene has no tags or the lens is unknown.
    pub(super) sheet: Option<Result<SheetObservation, VisionError>>,
}

/// A sheet seen in a picture.
pub(super) struct SheetObservation {
    pub(super) location: SheetLocation,
    pub(super) lens: LensModel,
    /// The camera in its place, or the reason why that is not known.
    pub(super) camera: Result<PlacedCamera, Refusal>,
    /// Transform from the sheet's frame to the arm's base, and its offset from where the sheet was taught.
    pub(super) placement: Option<(Isometry3<f64>, SheetOffset)>,
}

/// What a picture says about the sheet's place.
pub(super) enum SheetEvidence {
    /// It lies where it was taught.
    InPlace,
    /// It lies elsewhere.
    Moved(SheetOffset),
    /// No evidence, and the reason.
    Nothing(String),
}

/// Returns the cameras that a node file names.
pub(super) fn from_file(file: &NodeFile) -> Vec<Arc<NodeCamera>> {
    let camera = |entry: &CameraEntry| {
        let source = match entry.source() {
            CameraSource::Simulator => None,
            CameraSource::Device(path) => Some(PictureSource::Device {
                path,
                size_px: entry.size_px,
            }),
            CameraSource::Http(address) => Some(PictureSource::Http {
                address,
                login_file: entry.login_file.clone(),
            }),
        };
        let timeout = Duration::from_millis(u64::from(entry.timeout_ms));
        Arc::new(NodeCamera {
            camera: source.map(|source| CameraHandle::new(&entry.name, source, timeout)),
            entry: entry.clone(),
            pictures_taken: AtomicU64::new(1),
        })
    };
    file.cameras.iter().map(camera).collect()
}

impl Node {
    /// Returns the cameras that see an arm's sheet.
    pub(super) fn cameras_of(&self, arm: &AttachedArm) -> Vec<Arc<NodeCamera>> {
        let sees = |camera: &&Arc<NodeCamera>| camera.entry.sees(&arm.name);
        self.cameras.iter().filter(sees).cloned().collect()
    }

    /// Takes a picture with each camera that sees an arm's sheet, all at once and each within its own
    /// timeout. Errors name the camera.
    pub(super) async fn capture(
        &self,
        arm: &Arc<AttachedArm>,
        scene: Option<&Arc<Scene>>,
    ) -> Vec<(String, Result<CameraCapture, Refusal>)> {
        let store = CalibrationStore::of_state(&self.state, &self.scenes);
        let captures = self.cameras_of(arm).into_iter().map(|camera| {
            let (store, scene) = (store.clone(), scene.cloned());
            async move {
                let name = camera.entry.name.clone();
                (name, camera.capture(arm, scene, store).await)
            }
        });
        join_all(captures).await
    }

    /// Returns the pose of a camera, measured now from a scene's sheet, which must lie where it was taught. Without a
    /// name it uses the only camera that sees the sheet of an arm which draws that scene.
    ///
    /// # Errors
    /// The reason for having no pose.
    pub async fn camera_pose(
        &self,
        scene_name: &str,
        camera_name: Option<&str>,
    ) -> Result<(TagObservation, CalibrationOrigin), Refusal> {
        let scene = self.scenes.scene(scene_name, None)?;
        let arms = self.arms_of(&scene);
        if arms.is_empty() {
            let model = &scene.arm.file.name;
            return Err(refusal!(
                "scene `{scene_name}` is for an arm of model {model}, but this node has none"
            ));
        }
        // On a node of several arms the node file says whose sheet each camera sees.
        let cameras = arms.into_iter().flat_map(|arm| {
            let cameras = self.cameras_of(arm).into_iter();
            cameras.map(move |camera| (arm, camera))
        });
        let (arm, camera) = choose(cameras.collect(), camera_name)?;
        let store = CalibrationStore::of_state(&self.state, &self.scenes);
        let capture = camera.capture(arm, Some(Arc::clone(&scene)), store);
        let observation = capture.await?.camera_observation(&scene)?;
        Ok((observation, calibration_check::origin(self, arm)))
    }
}

/// An arm and a camera that sees its sheet.
type WatchedArm<'a> = (&'a Arc<AttachedArm>, Arc<NodeCamera>);

/// Returns the camera of this name, or the only one if no name is given, with the arm whose sheet it sees.
fn choose<'a>(cameras: Vec<WatchedArm<'a>>, name: Option<&str>) -> Result<WatchedArm<'a>, Refusal> {
    let names = cameras.iter().map(|(_, camera)| camera.entry.name.clone());
    let names: Vec<String> = names.collect();
    let mut cameras = cameras.into_iter();
    let found = match name {
        Some(name) => cameras.find(|(_, camera)| camera.entry.name == name),
        None if names.len() == 1 => cameras.next(),
        None => None,
    };
    found.ok_or_else(|| match names.as_slice() {
        [] => Refusal::new(NO_SUCH_CAMERA),
        _ => refusal!(
            "there are several cameras. Next: name one with --camera: {}",
            names.join(", ")
        ),
    })
}

impl NodeCamera {
    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.entry.name
    }

    /// Takes a picture, which is the camera's own JPEG where there is one.
    pub(super) async fn take_picture(
        self: Arc<Self>,
        arm: &Arc<AttachedArm>,
        scene: Arc<Scene>,
    ) -> Result<RecordedPicture, Refusal> {
        let Some(camera) = &self.camera else {
            let rendered = self.render(arm, Some(scene)).await?;
            return Ok(RecordedPicture::Frame(rendered.frame));
        };
        let picture = camera.picture().await?;
        Ok(match picture.jpeg {
            Some(jpeg) => RecordedPicture::Jpeg(jpeg),
            None => RecordedPicture::Frame(picture.frame),
        })
    }

    async fn capture(
        self: Arc<Self>,
        arm: &Arc<AttachedArm>,
        scene: Option<Arc<Scene>>,
        store: CalibrationStore,
    ) -> Result<CameraCapture, Refusal> {
        let mut capture = match &self.camera {
            Some(camera) => {
                let picture = camera.picture().await?;
                CameraCapture {
                    camera: self.entry.name.clone(),
                    age: camera.age(&picture),
                    frame: picture.frame,
                    jpeg: picture.jpeg,
                    at_ms: picture.at_ms,
                    sheet: None,
                }
            }
            None => self.render(arm, scene.clone()).await?,
        };
        // Finding tags takes long, so it must not block the runtime.
        let read = tokio::task::spawn_blocking(move || {
            capture.sheet = scene.and_then(|scene| self.read_sheet(&capture.frame, &scene, &store));
            capture
        });
        read.await
            .map_err(|_| refusal!("the picture could not be searched for tags"))
    }

    async fn render(
        &self,
        arm: &Arc<AttachedArm>,
        scene: Option<Arc<Scene>>,
    ) -> Result<CameraCapture, Refusal> {
        let name = self.entry.name.clone();
        let fail = move |reason: &dyn Display| refusal!("camera {name}: {reason}");
        let Some(simulated) = self.entry.simulated else {
            return Err(fail(&"it is simulated and has no place in the node file"));
        };
        let scene =
            scene.ok_or_else(|| fail(&"it is simulated, and no scene is known for it to show"))?;
        let (arm, lens) = (Arc::clone(arm), self.lens());
        let seed = self.pictures_taken.fetch_add(1, Ordering::Relaxed);
        let render = move || {
            let workcell = arm.workcell.as_ref();
            let workcell =
                workcell.ok_or_else(|| refusal!("it is simulated, but this arm is real"))?;
            let pose = simulated_pose(&simulated);
            let exposure = RenderExposure {
                light: simulated.light,
                noise_grey: simulated.noise_grey,
                seed,
            };
            workcell.picture(&scene, &PlacedCamera { lens, pose }, &exposure)
        };
        let frame = tokio::task::spawn_blocking(render).await;
        let frame = frame.unwrap_or_else(|_| Err(refusal!("it could not be rendered")));
        Ok(CameraCapture {
            camera: self.entry.name.clone(),
            frame: frame.map_err(|error| fail(&error))?,
            jpeg: None,
            at_ms: base::clock::calendar_ms(),
            age: Duration::ZERO,
            sheet: None,
        })
    }

    /// Returns the lens as the node file describes it. If the file has no focal length, it is a typical
    /// one, by which nothing is measured.
    fn lens(&self) -> LensModel {
        let entry = &self.entry;
        let [width, height] = entry.size_px.map(f64::from);
        LensModel {
            size_px: entry.size_px,
            focal_px: entry.focal_px.unwrap_or([0.8 * width; 2]),
            centre_px: entry.centre_px.unwrap_or([width / 2.0, height / 2.0]),
            distortion: entry.distortion,
        }
    }

    fn read_sheet(
        &self,
        frame: &ImageFrame,
        scene: &Scene,
        store: &CalibrationStore,
    ) -> Option<Result<SheetObservation, VisionError>> {
        let fiducials = scene.fiducials.as_ref()?;
        self.entry.focal_px?;
        Some(self.observe_sheet(frame, scene, fiducials, store))
    }

    fn observe_sheet(
        &self,
        frame: &ImageFrame,
        scene: &Scene,
        fiducials: &SheetFiducials,
        store: &CalibrationStore,
    ) -> Result<SheetObservation, VisionError> {
        let lens = self.lens();
        if frame.size_px() != lens.size_px {
            return Err(VisionError::Size {
                got: frame.size_px(),
                want: lens.size_px,
            });
        }
        let (layout, size_mm) = (&fiducials.layout, scene.surface.size_mm());
        let tags = find(frame, layout.family)?;
        let location = locate(&tags, layout, &lens, size_mm)?;
        let camera = self.accepted_pose(store);
        let camera = camera.map(|pose| PlacedCamera { lens, pose });
        let taught = scene.surface.flat_pose();
        let placement = camera.as_ref().ok().zip(taught).map(|(camera, taught)| {
            let sheet_pose = camera.pose * location.sheet;
            (sheet_pose, sheet_offset(&taught, &sheet_pose, size_mm))
        });
        Ok(SheetObservation {
            location,
            lens,
            camera,
            placement,
        })
    }

    /// Returns the camera's pose, as an operator accepted it.
    fn accepted_pose(&self, store: &CalibrationStore) -> Result<Isometry3<f64>, Refusal> {
        let name = &self.entry.name;
        let record = store.camera(name)?;
        let record = record.ok_or_else(|| {
            refusal!(
                "camera {name} is not calibrated. Next: put the sheet in its taught place, then `steadyhand calibrate camera --camera {name} --scene SCENE`"
            )
        })?;
        let history = store.history()?;
        match is_out_of_date(&history, &record) {
            Some(reason) => Err(Refusal::new(reason)),
            None => camera_pose(&record).ok_or_else(|| {
                refusal!("the place of camera {name} cannot be read. Next: calibrate it again")
            }),
        }
    }
}

impl CameraCapture {
    /// Returns the sheet's pose by this picture, in the form that a calibration keeps.
    pub(super) fn sheet_observation(&self) -> Option<TagObservation> {
        let sheet = self.sheet.as_ref()?.as_ref().ok()?;
        let (sheet_pose, _) = sheet.placement.as_ref()?;
        Some(self.tag_observation(sheet, sheet_pose))
    }

    /// Returns the camera's pose, provided that the sheet lies where it was taught.
    fn camera_observation(&self, scene: &Scene) -> Result<TagObservation, Refusal> {
        let name = &self.camera;
        if let Some(reason) = self.old_reason() {
            return Err(Refusal::new(reason));
        }
        let sheet = match &self.sheet {
            None if scene.fiducials.is_none() => Err(refusal!(
                "scene {} has no `[fiducials]`; calibrating a camera needs the tags of a sheet",
                scene.name
            )),
            None => Err(refusal!("camera {name} {NO_FOCAL}")),
            Some(sheet) => sheet
                .as_ref()
                .map_err(|error| refusal!("camera {name}: {error}")),
        }?;
        let taught = scene.surface.flat_pose();
        let taught = taught.ok_or_else(|| refusal!("a camera can find only flat sheets"))?;
        Ok(self.tag_observation(sheet, &(taught * sheet.location.sheet.inverse())))
    }

    fn tag_observation(&self, sheet: &SheetObservation, frame: &Isometry3<f64>) -> TagObservation {
        let axis = |axis: Vector3<f64>| (frame.rotation * axis).into();
        TagObservation {
            camera: self.camera.clone(),
            at_ms: self.at_ms,
            tags: sheet.location.used.len(),
            rms_px: sheet.location.rms_px,
            sigma_mm: sheet.location.sigma_mm,
            origin_m: frame.translation.vector.into(),
            x_axis: axis(Vector3::x()),
            y_axis: axis(Vector3::y()),
        }
    }

    /// Returns the reason why the picture proves nothing, if it is too old.
    pub(super) fn old_reason(&self) -> Option<String> {
        (self.age > AGE_MAX).then(|| {
            format!(
                "camera {}: its picture has not changed for {:.1} s: restart the camera",
                self.camera,
                self.age.as_secs_f64()
            )
        })
    }

    /// Returns the evidence of the picture for the sheet's place.
    pub(super) fn evidence(&self, fiducials: &SheetFiducials) -> SheetEvidence {
        let name = &self.camera;
        if let Some(reason) = self.old_reason() {
            return SheetEvidence::Nothing(reason);
        }
        let reason = match &self.sheet {
            None => format!("camera {name} {NO_FOCAL}"),
            Some(Err(error)) => format!("camera {name}: {error}"),
            Some(Ok(observation)) => match (&observation.camera, &observation.placement) {
                (Err(reason), _) => reason.to_string(),
                (Ok(_), None) => format!("camera {name}: the sheet is not flat"),
                (Ok(_), Some((_, moved))) => {
                    return self.judge_offset(moved, observation.location.sigma_mm, fiducials);
                }
            },
        };
        SheetEvidence::Nothing(reason)
    }

    fn judge_offset(
        &self,
        moved: &SheetOffset,
        sigma_mm: f64,
        fiducials: &SheetFiducials,
    ) -> SheetEvidence {
        let SheetFiducials {
            moved_mm_max,
            moved_deg_max,
            ..
        } = *fiducials;
        // At this uncertainty a moved sheet can go unnoticed, and a sheet in place can seem to have moved.
        if sigma_mm > moved_mm_max / 2.0 {
            return match moved.mm > moved_mm_max + 3.0 * sigma_mm {
                true => SheetEvidence::Moved(*moved),
                false => SheetEvidence::Nothing(format!(
                    "camera {} sees too little of the sheet: the corners are uncertain by {sigma_mm:.2} mm (at most half of the scene's {moved_mm_max} mm). Uncover its tags",
                    self.camera
                )),
            };
        }
        match moved.mm > moved_mm_max || moved.deg > moved_deg_max {
            true => SheetEvidence::Moved(*moved),
            false => SheetEvidence::InPlace,
        }
    }
}

/// Returns the transform from a simulated camera's frame to the arm's base: it looks at its target, upright.
fn simulated_pose(simulated: &SimulatedCameraEntry) -> Isometry3<f64> {
    let position = Point3::from(simulated.stands_m);
    let direction = Point3::from(simulated.looks_at_m) - position;
    let z = direction.try_normalize(1e-9);
    let z = z.unwrap_or_else(|| -Vector3::z());
    // Looking straight down, the top of its pictures points to where the arm reaches.
    let up = if z.z.abs() > 0.999 {
        -Vector3::y()
    } else {
        Vector3::z()
    };
    let x = z.cross(&up).normalize();
    pose(&position, &x, &z)
}
