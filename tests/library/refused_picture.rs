//! `plan.png` shows in red what was refused, where it is on the sheet, and nothing else.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a failing test may panic"
)]

use std::sync::Arc;

use steadyhand::picture::{PlanView, PlannedStroke, REFUSED, SheetLine, TimeStrip, pixel_of};
use steadyhand::plan::SilentObserver;
use steadyhand::scene::file::SheetFile;
use steadyhand::scene::{AxisAlignedBox, KeepOut, Scene, SceneLibrary, SheetStroke, Surface};
use steadyhand::tools::{DrawingPreview, preview_picture};
use steadyhand::units::Finite;
use tiny_skia::Pixmap;

/// The default scene with a sheet that reaches far beyond the arm, and these strokes on it.
fn far_sheet(strokes: &[[[f64; 2]; 2]]) -> Scene {
    let mut scene = Scene::clone(&SceneLibrary::new(None).scene("default", None).unwrap());
    let text = include_str!("../../scenes/default.toml");
    let file: toml::Table = toml::from_str(text).unwrap();
    let mut sheet: SheetFile = file["sheet"].clone().try_into().unwrap();
    sheet.size_mm = [100.0, 500.0].map(|side| Finite::new(side).unwrap());
    scene.surface = Surface::new(&sheet).unwrap();
    let line = |points_mm: &[[f64; 2]; 2]| SheetStroke {
        points_mm: points_mm.to_vec(),
        pen: 0,
        source: "a line".to_owned(),
        pause: None,
    };
    scene.strokes = strokes.iter().map(line).collect();
    scene
}

/// Returns how many pixels around a place of the sheet are red.
fn red_near(scene: &Scene, png: &[u8], at_mm: [f64; 2]) -> usize {
    let line = |stroke: &SheetStroke| PlannedStroke {
        line: SheetLine {
            points_mm: stroke.points_mm.clone(),
            ..SheetLine::default()
        },
        ..PlannedStroke::default()
    };
    let view = PlanView {
        sheet_mm: scene.surface.size_mm(),
        strokes: scene.strokes.iter().map(line).collect(),
        strips: vec![TimeStrip::default(); 3],
        ..PlanView::default()
    };
    let pixels = Pixmap::decode_png(png).unwrap();
    let [x, y] = pixel_of(&view, at_mm);
    let is_red = |(dx, dy): (i32, i32)| {
        let at = |v: f64, by: i32| u32::try_from(v.round() as i32 + by).unwrap();
        let pixel = pixels.pixel(at(x, dx), at(y, dy));
        pixel.is_some_and(|p| [p.red(), p.green(), p.blue()] == REFUSED)
    };
    let around = (-8..=8).flat_map(|dx| (-8..=8).map(move |dy| (dx, dy)));
    around.filter(|by| is_red(*by)).count()
}

/// Tests that what the planner cannot reach and what the gate does not let through is red where it is,
/// and nothing else.
#[test]
fn what_is_refused_is_red_where_it_is() {
    let fine = [[20.0, 20.0], [80.0, 20.0]];
    let kept_out = [[20.0, 60.0], [80.0, 60.0]];
    let far = [[20.0, 450.0], [80.0, 450.0]];
    let mut scene = far_sheet(&[fine, kept_out, far]);
    let [low, high] = [[70.0, 50.0], [30.0, 70.0]].map(|at_mm| scene.surface.at(at_mm).point_m);
    scene.keep_outs.push(KeepOut {
        name: "cup".to_owned(),
        corners: AxisAlignedBox {
            min_m: low.inf(&high),
            max_m: low.sup(&high) + nalgebra::Vector3::z() * 0.01,
        },
    });
    let scene = Arc::new(scene);
    let preview = DrawingPreview::new(&scene, &scene.rest_rad, &SilentObserver).unwrap();
    let rule = |name: &str| preview.refusals.iter().find(|refusal| refusal.rule == name);
    let (planner, gate) = (rule("out_of_reach").unwrap(), rule("keep_out").unwrap());
    let png = preview_picture(&scene, &preview).unwrap();
    let middle = |[from, to]: [[f64; 2]; 2]| [(from[0] + to[0]) / 2.0, from[1].midpoint(to[1])];
    for at_mm in [
        planner.at_mm.unwrap(),
        gate.at_mm.unwrap(),
        middle(far),
        middle(kept_out),
    ] {
        assert!(
            red_near(&scene, &png, at_mm) > 20,
            "{at_mm:?}: {:?}",
            preview.refusals
        );
    }
    for at_mm in [fine[0], middle(fine), [50.0, 250.0]] {
        assert_eq!(red_near(&scene, &png, at_mm), 0, "{at_mm:?}");
    }
}
