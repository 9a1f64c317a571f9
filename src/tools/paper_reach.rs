//! How much of a paper that an operator names a pen can reach.

use base::units::short;
use plan::{PlanError, PlanObserver, ReachMap};
use scene::{PaperFormat, Scene};

/// Says how much of a paper the first pen of a scene reaches, and where. It takes a moment.
pub(super) fn words(
    paper: PaperFormat,
    scene: &Scene,
    observer: &dyn PlanObserver,
) -> Result<String, PlanError> {
    let map = plan::reach(scene, 0, observer)?;
    let [width, height] = scene.surface.size_mm();
    let named = format!(
        "paper {} of {} by {} mm",
        paper.name(),
        short(width),
        short(height)
    );
    let share = map.shares.last().map_or(0.0, |(_, share)| *share);
    let cone_deg = map.shares.last().map_or(0.0, |(tilt_deg, _)| *tilt_deg);
    Ok(match reached(&map, cone_deg, [width, height]) {
        Some([[left, right], [low, high]]) if share < 0.995 => format!(
            "{named}: the pen reaches {:.0} % of it, between x {} and {} mm, y {} and {} mm",
            share * 1e2,
            short(left),
            short(right),
            short(low),
            short(high)
        ),
        Some(_) => format!("{named}: the pen reaches all of it"),
        None => format!("{named}: the pen cannot reach any of it"),
    })
}

/// Returns the box around the places of a sheet that are reached within a lean: x from and to, then y.
fn reached(map: &ReachMap, cone_deg: f64, [width, height]: [f64; 2]) -> Option<[[f64; 2]; 2]> {
    let columns = map.size[0].max(1);
    let at = |start_mm: f64, steps: usize| start_mm + steps as f64 * map.step_mm;
    let places = map.spots.iter().enumerate().filter(|(_, spot)| {
        spot.tilt_deg
            .is_some_and(|tilt_deg| tilt_deg <= cone_deg + 1e-6)
    });
    let places = places.map(|(index, _)| {
        let [low_x, low_y] = map.low_mm;
        [at(low_x, index % columns), at(low_y, index / columns)]
    });
    let on_sheet = places.filter(|[x, y]| (0.0..=width).contains(x) && (0.0..=height).contains(y));
    on_sheet.fold(None, |found, [x, y]| {
        let [[left, right], [low, high]] = found.unwrap_or([[x, x], [y, y]]);
        Some([[left.min(x), right.max(x)], [low.min(y), high.max(y)]])
    })
}
