//! Collects the clip paths of an SVG.

use usvg::{ClipPath, Group, Node, Transform};

use super::super::DesignError;
use super::super::design_error::quoted;
use super::super::fill_area::{FilledArea, WorkBudget};
use super::paint::{PageTransform, outlines};

/// Most points of a clip path.
const POINTS_MAX: usize = 100_000;

/// Adds the areas that a group is clipped to. What is drawn must lie inside an area of every list.
pub(super) fn push(
    group: &Group,
    page: &PageTransform,
    clips: &mut Vec<Vec<FilledArea>>,
    work: &mut WorkBudget,
) -> Result<(), DesignError> {
    let mut next = group.clip_path();
    while let Some(clip) = next {
        let mut areas = Vec::new();
        let transform = page.transform.pre_concat(clip.transform());
        collect_areas(clip, clip.root(), page, transform, &mut areas)?;
        // The areas are made anew for every group, so limit how often.
        let edges: usize = areas.iter().map(|area| area.edges.len()).sum();
        let spent = work.spend(edges.saturating_mul(64));
        spent.ok_or_else(|| refuse(clip, "a clip path that is used too often"))?;
        clips.push(areas);
        next = clip.clip_path();
    }
    Ok(())
}

fn collect_areas(
    clip: &ClipPath,
    group: &Group,
    page: &PageTransform,
    transform: Transform,
    areas: &mut Vec<FilledArea>,
) -> Result<(), DesignError> {
    if group.clip_path().is_some() {
        return Err(refuse(clip, "a clip path with its own clip path"));
    }
    for node in group.children() {
        match node {
            Node::Group(inner) => {
                let transform = transform.pre_concat(inner.transform());
                collect_areas(clip, inner, page, transform, areas)?;
            }
            Node::Path(path) if path.is_visible() => {
                let page = page.with(transform);
                page.refuse_far(path, &name(clip))?;
                let lines = outlines(path, &page, true, POINTS_MAX);
                let lines =
                    lines.ok_or_else(|| refuse(clip, "a clip path with too many points"))?;
                let fill_rule = path
                    .fill()
                    .map_or(usvg::FillRule::NonZero, usvg::Fill::rule);
                areas.push(FilledArea::new(&lines, fill_rule));
            }
            Node::Path(_) | Node::Image(_) | Node::Text(_) => {}
        }
    }
    Ok(())
}

fn refuse(clip: &ClipPath, found: &str) -> DesignError {
    DesignError::unsupported(
        name(clip),
        found,
        "clip with simple shapes, or cut the paths themselves",
    )
}

fn name(clip: &ClipPath) -> String {
    format!("clipPath {}", quoted(clip.id()))
}
