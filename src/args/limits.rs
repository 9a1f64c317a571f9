//! All limits of the reader. Anything longer, deeper or more numerous is refused, never half read.

/// Longest text that is read, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 20;
/// Deepest nesting of lists and objects.
pub(super) const DEPTH_MAX: usize = 48;
/// Most values in one text; keeps memory within a small multiple of the text.
pub(super) const NODES_MAX: usize = 20_000;
/// Most arguments in one call; more keys than this are data, not arguments.
pub(super) const PAIRS_MAX: usize = 2048;
/// Longest key that may name a parameter, in bytes. A longer one may mean anything.
pub(super) const KEY_BYTES_MAX: usize = 512;
/// Keys and texts of one value that are searched for requests. One that holds more may ask for anything.
pub(super) const SEARCHED_MAX: usize = 4096;
/// Most comments in one text; each is judged by itself.
pub(super) const COMMENTS_MAX: usize = 4096;
/// Maximum depth to which text inside text, or an envelope inside an envelope, is opened.
pub(super) const UNWRAP_MAX: usize = 4;
/// Blank bytes looked through to see what follows a quote.
pub(super) const LOOK_MAX: usize = 64;
/// Largest cost of a reading; a dearer one does not count.
pub(super) const COST_MAX: u32 = 40;
/// Characters of a received value that are shown.
pub(super) const SHOWN_CHARS_MAX: usize = 80;
/// Most complaints that are listed.
pub(super) const COMPLAINTS_MAX: usize = 32;
/// Most repairs that are listed.
pub(super) const REPAIRS_MAX: usize = 64;
/// Most keys and pieces of text that are told as left over; one more stands for the remainder.
pub(super) const LEFTOVER_MAX: usize = 64;
