//! Recognises files of formats that hold no readable lines by their first bytes, and says how their
//! author comes to an SVG.

use super::DesignError;

const TRACE: &str = "trace it into paths (Inkscape: Path, Trace Bitmap) and save that as Plain SVG";
const CONVERT: &str =
    "open it in Inkscape and save it as Plain SVG, or run `inkscape --export-plain-svg` on it";
const EXPORT: &str = "export it as SVG or DXF from the program that made it";
const UNPACK: &str = "save it uncompressed, as Plain SVG, or unpack it first";

/// First bytes of a format, its name, and the way to an SVG.
const FORMATS: [(&[u8], &str, &str); 15] = [
    (b"\x89PNG", "a PNG picture", TRACE),
    (b"\xff\xd8\xff", "a JPEG picture", TRACE),
    (b"GIF8", "a GIF picture", TRACE),
    (b"BM", "a BMP picture", TRACE),
    (b"II*\0", "a TIFF picture", TRACE),
    (b"MM\0*", "a TIFF picture", TRACE),
    (b"%PDF", "a PDF", CONVERT),
    (b"%!PS", "PostScript", CONVERT),
    (b"\xc5\xd0\xd3\xc6", "PostScript", CONVERT),
    (b"AC10", "a DWG", "save it as DXF in text (ASCII)"),
    (b"\x1f\x8b", "compressed by gzip (such as .svgz)", UNPACK),
    (b"PK\x03\x04", "a ZIP archive", "unpack it first"),
    (b"solid ", "an STL model", EXPORT),
    (b"ISO-10303-21", "a STEP model", EXPORT),
    (b"\xd0\xcf\x11\xe0", "an Office document", EXPORT),
];

/// Projects in XML, by their first element.
const PROJECTS: [(&[u8], &str, &str); 4] = [
    (
        b"<LightBurnProject",
        "a LightBurn project",
        "save it as SVG from LightBurn (File, Save Processed or Export), or as G-code",
    ),
    (b"<mxfile", "a draw.io diagram", EXPORT),
    (b"<VisioDocument", "a Visio drawing", EXPORT),
    (b"<office:document", "an OpenDocument drawing", EXPORT),
];

/// Bytes in which a project's first element stands.
const PROJECT_HEAD: usize = 1024;

/// Containers whose kind follows their length.
const CONTAINERS: [(usize, &[u8], &str, &str); 4] = [
    (8, b"WEBP", "a WebP picture", TRACE),
    (8, b"CDR", "a CorelDRAW file", EXPORT),
    (4, b"ftyphei", "a HEIC picture", TRACE),
    (4, b"ftypavif", "an AVIF picture", TRACE),
];

/// Refuses a file of another format, whatever its name says.
pub(super) fn refuse(bytes: &[u8]) -> Result<(), DesignError> {
    let by_start = FORMATS
        .iter()
        .map(|(mark, what, way)| (0, *mark, *what, *way));
    let mut formats = by_start.chain(CONTAINERS);
    let has = |at: usize, mark: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(mark));
    match formats.find(|(at, mark, ..)| has(*at, mark) && is_binary(bytes, mark)) {
        Some((_, _, what, way)) => Err(DesignError::ForeignFormat { what, way }),
        None => refuse_project(bytes),
    }
}

/// Refuses the project of a drawing program.
fn refuse_project(bytes: &[u8]) -> Result<(), DesignError> {
    let head = bytes.get(..PROJECT_HEAD).unwrap_or(bytes);
    let begins = |mark: &[u8]| head.windows(mark.len()).any(|part| part == mark);
    match PROJECTS.into_iter().find(|(mark, ..)| begins(mark)) {
        Some((_, what, way)) => Err(DesignError::ForeignFormat { what, way }),
        None => Ok(()),
    }
}

/// Returns whether a mark of letters and digits is more than the beginning of a text, such as HP-GL.
fn is_binary(bytes: &[u8], mark: &[u8]) -> bool {
    let has_zero = || bytes.iter().take(64).any(|byte| *byte == 0);
    !mark.iter().all(u8::is_ascii_alphanumeric) || has_zero()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_formats_are_known_by_their_bytes() {
        for bytes in [
            &b"\x89PNG\r\n\x1a\n"[..],
            b"\xff\xd8\xff\xe0..JFIF",
            b"%PDF-1.7\n",
            b"BM\x36\0\0\0",
            b"RIFF.\0\0\0WEBPVP8 ",
            b"AC1027\0\0",
            b"\x1f\x8b\x08",
            b"<?xml version=\"1.0\"?>\n<LightBurnProject AppVersion=\"1.4\">",
        ] {
            assert!(refuse(bytes).is_err(), "{bytes:?}");
        }
        for text in [
            "BM1,2;IN;",
            "AC10,10;PD;",
            "%\nG21\n",
            "<svg/>",
            "IN;SP1;",
            "",
            "0\nSECTION\n",
        ] {
            assert!(refuse(text.as_bytes()).is_ok(), "{text}");
        }
    }
}
