//! Takes a picture from an RTSP camera: H.264 or JPEG, over the connection that asks for it.
//!
//! A server may first send what it kept since its last whole frame, faster than it was filmed. So the picture is the first
//! frame that had to be waited for.

use futures::StreamExt;
use openh264::decoder::Decoder;
use openh264::formats::YUVSource;
use retina::client::{
    Credentials, Described, PlayOptions, Session, SessionOptions, SetupOptions, Transport,
};
use retina::codec::{CodecItem, FrameFormat, ParametersRef, VideoFrame};
use tokio::time::Instant;
use url::Url;

use super::camera_login::CameraLogin;
use super::{CameraFailure, RawPicture};
use vision::ImageFrame;

/// Most bytes of the frames that lead to a picture.
const FRAMES_BYTES_MAX: usize = 32 << 20;

/// Codecs that are read, as a stream names them.
const CODECS: [&str; 2] = ["h264", "jpeg"];

/// A camera's host, and what it sent in place of a picture.
struct RtspHost(String);

/// Takes a picture. May be dropped while it waits; the connection is then closed.
///
/// A login is sent only to a camera that asks, by Digest where it can.
pub(super) async fn fetch(
    address: &str,
    login: Option<&CameraLogin>,
) -> Result<RawPicture, CameraFailure> {
    let url = Url::parse(address).ok().filter(Url::has_host);
    let url = url.ok_or_else(|| CameraFailure::Address(address.to_owned()))?;
    let name = url.host_str().unwrap_or_default();
    let host = RtspHost(format!("{name}:{}", url.port().unwrap_or(554)));
    let credentials = login.map(CameraLogin::name_and_password);
    let options =
        SessionOptions::default().creds(credentials.map(|(username, password)| Credentials {
            username: username.to_owned(),
            password: password.to_owned(),
        }));
    let refused = |error| host.failure(&error, login.is_some());
    let mut session = Session::describe(url, options).await.map_err(refused)?;
    let (stream, is_jpeg) = video_stream(&session)?;
    let video = session.streams().get(stream);
    check_size(video.and_then(|video| video.parameters()).as_ref())?;
    let setup = SetupOptions::default()
        .transport(Transport::Tcp(Default::default()))
        .frame_format(FrameFormat::SIMPLE);
    session.setup(stream, setup).await.map_err(refused)?;
    let playing = session
        .play(PlayOptions::default())
        .await
        .map_err(refused)?;
    let mut frames = playing.demuxed().map_err(refused)?;
    let mut taken = TakenFrames::default();
    while let Some(item) = frames.next().await {
        if let CodecItem::VideoFrame(frame) = item.map_err(refused)?
            && taken.add(frame)?
        {
            return Ok(match is_jpeg {
                true => RawPicture::Jpeg(taken.frames.pop().unwrap_or_default()),
                false => RawPicture::H264(taken.frames),
            });
        }
    }
    Err(CameraFailure::Ended)
}

/// Returns the first video stream whose codec is read, and whether that is JPEG.
fn video_stream(session: &Session<Described>) -> Result<(usize, bool), CameraFailure> {
    let streams = session.streams().iter().enumerate();
    let videos = || {
        streams
            .clone()
            .filter(|(_, stream)| stream.media() == "video")
    };
    let found = videos().find(|(_, stream)| CODECS.contains(&stream.encoding_name()));
    found
        .map(|(index, stream)| (index, stream.encoding_name() == "jpeg"))
        .ok_or_else(|| {
            let names = videos().map(|(_, stream)| stream.encoding_name().to_owned());
            CameraFailure::Codec(
                names
                    .collect::<Vec<_>>()
                    .join(", ")
                    .chars()
                    .take(80)
                    .collect(),
            )
        })
}

/// Refuses a size before anything of it is decoded.
fn check_size(parameters: Option<&ParametersRef<'_>>) -> Result<(), CameraFailure> {
    if let Some(ParametersRef::Video(video)) = parameters {
        let (width, height) = video.coded_pixel_dimensions();
        ImageFrame::pixels(width, height)?;
    }
    Ok(())
}

impl RtspHost {
    /// Says why a camera gave nothing; its own words may be of any length.
    fn failure(&self, error: &retina::Error, is_login: bool) -> CameraFailure {
        let host = self.0.clone();
        match (error.status_code(), is_login) {
            (Some(401), false) => CameraFailure::NoLogin { host },
            (Some(401), true) => CameraFailure::WrongLogin { host },
            (Some(status), _) => CameraFailure::Status { host, status },
            (None, _) => {
                let text = error.to_string();
                let what = text.lines().next().unwrap_or_default();
                let what = what.chars().take(200).collect();
                CameraFailure::Broken { host, what }
            }
        }
    }
}

/// The frames since the last whole one.
#[derive(Default)]
struct TakenFrames {
    frames: Vec<Vec<u8>>,
    bytes: usize,
    /// The time in the stream of the last one, and when it came.
    last: Option<(f64, Instant)>,
}

impl TakenFrames {
    /// Adds a frame; returns whether the camera had to film it first.
    fn add(&mut self, frame: VideoFrame) -> Result<bool, CameraFailure> {
        let (at_s, came) = (frame.timestamp().elapsed_secs(), Instant::now());
        if frame.is_random_access_point() {
            self.frames.clear();
            self.bytes = 0;
        } else if self.frames.is_empty() {
            return Ok(false);
        }
        self.bytes += frame.data().len();
        if self.bytes > FRAMES_BYTES_MAX {
            return Err(CameraFailure::TooLong);
        }
        self.frames.push(frame.into_data());
        let before = self.last.replace((at_s, came));
        Ok(before.is_some_and(|(before_s, before)| {
            let (filmed_s, waited) = (at_s - before_s, came - before);
            filmed_s > 0.0 && waited.as_secs_f64() >= filmed_s / 2.0
        }))
    }
}

/// Decodes frames of H.264 that begin with a whole one; returns the last picture.
pub(super) fn decode(frames: &[Vec<u8>]) -> Result<ImageFrame, CameraFailure> {
    let broken = |error: openh264::Error| CameraFailure::H264(error.to_string());
    let mut decoder = Decoder::new().map_err(broken)?;
    let mut last = None;
    for frame in frames {
        if let Some(picture) = decoder.decode(frame).map_err(broken)? {
            last = Some(pixels(&picture)?);
        }
    }
    for picture in decoder.flush_remaining().map_err(broken)? {
        last = Some(pixels(&picture)?);
    }
    last.ok_or_else(|| CameraFailure::H264("its frames contain no picture".to_owned()))
}

fn pixels(picture: &openh264::decoder::DecodedYUV<'_>) -> Result<ImageFrame, CameraFailure> {
    let (width, height) = picture.dimensions();
    let side = |px: usize| u32::try_from(px).unwrap_or(u32::MAX);
    let [width, height] = [width, height].map(side);
    let mut rgb = vec![0; ImageFrame::pixels(width, height)? * 3];
    picture.write_rgb8(&mut rgb);
    Ok(ImageFrame::new(width, height, rgb)?)
}
