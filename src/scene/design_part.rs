//! Keeps chosen layers and strokes of a design, in their places.

use super::DesignReplacement;
use super::scene_fault::SceneFault;
use base::wording::count;
use design::Design;

/// Layers and strokes of a design that are drawn.
pub(super) struct DesignPart<'r> {
    /// By name or number; none named are all.
    layers: &'r [String],
    /// First and last, counted from 1 in the author's order.
    strokes: Option<[usize; 2]>,
}

impl<'r> DesignPart<'r> {
    /// Returns the part that a replacement names; `None` for all of it.
    pub(super) fn of(replacement: &'r DesignReplacement) -> Option<Self> {
        let (layers, strokes) = (replacement.layers.as_slice(), replacement.strokes);
        (!layers.is_empty() || strokes.is_some()).then_some(Self { layers, strokes })
    }

    /// Takes all other strokes out of a design, and notes what is left.
    ///
    /// # Errors
    /// Layers and strokes that it does not have.
    pub(super) fn keep_in(&self, design: &mut Design) -> Result<(), SceneFault> {
        let of = design.strokes.len();
        let [first, last] = self.strokes.unwrap_or([1, of]);
        if first < 1 || first > last || first > of {
            return Err(SceneFault::StrokeRange { first, last, of });
        }
        let layers = self.chosen_layers(design)?;
        let mut number = 0;
        design.strokes.retain(|stroke| {
            number += 1;
            let is_of_layer = |layers: &Vec<String>| {
                (stroke.layer.as_ref()).is_some_and(|layer| layers.contains(layer))
            };
            (first..=last).contains(&number) && layers.as_ref().is_none_or(is_of_layer)
        });
        let left = design.strokes.len();
        if left == 0 {
            return Err(SceneFault::EmptyPart);
        }
        let range = self.strokes.map(|_| format!("{first} to {}", last.min(of)));
        let layers = layers.map(|layers| format!("of layer {}", layers.join(", ")));
        let what: Vec<String> = range.into_iter().chain(layers).collect();
        let strokes = count(of, "stroke");
        let note = format!("{left} of {strokes} drawn: only those {}", what.join(" "));
        design.notes.push(note);
        Ok(())
    }

    /// Returns the full names of the layers that are meant; `None` for all.
    fn chosen_layers(&self, design: &Design) -> Result<Option<Vec<String>>, SceneFault> {
        if self.layers.is_empty() {
            return Ok(None);
        }
        let mut known: Vec<&str> = Vec::new();
        for layer in design.strokes.iter().filter_map(|s| s.layer.as_deref()) {
            if !known.contains(&layer) {
                known.push(layer);
            }
        }
        let mut chosen: Vec<String> = Vec::new();
        for named in self.layers {
            let meant = meant_layers(named, &known);
            if meant.is_empty() {
                return Err(SceneFault::NoLayer {
                    named: named.clone(),
                    layers: known.into_iter().map(str::to_owned).collect(),
                });
            }
            chosen.extend(meant.into_iter().map(str::to_owned));
        }
        Ok(Some(chosen))
    }
}

/// Returns the layers that a word means: those of that name; of that number, or at that place in the file if none has a number;
/// or of that name behind a number.
fn meant_layers<'k>(named: &str, known: &[&'k str]) -> Vec<&'k str> {
    let wanted = named.trim().to_lowercase();
    let all = || known.iter().copied();
    let is_name = |name: &str| name.trim().to_lowercase() == wanted;
    let by_name: Vec<&str> = all().filter(|name| is_name(name)).collect();
    if !by_name.is_empty() {
        return by_name;
    }
    let number_of = |name: &str| design::layer_number(name).0;
    if let Ok(number) = wanted.parse::<u16>() {
        let has_numbers = all().any(|name| number_of(name).is_some());
        let place = usize::from(number).checked_sub(1);
        return match has_numbers {
            true => all()
                .filter(|name| number_of(name) == Some(number))
                .collect(),
            false => place
                .and_then(|place| known.get(place))
                .copied()
                .into_iter()
                .collect(),
        };
    }
    all()
        .filter(|name| is_name(design::layer_number(name).1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_meant_by_its_name_its_number_or_its_place() {
        let numbered = ["2-sky", "! 3 gold", "sea", "pen 3 red"];
        for (named, expected) in [
            ("2-SKY", &["2-sky"][..]),
            ("2", &["2-sky"]),
            ("3", &["! 3 gold", "pen 3 red"]),
            ("sky", &["2-sky"]),
            (" gold ", &["! 3 gold"]),
            ("sea", &["sea"]),
            ("1", &[]),
            ("land", &[]),
        ] {
            assert_eq!(meant_layers(named, &numbered), expected, "{named}");
        }
        let unnumbered = ["outline", "shade"];
        assert_eq!(meant_layers("2", &unnumbered), ["shade"]);
        assert!(meant_layers("0", &unnumbered).is_empty());
    }
}
