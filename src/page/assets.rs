//! The files that a browser loads, compiled in unchanged.

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
    asset!("page.css", STYLE),
    asset!("parts.css", STYLE),
    asset!("icon.svg", "image/svg+xml"),
    asset!("stop.js", SCRIPT),
    asset!("page.js", SCRIPT),
    asset!("answers.js", SCRIPT),
    asset!("door.js", SCRIPT),
    asset!("commands.js", SCRIPT),
    asset!("elements.js", SCRIPT),
    asset!("feed.js", SCRIPT),
    asset!("shapes.js", SCRIPT),
    asset!("tabs.js", SCRIPT),
    asset!("head.js", SCRIPT),
    asset!("happened.js", SCRIPT),
    asset!("lines.js", SCRIPT),
    asset!("paper.js", SCRIPT),
    asset!("scrub.js", SCRIPT),
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

/// Shapes of the states, as a script that another page can use without a module.
#[must_use]
pub fn state_shapes() -> String {
    include_str!("assets/shapes.js").replace("export ", "")
}

/// Answers with a file, or with 304 if the browser has it already.
pub(super) fn serve(asset: &'static PageAsset, headers: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", blake3::hash(asset.text.as_bytes()).to_hex());
    let cached_tag = headers.get(IF_NONE_MATCH);
    let is_cached = cached_tag.is_some_and(|cached_tag| cached_tag.as_bytes() == tag.as_bytes());
    let asset_headers = [
        (ETAG, tag.as_str()),
        // Revalidated each time, because a newer node has another page.
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_TYPE, asset.mime),
    ];
    match is_cached {
        true => (StatusCode::NOT_MODIFIED, asset_headers).into_response(),
        false => (asset_headers, asset.text).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest total size of the page's files.
    const BYTES_MAX: usize = 150 * 1_000;

    #[test]
    fn the_page_is_small_and_loads_nothing_else() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.text.len()).sum();
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
