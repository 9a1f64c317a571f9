//! The pages of a column: levels that say where lists begin, and the cells behind them, plain and not compressed.

use std::io::{self, Write};

use crate::lerobot::compact_thrift::{CompactStruct, varint};

/// A page is written once it is so large.
const PAGE_BYTES: usize = 1 << 20;

/// Numbers of the format: how levels and cells are encoded.
pub(super) const PLAIN: usize = 0;
pub(super) const RUN_LENGTHS: usize = 3;
pub(super) const DICTIONARY: usize = 8;

/// Kinds of pages.
const DATA_PAGE: usize = 0;
const DICTIONARY_PAGE: usize = 2;

/// Bits of a cell's number in the dictionary.
const NUMBER_BITS: u8 = 32;

/// Levels as runs of the same one.
#[derive(Debug, Default)]
struct LevelRuns {
    bytes: Vec<u8>,
    level: u8,
    run: usize,
}

impl LevelRuns {
    fn push(&mut self, level: u8) {
        if level != self.level {
            self.end_run();
            self.level = level;
        }
        self.run += 1;
    }

    fn end_run(&mut self) {
        if self.run > 0 {
            // The lowest bit says that it is a run; no level of ours needs more than a byte.
            varint(&mut self.bytes, self.run << 1);
            self.bytes.push(self.level);
            self.run = 0;
        }
    }

    /// Hands over what there is, behind its length.
    fn take(&mut self) -> Vec<u8> {
        self.end_run();
        let runs = std::mem::take(&mut self.bytes);
        let length = u32::try_from(runs.len()).unwrap_or(u32::MAX);
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(runs);
        bytes
    }
}

/// The pages of one column in one group of rows.
pub(super) struct ColumnPages<'a, W> {
    out: &'a mut W,
    /// The level of a cell that is there, and whether the column has lists.
    present: u8,
    has_lists: bool,
    repetitions: LevelRuns,
    definitions: LevelRuns,
    cells: Vec<u8>,
    page_values: usize,
    values: usize,
    bytes: usize,
}

impl<'a, W: Write> ColumnPages<'a, W> {
    pub(super) fn new(out: &'a mut W, present: u8, has_lists: bool) -> Self {
        Self {
            out,
            present,
            has_lists,
            repetitions: LevelRuns::default(),
            definitions: LevelRuns::default(),
            cells: Vec::new(),
            page_values: 0,
            values: 0,
            bytes: 0,
        }
    }

    /// Adds a row of cells, each written by `write`; a row without one is an empty list.
    pub(super) fn row<T>(
        &mut self,
        cells: &[T],
        write: impl Fn(&T, &mut Vec<u8>),
    ) -> io::Result<()> {
        if cells.is_empty() {
            self.level(0, 1);
        }
        for (at, cell) in cells.iter().enumerate() {
            self.level(u8::from(at > 0), self.present);
            write(cell, &mut self.cells);
        }
        if self.cells.len() >= PAGE_BYTES {
            self.end_page()?;
        }
        Ok(())
    }

    fn level(&mut self, repetition: u8, definition: u8) {
        self.repetitions.push(repetition);
        self.definitions.push(definition);
        self.page_values += 1;
    }

    fn end_page(&mut self) -> io::Result<()> {
        let mut levels = self.repetitions.take();
        if !self.has_lists {
            levels.clear();
        }
        levels.extend(self.definitions.take());
        self.bytes += data_page(self.out, self.page_values, PLAIN, &[&levels, &self.cells])?;
        self.cells.clear();
        self.values += std::mem::take(&mut self.page_values);
        Ok(())
    }

    /// Ends the column; returns how many values and bytes it has.
    pub(super) fn end(mut self) -> io::Result<(usize, usize)> {
        if self.page_values > 0 {
            self.end_page()?;
        }
        Ok((self.values, self.bytes))
    }
}

/// Writes a page of cells; returns its bytes.
fn data_page<W: Write>(
    out: &mut W,
    values: usize,
    encoding: usize,
    parts: &[&[u8]],
) -> io::Result<usize> {
    let facts = CompactStruct::default()
        .int32(1, values)
        .int32(2, encoding)
        .int32(3, RUN_LENGTHS)
        .int32(4, RUN_LENGTHS);
    page(out, DATA_PAGE, 5, facts, parts)
}

fn page<W: Write>(
    out: &mut W,
    kind: usize,
    field: u8,
    facts: CompactStruct,
    parts: &[&[u8]],
) -> io::Result<usize> {
    let size = parts.iter().map(|part| part.len()).sum();
    let head = CompactStruct::default()
        .int32(1, kind)
        .int32(2, size)
        .int32(3, size)
        .structure(field, facts)
        .end();
    out.write_all(&head)?;
    for part in parts {
        out.write_all(part)?;
    }
    Ok(head.len() + size)
}

/// Writes a column of cells of which neighbours are often the same: each that differs from the one before is in the file once.
/// Returns the bytes of the page with the cells, and of the one that says which row has which.
pub(super) fn repeated_cells<W: Write, T: PartialEq>(
    out: &mut W,
    cells: &[T],
    present: u8,
    write: impl Fn(&T, &mut Vec<u8>),
) -> io::Result<(usize, usize)> {
    let (mut distinct, mut numbers, mut count) = (Vec::new(), vec![NUMBER_BITS], 0_u32);
    for same in cells.chunk_by(|one, next| one == next) {
        same.first()
            .into_iter()
            .for_each(|cell| write(cell, &mut distinct));
        varint(&mut numbers, same.len() << 1);
        numbers.extend(count.to_le_bytes());
        count += 1;
    }
    let mut definitions = LevelRuns::default();
    cells.iter().for_each(|_| definitions.push(present));
    let facts = CompactStruct::default()
        .int32(1, count as usize)
        .int32(2, PLAIN);
    let dictionary = page(out, DICTIONARY_PAGE, 7, facts, &[&distinct])?;
    let levels = definitions.take();
    let data = data_page(out, cells.len(), DICTIONARY, &[&levels, &numbers])?;
    Ok((dictionary, data))
}
