//! Lines of a DXF → entities: group codes with their values, by sections.

use std::cmp::Ordering;

use super::super::DesignError;
use super::super::design_error::quoted;

/// An entity, a layer or a block's head: its kind and its groups.
#[derive(Clone, Debug, Default)]
pub(super) struct DxfEntity<'t> {
    pub(super) kind: &'t str,
    /// Line of its kind in the file.
    pub(super) line: usize,
    groups: Vec<(i32, &'t str)>,
}

impl<'t> DxfEntity<'t> {
    pub(super) fn text(&self, code: i32) -> Option<&'t str> {
        let mut values = self.groups.iter().filter(|(own, _)| *own == code);
        values.next().map(|(_, value)| *value)
    }

    /// The first number of this code, or another where there is none.
    ///
    /// # Errors
    /// A value that is no finite number.
    pub(super) fn number(&self, code: i32, otherwise: f64) -> Result<f64, DesignError> {
        self.text(code)
            .map_or(Ok(otherwise), |text| self.parsed(code, text))
    }

    /// All numbers of this code, in order.
    pub(super) fn numbers(&self, code: i32) -> Result<Vec<f64>, DesignError> {
        let values = self.groups.iter().filter(|(own, _)| *own == code);
        values.map(|(_, text)| self.parsed(code, text)).collect()
    }

    /// The first number of this code, for which DXF defines no default.
    pub(super) fn needed(&self, code: i32) -> Result<f64, DesignError> {
        let text = self.text(code).ok_or_else(|| self.lacks(code))?;
        self.parsed(code, text)
    }

    /// The point of this code and of the one ten above it.
    pub(super) fn point(&self, code: i32) -> Result<[f64; 2], DesignError> {
        Ok([self.needed(code)?, self.needed(code + 10)?])
    }

    /// All points of these codes, in order.
    pub(super) fn points(&self, code: i32) -> Result<Vec<[f64; 2]>, DesignError> {
        let (xs, ys) = (self.numbers(code)?, self.numbers(code + 10)?);
        match xs.len().cmp(&ys.len()) {
            Ordering::Less => Err(self.lacks(code)),
            Ordering::Equal => Ok(xs.into_iter().zip(ys).map(|(x, y)| [x, y]).collect()),
            Ordering::Greater => Err(self.lacks(code + 10)),
        }
    }

    /// Groups of a vertex list: a value for each point, 0 where it has none.
    pub(super) fn of_each_point(&self, code: i32) -> Result<Vec<f64>, DesignError> {
        let mut values = Vec::new();
        for (own, text) in &self.groups {
            match *own {
                10 => values.push(0.0),
                own if own == code => {
                    if let Some(last) = values.last_mut() {
                        *last = self.parsed(code, text)?;
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

    fn lacks(&self, code: i32) -> DesignError {
        let accepted = "a number there: the file is damaged, save or copy it again";
        DesignError::syntax(self.place(), format!("no group {code}"), accepted)
    }

    fn parsed(&self, code: i32, text: &str) -> Result<f64, DesignError> {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| {
            let found = format!("{} as its group {code}", quoted(text));
            DesignError::syntax(self.place(), found, "a number")
        })
    }
}

/// A section's name and what is in it, in the order of the file.
#[derive(Debug)]
pub(super) struct DxfSection<'t> {
    pub(super) name: &'t str,
    pub(super) entities: Vec<DxfEntity<'t>>,
}

/// Reads the sections of a file. The header's variables are entities of the kind `9`, such as `$INSUNITS`.
///
/// # Errors
/// A line that is no group, more entities than allowed, or a file without its end.
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
        let Some((at, value)) = lines.next() else {
            break;
        };
        let value = value.trim();
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
                        at: format!("line {}", at + 1),
                        what: "entities",
                        max: elements_max,
                    });
                }
                section.entities.push(DxfEntity {
                    kind: value,
                    line: at + 1,
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
        "a whole DXF, which ends with it: save or copy the file again",
    ))
}
