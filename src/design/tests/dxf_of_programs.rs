//! A DXF written by ezdxf (`dxf/ezdxf.dxf`): a frame of 60 by 40 mm on the layer `1 outline`,
//! circles, an arc and blocks on `2 marks`, a line on a layer that is off, and an MTEXT below its corner.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::f64::consts::PI;

use steadyhand_design::{DesignCaps, load};

#[test]
fn dxf_of_ezdxf_draws_its_entities() {
    let bytes = include_bytes!("dxf/ezdxf.dxf");
    let design = load("ezdxf.dxf", bytes, &DesignCaps::default()).unwrap();
    let expected = [
        (1, 200.0),
        (2, 20.0 * PI),
        (2, 15.0 * PI),
        (2, 10.0 * PI),
        (2, 5.0),
        (2, 10.0),
    ];
    // The letters of the MTEXT come last.
    assert_eq!(design.strokes.len(), expected.len() + 6);
    for (stroke, (pen, length_mm)) in design.strokes.iter().zip(expected) {
        assert_eq!(stroke.pen, Some(pen));
        assert!(
            (stroke.length_mm() - length_mm).abs() < 0.1,
            "{}",
            stroke.length_mm()
        );
    }
    for (side, expected) in design.page_mm.iter().zip([60.0, 42.5]) {
        assert!((side - expected).abs() < 1e-9, "{:?}", design.page_mm);
    }
    assert_eq!(design.notes, ["not drawn: entities that are hidden (1)"]);
}
