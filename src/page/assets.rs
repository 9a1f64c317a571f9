//! The files that a browser loads, compiled in; scripts are sent without their comments.

use axum::body::Bytes;
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};

/// A file of the page.
pub(super) struct PageAsset {
    /// Its address below `/page/`; empty for the page itself.
    pub(super) name: &'static str,
    /// Media type.
    pub(super) mime: &'static str,
    /// Contents.
    pub(super) text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

const STYLE: &str = "text/css; charset=utf-8";

macro_rules! asset {
    ($name:literal, $mime:expr) => {
        PageAsset {
            name: $name,
            mime: $mime,
            text: include_str!(concat!("assets/", $name)),
        }
    };
}

/// All files.
pub(super) const ASSETS: &[PageAsset] = &[
    PageAsset {
        name: "",
        mime: "text/html; charset=utf-8",
        text: include_str!("assets/index.html"),
    },
    asset!("common.css", STYLE),
    asset!("page.css", STYLE),
    asset!("parts.css", STYLE),
    asset!("icon.svg", "image/svg+xml"),
    asset!("stop.js", SCRIPT),
    asset!("page.js", SCRIPT),
    asset!("answers.js", SCRIPT),
    asset!("door.js", SCRIPT),
    asset!("commands.js", SCRIPT),
    asset!("elements.js", SCRIPT),
    asset!("depth_trim.js", SCRIPT),
    asset!("feed.js", SCRIPT),
    asset!("shapes.js", SCRIPT),
    asset!("tabs.js", SCRIPT),
    asset!("condition.js", SCRIPT),
    asset!("head.js", SCRIPT),
    asset!("happened.js", SCRIPT),
    asset!("lines.js", SCRIPT),
    asset!("sheet.js", SCRIPT),
    asset!("paper.js", SCRIPT),
    asset!("scrub.js", SCRIPT),
    asset!("millimetres.js", SCRIPT),
    asset!("camera_layer.js", SCRIPT),
    asset!("placing.js", SCRIPT),
    asset!("drawing_source.js", SCRIPT),
    asset!("draw_panel.js", SCRIPT),
    asset!("jobs_panel.js", SCRIPT),
    asset!("pens_panel.js", SCRIPT),
    asset!("arm_panel.js", SCRIPT),
    asset!("joint_bars.js", SCRIPT),
    asset!("servo_lines.js", SCRIPT),
    asset!("sparkline.js", SCRIPT),
    asset!("side_view.js", SCRIPT),
    asset!("space_view.js", SCRIPT),
    asset!("setup_panel.js", SCRIPT),
    asset!("jog_panel.js", SCRIPT),
    asset!("first_line_panel.js", SCRIPT),
    asset!("calibrations_panel.js", SCRIPT),
    asset!("residuals.js", SCRIPT),
    asset!("doctor_panel.js", SCRIPT),
    asset!("notices.js", SCRIPT),
];

/// The modules that the view in MCP clients shares with the page, each after those that it imports.
const VIEW_MODULES: [&str; 5] = [
    "elements.js",
    "shapes.js",
    "lines.js",
    "condition.js",
    "sheet.js",
];

/// Returns the head and the paper as one script without modules, for a page that can load nothing.
#[must_use]
pub fn view_script() -> String {
    let modules = VIEW_MODULES.iter().map(|name| file_text(name));
    let lines = modules.flat_map(str::lines);
    let own = lines.filter(|line| !line.starts_with("import "));
    without_comments(own.map(|line| line.strip_prefix("export ").unwrap_or(line)))
}

/// Returns the style of the head's colours and of the paper.
#[must_use]
pub fn view_style() -> &'static str {
    file_text("common.css")
}

fn file_text(name: &str) -> &'static str {
    let file = ASSETS.iter().find(|asset| asset.name == name);
    file.map_or("", |asset| asset.text)
}

/// A file as browsers get it.
pub(super) struct SentAsset {
    tag: String,
    mime: &'static str,
    text: Bytes,
}

impl PageAsset {
    /// Returns it as it is sent: scripts without their lines of comment.
    pub(super) fn as_sent(&self) -> SentAsset {
        let text = match self.mime {
            SCRIPT => Bytes::from(without_comments(self.text.lines())),
            _ => Bytes::from_static(self.text.as_bytes()),
        };
        SentAsset {
            tag: format!("\"{}\"", blake3::hash(&text).to_hex()),
            mime: self.mime,
            text,
        }
    }
}

/// Returns the lines of a script that are not comment alone.
fn without_comments<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| [line, "\n"]).collect()
}

/// Answers with a file, or with 304 if the browser has it already.
pub(super) fn serve(asset: &SentAsset, headers: &HeaderMap) -> Response {
    let cached_tag = headers.get(IF_NONE_MATCH);
    let is_cached =
        cached_tag.is_some_and(|cached_tag| cached_tag.as_bytes() == asset.tag.as_bytes());
    let asset_headers = [
        (ETAG, asset.tag.as_str()),
        // Revalidated each time, because a newer node has another page.
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_TYPE, asset.mime),
    ];
    match is_cached {
        true => (StatusCode::NOT_MODIFIED, asset_headers).into_response(),
        false => (asset_headers, asset.text.clone()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest total size of the page's files.
    const BYTES_MAX: usize = 150 * 1_000;

    #[test]
    fn the_page_is_small_and_loads_nothing_else() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.as_sent().text.len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes} bytes");
        for asset in ASSETS {
            let foreign = asset
                .text
                .split("://")
                .skip(1)
                .filter(|rest| !rest.starts_with("www.w3.org/2000/svg"));
            assert_eq!(foreign.count(), 0, "{} names another address", asset.name);
            for inline in ["<script>", "<style", " style=", "onclick=", "innerHTML"] {
                assert!(!asset.text.contains(inline), "{}: {inline}", asset.name);
            }
        }
    }
}
