//! Reads layers and colours of a DXF: which pen draws an entity, and which layers are off.

use std::collections::HashMap;

use super::super::{DesignError, pen_number_in};
use super::group_codes::{DxfEntity, DxfSection};

/// Colours 1 to 9 of AutoCAD's index; 7 is black on paper.
const COLOURS: [[u8; 3]; 9] = [
    [255, 0, 0],
    [255, 255, 0],
    [0, 255, 0],
    [0, 255, 255],
    [0, 0, 255],
    [255, 0, 255],
    [0, 0, 0],
    [128, 128, 128],
    [192, 192, 192],
];

/// Brightness of the ten shades of a hue, each for two of them.
const SHADES: [f64; 5] = [1.0, 0.65, 0.5, 0.3, 0.15];

/// Colour indices that stand for the colour of the block or of the layer.
const BY_BLOCK: i64 = 0;
const BY_LAYER: i64 = 256;
/// Colour of an entity outside blocks that takes the colour of its block: black on paper.
pub(super) const OUTSIDE_BLOCKS: Option<[u8; 3]> = Some([0, 0, 0]);

#[derive(Clone, Copy)]
struct DxfLayer {
    colour: Option<[u8; 3]>,
    is_shown: bool,
}

/// The layers by name, in lower case.
pub(super) struct DxfLayers(HashMap<String, DxfLayer>);

impl DxfLayers {
    pub(super) fn of(sections: &[DxfSection<'_>]) -> Result<Self, DesignError> {
        let mut layers = HashMap::new();
        let tables = sections.iter().filter(|section| section.name == "TABLES");
        for entity in tables.flat_map(|section| &section.entities) {
            if entity.kind != "LAYER" {
                continue;
            }
            let colour = entity.flags(62)?;
            let layer = DxfLayer {
                colour: true_colour(entity)?.or_else(|| index_colour(colour.abs())),
                // Switched off, or frozen.
                is_shown: colour >= 0 && entity.flags(70)? & 1 == 0,
            };
            layers.insert(lower_case(entity.text(2).unwrap_or("")), layer);
        }
        Ok(Self(layers))
    }

    pub(super) fn is_shown(&self, name: &str) -> bool {
        self.find(name).is_none_or(|layer| layer.is_shown)
    }

    fn find(&self, name: &str) -> Option<&DxfLayer> {
        self.0.get(&lower_case(name))
    }

    /// Returns the colour of an entity on this layer, in a block of this colour.
    pub(super) fn colour_of(
        &self,
        entity: &DxfEntity<'_>,
        layer: &str,
        block_colour: Option<[u8; 3]>,
    ) -> Result<Option<[u8; 3]>, DesignError> {
        if let Some(colour) = true_colour(entity)? {
            return Ok(Some(colour));
        }
        let index = match entity.text(62) {
            Some(_) => entity.flags(62)?,
            None => BY_LAYER,
        };
        if index == BY_BLOCK {
            return Ok(block_colour);
        }
        let layer_colour = || self.find(layer).and_then(|layer| layer.colour);
        Ok(index_colour(index).or_else(layer_colour))
    }
}

/// Returns the name of a layer or block in lower case, in which names are compared.
pub(super) fn lower_case(name: &str) -> String {
    name.to_lowercase()
}

/// Returns the pen number at the start of a layer's name, counted from 1. The layer `0`, which
/// every file has, names no pen.
pub(super) fn pen_of(name: &str) -> Option<u16> {
    pen_number_in(&lower_case(name.trim())).filter(|pen| *pen > 0)
}

fn true_colour(entity: &DxfEntity<'_>) -> Result<Option<[u8; 3]>, DesignError> {
    if entity.text(420).is_none() {
        return Ok(None);
    }
    let [.., red, green, blue] = entity.flags(420)?.to_be_bytes();
    Ok(Some([red, green, blue]))
}

/// Returns a colour of the AutoCAD index: from 10 on, hues 15° apart in ten shades each, every
/// second one paler.
fn index_colour(index: i64) -> Option<[u8; 3]> {
    let index = usize::try_from(index).ok()?;
    if !(1..256).contains(&index) {
        return None;
    }
    if let Some(colour) = COLOURS.get(index - 1) {
        return Some(*colour);
    }
    if index >= 250 {
        let grey = u8::try_from((index - 250) * 40 + 51).unwrap_or(u8::MAX);
        return Some([grey; 3]);
    }
    let (hue, shade) = (index / 10 - 1, index % 10);
    let brightness = SHADES.get(shade / 2)? * 255.0;
    let paleness = if shade % 2 == 1 { 0.5 } else { 0.0 };
    let intensity = |offset: usize| {
        // There are 24 hues: a primary colour is full within four of its own, and fades over four
        // more.
        let steps_away = (hue + 24 - offset) % 24;
        let steps_away = f64::from(u8::try_from(steps_away.min(24 - steps_away)).unwrap_or(0));
        ((8.0 - steps_away) / 4.0).clamp(0.0, 1.0)
    };
    Some([0, 8, 16].map(|offset| {
        let intensity = intensity(offset);
        let value = brightness * (intensity + (1.0 - intensity) * paleness);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 255"
        )]
        let byte = value.round() as u8;
        byte
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_colours_are_near_those_of_a_screen() {
        for (index, colour) in [
            (1, [255, 0, 0]),
            (7, [0, 0, 0]),
            (10, [255, 0, 0]),
            (30, [255, 128, 0]),
            (90, [0, 255, 0]),
            (170, [0, 0, 255]),
            (11, [255, 128, 128]),
        ] {
            assert_eq!(index_colour(index), Some(colour), "{index}");
        }
        assert_eq!(
            (index_colour(0), index_colour(256), index_colour(-3)),
            (None, None, None)
        );
    }

    #[test]
    fn a_layers_number_is_its_pen() {
        for (name, pen) in [
            ("0", None),
            ("1", Some(1)),
            ("2-cut", Some(2)),
            ("pen3", Some(3)),
            ("PEN 4", Some(4)),
            ("walls", None),
        ] {
            assert_eq!(pen_of(name), pen, "{name}");
        }
    }
}
