//! Splits a stream of JPEGs as cameras send it, `multipart/x-mixed-replace`, into its parts.
//!
//! Cameras differ in how they write the boundary in the header: with its two dashes or without, in
//! quotes or not. Some give a length in each part, others none.

use super::CameraFailure;
use super::jpeg_decode::JPEG_BYTES_MAX;

/// Largest head of a part.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Longest boundary.
const BOUNDARY_BYTES_MAX: usize = 200;

/// Parser of a stream's parts, fed with bytes as they arrive.
#[derive(Debug)]
pub struct MjpegParts {
    /// The line between two parts.
    delimiter: Vec<u8>,
    buffer: Vec<u8>,
    state: MjpegState,
    /// Number of bytes so far of the head and of the lines before it.
    head_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum MjpegState {
    /// Before a delimiter.
    Between,
    /// In a part's head, with the length if a line gave it.
    Head(Option<usize>),
    /// In its picture, with its length, and the number of bytes already searched for its end.
    Body(Option<usize>, usize),
}

/// Result of a step of the parser.
enum MjpegStep {
    Continue,
    NeedsBytes,
    Picture(Vec<u8>),
}

impl MjpegParts {
    /// Creates a parser for a stream of this content type.
    ///
    /// # Errors
    /// The content type has no boundary.
    pub fn new(content_type: &str) -> Result<Self, CameraFailure> {
        let boundary = content_type.split(';').skip(1).find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let is_boundary = name.trim().eq_ignore_ascii_case("boundary");
            is_boundary.then(|| value.trim().trim_matches('"').to_owned())
        });
        let boundary = boundary.filter(|b| !b.is_empty() && b.len() <= BOUNDARY_BYTES_MAX);
        let boundary = boundary.ok_or(CameraFailure::Stream("its content type has no boundary"))?;
        let dashless = boundary.strip_prefix("--").unwrap_or(&boundary);
        Ok(Self {
            delimiter: format!("--{dashless}").into_bytes(),
            buffer: Vec::new(),
            state: MjpegState::Between,
            head_bytes: 0,
        })
    }

    /// Takes further bytes of the stream and returns the pictures that they complete, the oldest first.
    ///
    /// # Errors
    /// A head or a picture is too long, or a part is not a JPEG. The stream cannot be used after that.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CameraFailure> {
        self.buffer.extend_from_slice(bytes);
        let mut pictures = Vec::new();
        // Each step but the last consumes bytes or changes the state, so this ends.
        loop {
            match self.step()? {
                MjpegStep::Continue => {}
                MjpegStep::Picture(picture) => pictures.push(picture),
                MjpegStep::NeedsBytes => return Ok(pictures),
            }
        }
    }

    fn step(&mut self) -> Result<MjpegStep, CameraFailure> {
        match self.state {
            MjpegState::Between | MjpegState::Head(_) => match self.next_line()? {
                None => Ok(MjpegStep::NeedsBytes),
                Some(line) => self.read_line(&line),
            },
            MjpegState::Body(Some(length), _) if self.buffer.len() < length => {
                Ok(MjpegStep::NeedsBytes)
            }
            MjpegState::Body(Some(length), _) => Ok(self.take_picture(length)),
            MjpegState::Body(None, searched) => self.find_end(searched),
        }
    }

    /// Returns the next line without its end; `None` if it is incomplete.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, CameraFailure> {
        let end = self.buffer.iter().position(|byte| *byte == b'\n');
        let line_bytes = end.map_or(self.buffer.len(), |end| end + 1);
        if self.head_bytes + line_bytes > HEAD_BYTES_MAX {
            return Err(CameraFailure::Stream("a part's header is too long"));
        }
        let Some(end) = end else { return Ok(None) };
        self.head_bytes += line_bytes;
        let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
        while matches!(line.last(), Some(b'\r' | b'\n')) {
            line.pop();
        }
        Ok(Some(line))
    }

    fn read_line(&mut self, line: &[u8]) -> Result<MjpegStep, CameraFailure> {
        match self.state {
            MjpegState::Head(length) if line.is_empty() => {
                self.state = MjpegState::Body(length, 0);
            }
            MjpegState::Head(length) => {
                self.state = MjpegState::Head(content_length(line)?.or(length));
            }
            _ => match line.strip_prefix(self.delimiter.as_slice()) {
                Some(b"--") => return Err(CameraFailure::Ended),
                Some(rest) if rest.trim_ascii().is_empty() => {
                    self.state = MjpegState::Head(None);
                    self.head_bytes = 0;
                }
                _ => {}
            },
        }
        Ok(MjpegStep::Continue)
    }

    /// Finds the end of a picture without a length: the beginning of the next part.
    fn find_end(&mut self, searched: usize) -> Result<MjpegStep, CameraFailure> {
        let mut end = vec![b'\n'];
        end.extend_from_slice(&self.delimiter);
        let from = searched.saturating_sub(end.len());
        let rest = self.buffer.get(from..).unwrap_or_default();
        let found = rest.windows(end.len()).position(|part| part == end);
        match found.map(|at| from + at) {
            Some(at) => {
                let before = at.checked_sub(1).and_then(|i| self.buffer.get(i));
                let length = if before == Some(&b'\r') { at - 1 } else { at };
                if length > JPEG_BYTES_MAX {
                    return Err(CameraFailure::TooLong);
                }
                Ok(self.take_picture(length))
            }
            None if self.buffer.len() > JPEG_BYTES_MAX => Err(CameraFailure::TooLong),
            None => {
                self.state = MjpegState::Body(None, self.buffer.len());
                Ok(MjpegStep::NeedsBytes)
            }
        }
    }

    fn take_picture(&mut self, length: usize) -> MjpegStep {
        let rest = self.buffer.split_off(length.min(self.buffer.len()));
        let picture = std::mem::replace(&mut self.buffer, rest);
        self.state = MjpegState::Between;
        self.head_bytes = 0;
        MjpegStep::Picture(picture)
    }
}

/// Returns a content type without its parameters, in lower case.
pub(super) fn media_type(content_type: &str) -> String {
    let media_type = content_type.split(';').next().unwrap_or_default();
    media_type.trim().to_ascii_lowercase()
}

/// Returns the length that a head line gives, if it does. Refuses a content type other than JPEG.
fn content_length(line: &[u8]) -> Result<Option<usize>, CameraFailure> {
    let line = String::from_utf8_lossy(line);
    let Some((name, value)) = line.split_once(':') else {
        return Ok(None);
    };
    let (name, value) = (name.trim(), value.trim());
    if name.eq_ignore_ascii_case("content-type") {
        let kind = value.split(';').next().unwrap_or_default().trim();
        return match media_type(kind).as_str() {
            "image/jpeg" | "image/jpg" => Ok(None),
            _ => Err(CameraFailure::wrong_content_type(kind)),
        };
    }
    if !name.eq_ignore_ascii_case("content-length") {
        return Ok(None);
    }
    match value.parse::<usize>() {
        Ok(length) if length <= JPEG_BYTES_MAX => Ok(Some(length)),
        Ok(_) => Err(CameraFailure::TooLong),
        Err(_) => Err(CameraFailure::Stream("a part's length is not a number")),
    }
}
