//! Parses the lines of a DXF into entities: group codes with their values, by section.

use std::cmp::Ordering;

use super::super::DesignError;
use super::super::design_error::quoted;

/// An entity, layer or block header: its kind and its groups.
#[derive(Clone, Debug, Default)]
pub(super) struct DxfEntity<'t> {
    pub(super) kind: &'t str,
    /// Line of the file that names its kind.
    pub(super) line: usize,
    groups: Vec<(i32, &'t str)>,
}

impl<'t> DxfEntity<'t> {
    pub(super) fn text(&self, code: i32) -> Option<&'t str> {
        let mut values = self.groups.iter().filter(|(group, _)| *group == code);
        values.next().map(|(_, value)| *value)
    }

    /// Returns all texts of this code, in order.
    pub(super) fn texts(&self, code: i32) -> impl Iterator<Item = &'t str> {
        let values = self.groups.iter().filter(move |(group, _)| *group == code);
        values.map(|(_, value)| *value)
    }

    /// Returns the first number of this code, or a default if there is none.
    ///
    /// # Errors
    /// A value that is not a finite number.
    pub(super) fn number(&self, code: i32, default: f64) -> Result<f64, DesignError> {
        self.text(code)
            .map_or(Ok(default), |text| self.parse(code, text))
    }

    /// Returns all numbers of this code, in order.
    pub(super) fn numbers(&self, code: i32) -> Result<Vec<f64>, DesignError> {
        let values = self.groups.iter().filter(|(group, _)| *group == code);
        values.map(|(_, text)| self.parse(code, text)).collect()
    }

    /// Returns the first number of this code, for which DXF defines no default.
    pub(super) fn required(&self, code: i32) -> Result<f64, DesignError> {
        let text = self.text(code).ok_or_else(|| self.missing_group(code))?;
        self.parse(code, text)
    }

    /// Returns the point with x of this code and y of the code ten above it.
    pub(super) fn point(&self, code: i32) -> Result<[f64; 2], DesignError> {
        Ok([self.required(code)?, self.required(code + 10)?])
    }

    /// Returns the direction with x of this code and y of the code ten above it; `None` without it, or
    /// without a length.
    pub(super) fn direction(&self, code: i32) -> Result<Option<[f64; 2]>, DesignError> {
        let direction = [self.number(code, 0.0)?, self.number(code + 10, 0.0)?];
        let has_length = direction.iter().any(|along| along.abs() > 0.0);
        Ok(has_length.then_some(direction))
    }

    /// Returns all points of these codes, in order.
    pub(super) fn points(&self, code: i32) -> Result<Vec<[f64; 2]>, DesignError> {
        let (xs, ys) = (self.numbers(code)?, self.numbers(code + 10)?);
        match xs.len().cmp(&ys.len()) {
            Ordering::Less => Err(self.missing_group(code)),
            Ordering::Equal => Ok(xs.into_iter().zip(ys).map(|(x, y)| [x, y]).collect()),
            Ordering::Greater => Err(self.missing_group(code + 10)),
        }
    }

    /// Returns a value for each point of a vertex list, 0 for a point that has none.
    pub(super) fn numbers_by_point(&self, code: i32) -> Result<Vec<f64>, DesignError> {
        let mut values = Vec::new();
        for (group, text) in &self.groups {
            match *group {
                10 => values.push(0.0),
                group if group == code => {
                    if let Some(last) = values.last_mut() {
                        *last = self.parse(code, text)?;
                    }
                }
                _ => {}
            }
        }
        Ok(values)
    }

    pub(super) fn flags(&self, code: i32) -> Result<i64, DesignError> {
        let number = self.number(code, 0.0)?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "saturates, and flags are small"
        )]
        let flags = number as i64;
        Ok(flags)
    }

    pub(super) fn place(&self) -> String {
        format!("{} on line {}", self.kind, self.line)
    }

    fn missing_group(&self, code: i32) -> DesignError {
        let accepted = "a number; the file is damaged. Next: save or copy it again";
        DesignError::syntax(self.place(), format!("no group {code}"), accepted)
    }

    fn parse(&self, code: i32, text: &str) -> Result<f64, DesignError> {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| {
            let found = format!("{} as its group {code}", quoted(text));
            DesignError::syntax(self.place(), found, "a number")
        })
    }
}

/// A section's name and its entities, in file order.
#[derive(Debug)]
pub(super) struct DxfSection<'t> {
    pub(super) name: &'t str,
    pub(super) entities: Vec<DxfEntity<'t>>,
}

/// Group of a part of a text that goes on in the next.
pub(super) const MTEXT_PART: i32 = 3;

/// Returns a group's value without the blanks around it, which belong to a part of a longer text.
fn trimmed(code: i32, value: &str) -> &str {
    match code {
        MTEXT_PART => value,
        _ => value.trim(),
    }
}

/// Reads the sections of a file. The header's variables are entities of the kind `9`, such as `$INSUNITS`.
///
/// # Errors
/// A line that is not a group, more entities than allowed, or a file without its end.
pub(super) fn sections(
    text: &str,
    elements_max: usize,
) -> Result<Vec<DxfSection<'_>>, DesignError> {
    let mut sections: Vec<DxfSection<'_>> = Vec::new();
    let (mut is_named, mut count) = (false, 0);
    let mut lines = text.lines().enumerate();
    while let Some((index, code)) = lines.next() {
        let code = code.trim();
        if code.is_empty() && lines.clone().all(|(_, line)| line.trim().is_empty()) {
            break;
        }
        let number = code.parse::<i32>().map_err(|_| {
            let place = format!("line {}", index + 1);
            DesignError::syntax(place, quoted(code), "a group code of a text DXF, such as 0")
        })?;
        let Some((value_index, value)) = lines.next() else {
            break;
        };
        let value = trimmed(number, value);
        match (number, value) {
            (0, "SECTION") => {
                is_named = false;
                sections.push(DxfSection {
                    name: "",
                    entities: Vec::new(),
                });
                continue;
            }
            (0, "EOF") => return Ok(sections),
            (0, "ENDSEC") => continue,
            _ => {}
        }
        let Some(section) = sections.last_mut() else {
            continue;
        };
        match number {
            2 if !is_named => {
                (section.name, is_named) = (value, true);
            }
            0 | 9 => {
                count += 1;
                if count > elements_max {
                    return Err(DesignError::TooMany {
                        at: format!("line {}", value_index + 1),
                        what: "entities",
                        max: elements_max,
                    });
                }
                section.entities.push(DxfEntity {
                    kind: value,
                    line: value_index + 1,
                    groups: Vec::new(),
                });
            }
            999 => {}
            code => {
                if let Some(entity) = section.entities.last_mut() {
                    entity.groups.push((code, value));
                }
            }
        }
    }
    Err(DesignError::syntax(
        format!("the file is cut off after line {}", text.lines().count()),
        "no EOF",
        "a complete DXF with its last line. Next: save or copy the file again",
    ))
}
