//! Options for a drawing that replaces a scene's own design: its source, place, size and look.

use std::ops::RangeInclusive;

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::Args;

use super::choice::{Choice, choice};
use super::design_files::NamedDesign;
use base::units::Finite;
use base::wording::with_statement;
use design::StrokeFont;
use scene::{
    DesignPlacement, DesignReplacement, DesignSource, FillKind, LineAlign, Order, PAGE_SIDE_MM,
    PaperFormat, PauseEvery, PictureStyle, TIDYING_MM,
};

/// Source, place, size and look of a drawing that replaces a scene's own design.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(super) struct PlacementArgs {
    /// Draw this text in single-line letters instead of a file; \n begins a new line
    #[arg(long, value_name = "WORDS", value_parser = words, allow_hyphen_values = true)]
    pub(super) text: Option<String>,
    /// Height of a capital letter of --text [default: 10mm]
    #[arg(long, value_name = "LENGTH", value_parser = length_mm, allow_hyphen_values = true, requires = "text", conflicts_with_all = ["size", "fit", "fit_page"])]
    letter_height: Option<Finite>,
    /// Single-line font of --text, or of all texts of an SVG; `steadyhand fonts` shows them [default: plain]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, value_parser = font)]
    font: Option<String>,
    /// Place of the lines of --text [default: left]
    #[arg(long, requires = "text", value_parser = choice(&ALIGNS))]
    align: Option<LineAlign>,
    /// Break lines of --text that are longer between words [default: the sheet's width, unless it gets a size]
    #[arg(long, value_name = "LENGTH", requires = "text", value_parser = length_mm, allow_hyphen_values = true)]
    width: Option<Finite>,
    /// Distance of the lines of --text in the usual one, 0.5 to 5
    #[arg(long, value_name = "FACTOR", requires = "text", value_parser = factor)]
    line_spacing: Option<Finite>,
    /// How texts of an SVG are drawn [default: lines]
    #[arg(long, value_parser = choice(&TEXTS))]
    text_as: Option<TextShape>,
    /// The longer side of the drawing on the sheet, such as 60mm, 6cm or 2.5in [default: as the file says; as --fit without lengths]
    #[arg(long, value_name = "LENGTH", value_parser = length_mm, allow_hyphen_values = true, conflicts_with_all = ["fit", "fit_page"])]
    size: Option<Finite>,
    /// As large as fits on the sheet at this place and rotation, with a margin for the width of the lines
    #[arg(long)]
    fit: bool,
    /// The same with the file's whole page in place of the box around its lines
    #[arg(long, conflicts_with = "fit")]
    fit_page: bool,
    /// The lower left corner of the drawing as it lies on the sheet, turned, such as 20mm,30mm
    #[arg(long, value_name = "X,Y", value_parser = point_mm, allow_hyphen_values = true)]
    at: Option<[Finite; 2]>,
    /// Centre the drawing on the sheet, which is the default
    #[arg(long, conflicts_with = "at")]
    center: bool,
    /// Turn the drawing about its centre, counter-clockwise, such as 90deg, 90° or 90
    #[arg(long, value_name = "DEGREES", value_parser = rotation_deg, allow_hyphen_values = true)]
    rotate: Option<Finite>,
    /// Draw all of it with the scene's first pen
    #[arg(long)]
    one_pen: bool,
    /// Draw only the strokes of these pens, by number from 1 or by name, such as 1,3
    #[arg(
        long,
        value_name = "PENS",
        value_delimiter = ',',
        conflicts_with = "one_pen"
    )]
    pens: Vec<String>,
    /// Draw only these layers of an SVG or DXF, by name or number, such as 2,sky
    #[arg(long, value_name = "LAYERS", value_delimiter = ',')]
    layers: Vec<String>,
    /// Draw only these strokes, counted from 1 in the file's order, such as 40..80, 40.. or ..80
    #[arg(long, value_name = "FROM..TO", value_parser = stroke_range, allow_hyphen_values = true)]
    strokes: Option<[usize; 2]>,
    /// Paper that lies there instead of the scene's sheet, at its lower left corner; the part that the pen reaches is said
    #[arg(long, value_parser = choice(&PAPERS))]
    paper: Option<PaperFormat>,
    /// Draw copies in columns and rows, such as 3x2; --size is that of one
    #[arg(long, value_name = "COLUMNSxROWS", value_parser = copies, allow_hyphen_values = true)]
    copies: Option<[u16; 2]>,
    /// Pause for a person after each length or time of drawing, such as 500mm or 60s: for pens that dry
    #[arg(long, value_name = "AMOUNT", value_parser = pause_every, allow_hyphen_values = true)]
    pause_every: Option<PauseEvery>,
    /// Fill of an SVG's coloured areas, instead of the scene's
    #[arg(long, value_parser = choice(&FILLS))]
    fill: Option<FillKind>,
    /// Leave out lines that lie behind filled areas of an SVG, white ones too
    #[arg(long)]
    hide: bool,
    /// Leave pixel images out of an SVG, and report which; without this they are refused
    #[arg(long)]
    skip_images: bool,
    /// Lines that a PNG or JPEG is drawn with [default: hatch]
    #[arg(long, value_parser = choice(&STYLES))]
    style: Option<PictureStyle>,
    /// Share of the ink that --style can put down, 5 to 100: less is lighter and sooner drawn
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    ink: Option<Finite>,
    /// Leave points out of lines that stay within this of the design, such as 0.1mm
    #[arg(long, value_name = "LENGTH", value_parser = tidying_mm, allow_hyphen_values = true)]
    simplify: Option<Finite>,
    /// Join ends of strokes that are closer than this; 0 joins none [default: 0.1mm, or the scene's]
    #[arg(long, value_name = "LENGTH", value_parser = tidying_mm, allow_hyphen_values = true)]
    merge: Option<Finite>,
    /// Begin closed lines at random points, so that the marks where a pen comes down make no pattern
    #[arg(long)]
    random_starts: bool,
    /// Order of the strokes, instead of the scene's
    #[arg(long, value_parser = choice(&ORDERS))]
    sort: Option<Order>,
}

/// Orders of strokes.
const ORDERS: [Choice<Order>; 2] = [
    (
        "fastest",
        "The shortest way for the raised pen; strokes may be reversed",
        Order::Fastest,
    ),
    (
        "as-drawn",
        "The author's order and direction",
        Order::AsDrawn,
    ),
];

/// Places of the lines of a text.
const ALIGNS: [Choice<LineAlign>; 3] = [
    ("left", "", LineAlign::Left),
    ("center", "", LineAlign::Center),
    ("right", "", LineAlign::Right),
];

/// Shape of the letters of an SVG's texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextShape {
    Lines,
    Outlines,
}

const TEXTS: [Choice<TextShape>; 2] = [
    (
        "lines",
        "In the single-line letters of --font",
        TextShape::Lines,
    ),
    (
        "outlines",
        "In the fonts that the file names, if the node's machine has them",
        TextShape::Outlines,
    ),
];

/// Standard sizes of paper.
const PAPERS: [Choice<PaperFormat>; 6] = [
    ("a6", "105 by 148 mm", PaperFormat::A6),
    ("a5", "148 by 210 mm", PaperFormat::A5),
    ("a4", "210 by 297 mm", PaperFormat::A4),
    ("a6-landscape", "", PaperFormat::A6Landscape),
    ("a5-landscape", "", PaperFormat::A5Landscape),
    ("a4-landscape", "", PaperFormat::A4Landscape),
];

/// Fills of coloured areas.
const FILLS: [Choice<FillKind>; 4] = [
    ("outline", "", FillKind::Outline),
    ("hatch", "", FillKind::Hatch),
    ("cross", "", FillKind::Cross),
    ("contour", "", FillKind::Contour),
];

/// Lines of a picture made of pixels.
const STYLES: [Choice<PictureStyle>; 6] = [
    (
        "centreline",
        "The middles of dark lines: drawings, handwriting",
        PictureStyle::Centreline,
    ),
    (
        "outline",
        "The edges of dark areas: logos",
        PictureStyle::Outline,
    ),
    (
        "hatch",
        "Parallel lines, denser where it is darker",
        PictureStyle::Hatch,
    ),
    (
        "squiggle",
        "Rows that swing wider where it is darker",
        PictureStyle::Squiggle,
    ),
    (
        "stipple",
        "Dots, denser where it is darker",
        PictureStyle::Stipple,
    ),
    (
        "spiral",
        "One swinging line from the middle outwards",
        PictureStyle::Spiral,
    ),
];

impl PlacementArgs {
    /// Returns whether any of these options was given.
    pub(super) fn is_given(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the drawing, from files or from a text.
    ///
    /// # Errors
    /// Fails with both files and a text, with neither, or if a file cannot be read.
    pub(super) fn drawing(&self, files: Option<&NamedDesign>) -> anyhow::Result<DesignReplacement> {
        let of_text = [
            ("letter-height", self.letter_height.is_some()),
            ("align", self.align.is_some()),
            ("width", self.width.is_some()),
            ("line-spacing", self.line_spacing.is_some()),
        ];
        let given = of_text.into_iter().find(|(_, is_given)| *is_given);
        if let (Some((option, _)), None) = (given, &self.text) {
            bail!(
                "--{option} is only for --text. Next: leave it out, or give a file's size with --size"
            );
        }
        let outlines_text = self.text_as == Some(TextShape::Outlines);
        ensure!(
            !outlines_text || self.text.is_none() && self.font.is_none(),
            "`--text-as outlines` is for the texts of an SVG; --text and --font draw single-line letters. Next: leave one of them out"
        );
        let source = match (files, &self.text) {
            (Some(design), None) => DesignSource::Files(design.read()?),
            (None, Some(text)) => DesignSource::Text {
                text: text.clone(),
                letter_height_mm: self.letter_height,
            },
            (Some(_), Some(_)) => {
                bail!("a file and --text are both given. Next: leave one of them out")
            }
            (None, None) => bail!("no drawing is named. Next: name a file, or add --text WORDS"),
        };
        Ok(DesignReplacement {
            source,
            placement: DesignPlacement {
                size_mm: self.size,
                at_mm: self.at,
                rotate_deg: self.rotate,
                fits: self.fit,
                fits_page: self.fit_page,
            },
            fill: self.fill,
            one_pen: self.one_pen,
            pens: self.pens.clone(),
            layers: self.layers.clone(),
            strokes: self.strokes,
            paper: self.paper,
            copies: self.copies,
            pause_every: self.pause_every,
            hide: self.hide,
            outlines_text,
            skip_images: self.skip_images,
            style: self.style,
            ink_percent: self.ink,
            font: self.font.clone(),
            align: self.align,
            line_spacing: self.line_spacing,
            wrap_mm: self.width,
            random_starts: self.random_starts,
            order: self.sort,
            simplify_mm: self.simplify,
            join_mm: self.merge,
        })
    }
}

/// Parses a length of a page such as `60mm`, `6 cm`, `6.5cm` or `2.5in`; a bare number is millimetres.
pub(super) fn length_mm(text: &str) -> anyhow::Result<Finite> {
    length_within(text, &PAGE_SIDE_MM)
}

/// Parses a share in percent, such as `60` or `60%`.
fn percent(text: &str) -> anyhow::Result<Finite> {
    refuse_option(text)?;
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    Ok(Finite::new(parse_number(number)?)?)
}

/// Parses a factor, such as `1.5`.
fn factor(text: &str) -> anyhow::Result<Finite> {
    refuse_option(text)?;
    let number = text.trim().parse().ok();
    Ok(Finite::new(number.context("type a number, such as 1.5")?)?)
}

/// Parses a range of strokes such as `40..80`, `40-80`, `40..`, `..80` or `40`.
fn stroke_range(text: &str) -> anyhow::Result<[usize; 2]> {
    refuse_option(text)?;
    let (first, last) = text
        .split_once("..")
        .or_else(|| text.split_once('-'))
        .unwrap_or((text, text));
    let number = |text: &str, default: usize| match text.trim().trim_start_matches('=') {
        "" => Ok(default),
        number => number.parse(),
    };
    let hint = "type the first and the last stroke, such as 40..80";
    let range = [
        number(first, 1).context(hint)?,
        number(last, u32::MAX as usize).context(hint)?,
    ];
    ensure!(1 <= range[0] && range[0] <= range[1], "{hint}");
    Ok(range)
}

/// Parses copies such as `3x2` or `4`.
fn copies(text: &str) -> anyhow::Result<[u16; 2]> {
    refuse_option(text)?;
    let hint = "type columns x rows, such as 3x2";
    let (columns, rows) = text.split_once(['x', 'X', '×']).unwrap_or((text, "1"));
    let number = |text: &str| text.trim().parse::<u16>().context(hint);
    Ok([number(columns)?, number(rows)?])
}

/// Parses a length or time between two pauses, such as `500mm` or `60s`.
fn pause_every(text: &str) -> anyhow::Result<PauseEvery> {
    refuse_option(text)?;
    let hint = "type a length or a time, such as 500mm, 60s or 2min";
    let lower = text.trim().to_lowercase();
    let seconds = [("min", 60.0), ("s", 1.0)].into_iter();
    let seconds = seconds
        .filter_map(|(unit, factor)| Some((lower.strip_suffix(unit)?.trim(), factor)))
        .find_map(|(number, factor)| Some(number.parse::<f64>().ok()? * factor));
    if let Some(seconds) = seconds {
        return Ok(PauseEvery::Seconds(Finite::new(seconds)?));
    }
    let (number, factor_mm) = number_and_unit(text).context(hint)?;
    let length_mm = parse_number(&number)? * factor_mm.context(hint)?;
    Ok(PauseEvery::Millimetres(Finite::new(length_mm)?))
}

/// Parses a time in minutes, such as `10` or `10min`.
pub(super) fn minutes(text: &str) -> anyhow::Result<Finite> {
    refuse_option(text)?;
    let number = text.strip_suffix("min").unwrap_or(text).trim();
    let number = number.parse().ok();
    Ok(Finite::new(number.context("type minutes, such as 10")?)?)
}

/// Parses a distance within which lines are tidied, such as `0.1mm`.
fn tidying_mm(text: &str) -> anyhow::Result<Finite> {
    length_within(text, &TIDYING_MM)
}

fn length_within(text: &str, range_mm: &RangeInclusive<f64>) -> anyhow::Result<Finite> {
    refuse_option(text)?;
    let (number, factor_mm) = number_and_unit(text)?;
    refuse_comma(&number, text)?;
    let length_mm = parse_number(&number)? * factor_mm.unwrap_or(1.0);
    let (min, max) = (range_mm.start(), range_mm.end());
    let within = Finite::new(length_mm)
        .ok()
        .filter(|_| range_mm.contains(&length_mm));
    within.with_context(|| format!("this is {length_mm} mm; {min} to {max} mm are possible"))
}

/// Refuses the next option in the place of a value, which an option whose value may be below 0 takes.
pub(super) fn refuse_option(text: &str) -> anyhow::Result<()> {
    match text.starts_with("--") {
        true => bail!("the value before `{text}` is missing"),
        false => Ok(()),
    }
}

/// Takes the name of a font.
fn font(name: &str) -> anyhow::Result<String> {
    refuse_option(name)?;
    Ok(StrokeFont::named(name)?.name().to_owned())
}

/// Takes a text, which may begin with a `-`. A shell passes `\n` on as two characters.
fn words(text: &str) -> anyhow::Result<String> {
    let hint = "if the text begins with --, put a space before it";
    refuse_option(text).map_err(|error| anyhow!("{error}; {hint}"))?;
    Ok(text.replace("\\n", "\n"))
}

/// Refuses a comma, which stands for a decimal point in some countries and groups thousands in others.
fn refuse_comma(number: &str, text: &str) -> anyhow::Result<()> {
    let Some((_, behind)) = number.split_once(',') else {
        return Ok(());
    };
    let with = |instead: &str| text.trim().replace(',', instead);
    let is_thousands = behind.len() == 3;
    bail!(
        "the comma in {number} is ambiguous (decimal point or thousands). Next: type {}{}",
        with("."),
        if is_thousands {
            format!(" or {}", with(""))
        } else {
            String::new()
        }
    )
}

/// Parses a point of the sheet such as `20mm,30mm`, `2cm, 3cm` or `20,30`; a unit given once applies to both.
pub(super) fn point_mm(text: &str) -> anyhow::Result<[Finite; 2]> {
    refuse_option(text)?;
    let parts: Vec<&str> = text.split([',', ';']).collect();
    let &[x, y] = parts.as_slice() else {
        bail!("type two lengths with a comma between them, such as 20mm,30mm");
    };
    let ((x, x_factor), (y, y_factor)) = (number_and_unit(x)?, number_and_unit(y)?);
    let shared = y_factor.or(x_factor).unwrap_or(1.0);
    let (x_factor, y_factor) = (x_factor.unwrap_or(shared), y_factor.unwrap_or(shared));
    Ok([
        Finite::new(parse_number(&x)? * x_factor)?,
        Finite::new(parse_number(&y)? * y_factor)?,
    ])
}

/// Parses a sheet's width and height such as `100x80mm` or `10 x 8 cm`.
pub(super) fn size_mm(text: &str) -> anyhow::Result<[f64; 2]> {
    let hint = "type width x height, such as 100x80mm";
    let (width, height) = text.split_once(['x', 'X', '×']).context(hint)?;
    refuse_comma(width, width)?;
    refuse_comma(height, height)?;
    let point = format!("{width};{height}");
    let sides_mm = point_mm(&point).map_err(|error| anyhow!(with_statement(error, hint)))?;
    let sides_mm = sides_mm.map(Finite::get);
    let (min, max) = (PAGE_SIDE_MM.start(), PAGE_SIDE_MM.end());
    let is_possible = sides_mm.iter().all(|side| PAGE_SIDE_MM.contains(side));
    ensure!(is_possible, "each side is {min} to {max} mm; {hint}");
    Ok(sides_mm)
}

/// Parses a rotation such as `90`, `90deg`, `90 degrees` or `-12,5°`.
fn rotation_deg(text: &str) -> anyhow::Result<Finite> {
    refuse_option(text)?;
    let hint = "type degrees, such as 90, 90deg or -12.5°";
    let lower = text.trim().to_lowercase();
    let units = ["degrees", "degree", "deg", "°"];
    let number = units.iter().find_map(|unit| lower.strip_suffix(unit));
    let number = number.unwrap_or(&lower).trim_end().replace(',', ".");
    let degrees: Option<f64> = number.parse().ok();
    let degrees = degrees.with_context(|| format!("{text:?} is not an angle: {hint}"))?;
    Finite::new(degrees).map_err(|_| anyhow!("{text:?} is not finite: {hint}"))
}

fn parse_number(number: &str) -> anyhow::Result<f64> {
    let value = number.parse().ok();
    value.context("type a number and its unit, such as 60mm, 6cm or 2.5in")
}

/// Splits a length into its number and the millimetres of its unit, if it has one.
fn number_and_unit(text: &str) -> anyhow::Result<(String, Option<f64>)> {
    let text = text.trim().to_lowercase();
    let split = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '+' | '-')));
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let factor_mm = match unit.trim() {
        "" => return Ok((number.to_owned(), None)),
        "mm" | "millimetre" | "millimetres" | "millimeter" | "millimeters" => 1.0,
        "cm" | "centimetre" | "centimetres" | "centimeter" | "centimeters" => 10.0,
        "m" | "metre" | "metres" | "meter" | "meters" => 1e3,
        "in" | "\"" | "inch" | "inches" => 25.4,
        "pt" => 25.4 / 72.0,
        other => {
            bail!(
                "{other:?} is not a unit of length. Next: type one number for the longer side, such as 60mm, 6cm or 2.5in"
            );
        }
    };
    Ok((number.to_owned(), Some(factor_mm)))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    #[test]
    fn points_take_a_unit_each_or_one_for_both() {
        for (text, mm) in [
            ("20mm,30mm", [20.0, 30.0]),
            ("20,30", [20.0, 30.0]),
            ("2cm, 5mm", [20.0, 5.0]),
            ("2,3cm", [20.0, 30.0]),
            ("-1.5;2mm", [-1.5, 2.0]),
        ] {
            assert_eq!(point_mm(text).unwrap().map(Finite::get), mm, "{text}");
        }
        for text in ["20mm", "1,2,3", "a,b", "20,", "20px,30px"] {
            assert!(point_mm(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_text_has_several_lines_where_a_shell_passes_them_on() {
        assert_eq!(words(r"one\ntwo").unwrap(), "one\ntwo");
    }

    #[test]
    fn turns_take_the_unit_that_people_write() {
        for (text, deg) in [
            ("90", 90.0),
            ("90deg", 90.0),
            ("90 Degrees", 90.0),
            ("-12,5°", -12.5),
            ("+1e1", 10.0),
        ] {
            assert_eq!(rotation_deg(text).unwrap().get(), deg, "{text}");
        }
        for text in ["", "deg", "90rad", "nan", "inf", "1.57 rad", "90px"] {
            let error = rotation_deg(text).unwrap_err().to_string();
            assert!(error.contains("type degrees"), "{text}: {error}");
        }
    }

    #[test]
    fn lengths_come_in_many_forms() {
        for (text, mm) in [
            ("60mm", 60.0),
            (" 60 MM ", 60.0),
            ("60", 60.0),
            ("6cm", 60.0),
            ("6.5 cm", 65.0),
            ("0.06m", 60.0),
            ("2in", 50.8),
            ("2\"", 50.8),
            ("72pt", 25.4),
        ] {
            assert!((length_mm(text).unwrap().get() - mm).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn sheets_have_a_width_and_a_height_without_commas() {
        assert_eq!(size_mm("10x8cm").unwrap(), [100.0, 80.0]);
        let error = size_mm("1,000x800mm").unwrap_err().to_string();
        assert!(error.contains("type 1.000 or 1000"), "{error}");
    }

    #[test]
    fn malformed_lengths_are_refused_with_a_hint() {
        for (text, hint) in [
            ("", "such as 60mm"),
            ("big", "not a unit"),
            ("60x40", "longer side"),
            ("60px", "not a unit"),
            ("-5mm", "1 to 2000 mm"),
            ("0", "1 to 2000 mm"),
            ("1e3", "not a unit"),
            ("9m", "this is 9000 mm"),
            ("1.2.3", "a number"),
            ("nan", "not a unit"),
            ("1,000mm", "type 1.000mm or 1000mm"),
            ("6,5 cm", "type 6.5 cm"),
            ("1,2,3", "decimal point or thousands"),
            ("--fit", "the value before `--fit` is missing"),
        ] {
            let error = length_mm(text).unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }
}
