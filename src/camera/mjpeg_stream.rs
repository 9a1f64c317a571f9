//! A stream of JPEGs as cameras send it: `multipart/x-mixed-replace`, cut into its parts.
//!
//! Cameras differ in what they call a boundary: with its two dashes in the header or without, in
//! quotes or not, with a length in each part or none.

use super::CameraFailure;
use super::jpeg_decode::JPEG_BYTES_MAX;

/// Largest header before a part's picture.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// The longest boundary.
const BOUNDARY_BYTES_MAX: usize = 200;

/// The parts of a stream, cut as it comes.
#[derive(Debug)]
pub struct MjpegParts {
    /// The line between two parts.
    delimiter: Vec<u8>,
    waiting: Vec<u8>,
    place: MjpegState,
    /// Bytes of the head so far, and of what stands before it.
    head_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum MjpegState {
    /// Before a delimiter.
    Between,
    /// In a part's header, which has said how long it is.
    Head(Option<usize>),
    /// In its picture; so much of it has been looked through for its end.
    Body(Option<usize>, usize),
}

/// Result of a step.
enum MjpegStep {
    On,
    More,
    Whole(Vec<u8>),
}

impl MjpegParts {
    /// The parts of a stream of this content type.
    ///
    /// # Errors
    /// One without a boundary.
    pub fn new(content_type: &str) -> Result<Self, CameraFailure> {
        let boundary = content_type.split(';').skip(1).find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let is_it = name.trim().eq_ignore_ascii_case("boundary");
            is_it.then(|| value.trim().trim_matches('"').to_owned())
        });
        let boundary = boundary.filter(|b| !b.is_empty() && b.len() <= BOUNDARY_BYTES_MAX);
        let boundary = boundary.ok_or(CameraFailure::Stream("its content type has no boundary"))?;
        let bare = boundary.strip_prefix("--").unwrap_or(&boundary);
        Ok(Self {
            delimiter: format!("--{bare}").into_bytes(),
            waiting: Vec::new(),
            place: MjpegState::Between,
            head_bytes: 0,
        })
    }

    /// Takes more of the stream. Every picture that is whole then, the oldest first.
    ///
    /// # Errors
    /// Heads and pictures that are too long, and parts that are no JPEG. The stream is of no use then.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CameraFailure> {
        self.waiting.extend_from_slice(bytes);
        let mut pictures = Vec::new();
        // Each step but the last takes something away, so this ends.
        loop {
            match self.step()? {
                MjpegStep::On => {}
                MjpegStep::Whole(picture) => pictures.push(picture),
                MjpegStep::More => return Ok(pictures),
            }
        }
    }

    fn step(&mut self) -> Result<MjpegStep, CameraFailure> {
        match self.place {
            MjpegState::Between | MjpegState::Head(_) => match self.line()? {
                None => Ok(MjpegStep::More),
                Some(line) => self.head(&line),
            },
            MjpegState::Body(Some(length), _) if self.waiting.len() < length => Ok(MjpegStep::More),
            MjpegState::Body(Some(length), _) => Ok(self.whole(length)),
            MjpegState::Body(None, looked) => self.until_delimiter(looked),
        }
    }

    /// The next line without its end.
    fn line(&mut self) -> Result<Option<Vec<u8>>, CameraFailure> {
        let end = self.waiting.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(self.waiting.len(), |end| end + 1);
        if self.head_bytes + taken > HEAD_BYTES_MAX {
            return Err(CameraFailure::Stream("a part's head is too long"));
        }
        let Some(end) = end else { return Ok(None) };
        self.head_bytes += taken;
        let mut line: Vec<u8> = self.waiting.drain(..=end).collect();
        while matches!(line.last(), Some(b'\r' | b'\n')) {
            line.pop();
        }
        Ok(Some(line))
    }

    fn head(&mut self, line: &[u8]) -> Result<MjpegStep, CameraFailure> {
        match self.place {
            MjpegState::Head(length) if line.is_empty() => {
                self.place = MjpegState::Body(length, 0);
            }
            MjpegState::Head(length) => self.place = MjpegState::Head(field(line)?.or(length)),
            _ => match line.strip_prefix(self.delimiter.as_slice()) {
                Some(b"--") => return Err(CameraFailure::Ended),
                Some(rest) if rest.trim_ascii().is_empty() => {
                    self.place = MjpegState::Head(None);
                    self.head_bytes = 0;
                }
                _ => {}
            },
        }
        Ok(MjpegStep::On)
    }

    /// A picture without a length ends where the next part begins.
    fn until_delimiter(&mut self, looked: usize) -> Result<MjpegStep, CameraFailure> {
        let mut end = vec![b'\n'];
        end.extend_from_slice(&self.delimiter);
        let from = looked.saturating_sub(end.len());
        let rest = self.waiting.get(from..).unwrap_or_default();
        let found = rest.windows(end.len()).position(|part| part == end);
        match found.map(|at| from + at) {
            Some(at) => {
                let before = at.checked_sub(1).and_then(|i| self.waiting.get(i));
                let length = if before == Some(&b'\r') { at - 1 } else { at };
                if length > JPEG_BYTES_MAX {
                    return Err(CameraFailure::TooLong);
                }
                Ok(self.whole(length))
            }
            None if self.waiting.len() > JPEG_BYTES_MAX => Err(CameraFailure::TooLong),
            None => {
                self.place = MjpegState::Body(None, self.waiting.len());
                Ok(MjpegStep::More)
            }
        }
    }

    fn whole(&mut self, length: usize) -> MjpegStep {
        let rest = self.waiting.split_off(length.min(self.waiting.len()));
        let picture = std::mem::replace(&mut self.waiting, rest);
        self.place = MjpegState::Between;
        self.head_bytes = 0;
        MjpegStep::Whole(picture)
    }
}

/// Returns what a content type says of its content alone, in small letters.
pub(super) fn media_type(content_type: &str) -> String {
    let kind = content_type.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// The length that a header line says, if it is that line.
fn field(line: &[u8]) -> Result<Option<usize>, CameraFailure> {
    let line = String::from_utf8_lossy(line);
    let Some((name, value)) = line.split_once(':') else {
        return Ok(None);
    };
    let (name, value) = (name.trim(), value.trim());
    if name.eq_ignore_ascii_case("content-type") {
        let kind = value.split(';').next().unwrap_or_default().trim();
        return match media_type(kind).as_str() {
            "image/jpeg" | "image/jpg" => Ok(None),
            _ => Err(CameraFailure::kind(kind)),
        };
    }
    if !name.eq_ignore_ascii_case("content-length") {
        return Ok(None);
    }
    match value.parse::<usize>() {
        Ok(length) if length <= JPEG_BYTES_MAX => Ok(Some(length)),
        Ok(_) => Err(CameraFailure::TooLong),
        Err(_) => Err(CameraFailure::Stream("a part's length is no number")),
    }
}
