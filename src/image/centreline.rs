//! Follows the middles of a picture's dark lines.

use super::darkness::ToneSheet;
use super::thinning::{PixelMask, crossings};
use base::plane::Point;

/// Darkness by which a line stands out from what is around it, and how far around, as a share of the longer side.
const CONTRAST: f64 = 0.12;
const AROUND: usize = 16;

/// Rounds in which the steps of pixels are smoothed.
const SMOOTHINGS: usize = 3;

/// Rounds in which short side branches are taken off.
const PRUNINGS: usize = 2;

/// Returns the middles of dark lines; a path of one point is a dot.
pub(crate) fn paths(sheet: &ToneSheet) -> Vec<Vec<Point>> {
    let [width, height] = sheet.map().size();
    let reach = (width.max(height) / AROUND).max(1);
    let dark = sheet.map().darker_than_around(reach, CONTRAST);
    let thickness = thickness(&dark, width);
    let mut mask = PixelMask::new(width, dark);
    mask.thin();
    for _ in 0..PRUNINGS {
        prune(&mut mask, &thickness);
        mask.thin();
    }
    let [cell_x, cell_y] = sheet.cell_mm();
    let place = |index: usize| {
        let [x, y] = [index % width, index / width].map(|cell| cell as f64 + 0.5);
        [x * cell_x, y * cell_y]
    };
    let walks = walks(&mask).into_iter();
    walks
        .map(|walk| smoothed(walk.into_iter().map(place).collect()))
        .collect()
}

/// Returns for each dark pixel the number of pixels to the nearest light one, counted as a king goes.
fn thickness(dark: &[bool], width: usize) -> Vec<usize> {
    let mut distance: Vec<usize> = dark
        .iter()
        .map(|&dark| if dark { usize::MAX / 2 } else { 0 })
        .collect();
    let nearest = |distance: &[usize], index: usize, before: [Option<usize>; 4]| {
        let known = before
            .into_iter()
            .flatten()
            .filter_map(|at| distance.get(at));
        let own = distance.get(index).copied().unwrap_or(0);
        own.min(known.min().map_or(usize::MAX, |least| least + 1))
    };
    for index in 0..dark.len() {
        let x = index % width;
        let above = index.checked_sub(width);
        let before = [
            above,
            above.filter(|_| x > 0).and_then(|at| at.checked_sub(1)),
            above.filter(|_| x + 1 < width).map(|at| at + 1),
            (x > 0).then(|| index - 1),
        ];
        let found = nearest(&distance, index, before);
        if let Some(distance) = distance.get_mut(index) {
            *distance = found;
        }
    }
    for index in (0..dark.len()).rev() {
        let x = index % width;
        let below = Some(index + width).filter(|at| *at < dark.len());
        let before = [
            below,
            below.filter(|_| x > 0).map(|at| at - 1),
            below
                .filter(|at| x + 1 < width && at + 1 < dark.len())
                .map(|at| at + 1),
            (x + 1 < width).then(|| index + 1),
        ];
        let found = nearest(&distance, index, before);
        if let Some(distance) = distance.get_mut(index) {
            *distance = found;
        }
    }
    distance
}

/// Takes off branches that end within the thickness of the line that they leave: they come from its rough edge.
fn prune(mask: &mut PixelMask, thickness: &[usize]) {
    let ends: Vec<usize> = mask
        .indices()
        .filter(|&at| lines_at(mask, at) == 1)
        .collect();
    for end in ends {
        let walk = walk_from(mask, end, None);
        let Some(&last) = walk.last() else {
            continue;
        };
        let bound = thickness.get(last).copied().unwrap_or(0) + 1;
        if lines_at(mask, last) > 2 && walk.len() <= bound {
            let branch = walk.iter().take(walk.len() - 1);
            branch.for_each(|&index| mask.clear(index));
        }
    }
}

/// Returns the number of lines that meet at a pixel.
fn lines_at(mask: &PixelMask, index: usize) -> usize {
    crossings(&mask.circle(index).map(|one| one.is_some()))
}

/// Returns every line between ends and meeting points, then the closed ones, as pixels in order.
fn walks(mask: &PixelMask) -> Vec<Vec<usize>> {
    let mut left = mask.clone();
    let mut walks = Vec::new();
    let nodes: Vec<usize> = mask
        .indices()
        .filter(|&at| lines_at(mask, at) != 2)
        .collect();
    let is_node = |index: usize| nodes.binary_search(&index).is_ok();
    for &node in &nodes {
        for next in mask.circle(node).into_iter().flatten() {
            if is_node(next) {
                // Neighbouring nodes are joined once, from the first of them.
                if node < next {
                    walks.push(vec![node, next]);
                }
            } else if left.is_set(next) {
                let mut walk = vec![node];
                walk.extend(walk_from(&left, next, Some(node)));
                walk.iter()
                    .filter(|&&at| !is_node(at))
                    .for_each(|&at| left.clear(at));
                walks.push(walk);
            }
        }
        if lines_at(mask, node) == 0 && mask.circle(node).into_iter().flatten().next().is_none() {
            walks.push(vec![node]);
        }
    }
    for &node in &nodes {
        left.clear(node);
    }
    let rest: Vec<usize> = left.indices().collect();
    for start in rest {
        if left.is_set(start) {
            let mut walk = walk_from(&left, start, None);
            walk.iter().for_each(|&index| left.clear(index));
            // Fewer pixels are what another line passed by.
            if walk.len() > 2 {
                walk.push(start);
                walks.push(walk);
            }
        }
    }
    walks
}

/// Follows a line from a pixel to its end or to where lines meet.
fn walk_from(mask: &PixelMask, start: usize, came_from: Option<usize>) -> Vec<usize> {
    let mut walk = vec![start];
    let mut before = came_from;
    let mut at = start;
    while at == start || lines_at(mask, at) == 2 {
        let is_new = |next: &usize| {
            Some(*next) != before && !walk.iter().rev().take(3).any(|seen| seen == next)
        };
        let steps: Vec<usize> = mask
            .circle(at)
            .into_iter()
            .flatten()
            .filter(is_new)
            .collect();
        // Where lines meet, the meeting point comes before the beginnings of other lines.
        let is_meeting = |next: &&usize| lines_at(mask, **next) != 2;
        let Some(&next) = steps.iter().find(is_meeting).or(steps.first()) else {
            break;
        };
        if next == start {
            break;
        }
        walk.push(next);
        before = Some(at);
        at = next;
    }
    walk
}

/// Smooths the steps of pixels; ends stay, and a closed line stays closed.
fn smoothed(mut path: Vec<Point>) -> Vec<Point> {
    let is_closed = path.len() > 3 && path.first() == path.last();
    for _ in 0..SMOOTHINGS {
        let mut next = path.clone();
        for (index, trio) in path.windows(3).enumerate() {
            if let ([[ax, ay], [bx, by], [cx, cy]], Some(middle)) = (trio, next.get_mut(index + 1))
            {
                *middle = [(ax + 2.0 * bx + cx) / 4.0, (ay + 2.0 * by + cy) / 4.0];
            }
        }
        if is_closed
            && let ([[bx, by], [cx, cy], ..], [.., [ax, ay], _]) =
                (path.as_slice(), path.as_slice())
        {
            let joint = [(ax + 2.0 * bx + cx) / 4.0, (ay + 2.0 * by + cy) / 4.0];
            if let Some(first) = next.first_mut() {
                *first = joint;
            }
            if let Some(last) = next.last_mut() {
                *last = joint;
            }
        }
        path = next;
    }
    path
}
