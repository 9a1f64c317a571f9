//! Pages of a column: levels that mark where lists begin, followed by the cells, unencoded and uncompressed.

use std::io::{self, Write};

use crate::lerobot::compact_thrift::{CompactStruct, varint};

/// Size at which a page is written.
const PAGE_BYTES: usize = 1 << 20;

/// The format's numbers for encodings of levels and cells.
pub(super) const PLAIN: usize = 0;
pub(super) const RUN_LENGTHS: usize = 3;
pub(super) const DICTIONARY: usize = 8;

/// The format's numbers for kinds of pages.
const DATA_PAGE: usize = 0;
const DICTIONARY_PAGE: usize = 2;

/// Number of bits of an index into the dictionary.
const INDEX_BITS: u8 = 32;

/// Run-length encoder of levels.
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
            // The lowest bit, 0, marks a run; our levels need one byte.
            varint(&mut self.bytes, self.run << 1);
            self.bytes.push(self.level);
            self.run = 0;
        }
    }

    /// Returns the encoded levels after their length, and starts anew.
    fn take(&mut self) -> Vec<u8> {
        self.end_run();
        let runs = std::mem::take(&mut self.bytes);
        let length = u32::try_from(runs.len()).unwrap_or(u32::MAX);
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(runs);
        bytes
    }
}

/// Writes the pages of one column in one row group.
pub(super) struct ColumnPages<'a, W> {
    out: &'a mut W,
    /// Definition level of a cell that is present.
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

    /// Adds a row of cells, each written by `write`; a row without cells is an empty list.
    pub(super) fn row<T>(
        &mut self,
        cells: &[T],
        write: impl Fn(&T, &mut Vec<u8>),
    ) -> io::Result<()> {
        if cells.is_empty() {
            self.push_levels(0, 1);
        }
        for (index, cell) in cells.iter().enumerate() {
            self.push_levels(u8::from(index > 0), self.present);
            write(cell, &mut self.cells);
        }
        if self.cells.len() >= PAGE_BYTES {
            self.end_page()?;
        }
        Ok(())
    }

    fn push_levels(&mut self, repetition: u8, definition: u8) {
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

    /// Ends the column; returns the numbers of its values and bytes.
    pub(super) fn end(mut self) -> io::Result<(usize, usize)> {
        if self.page_values > 0 {
            self.end_page()?;
        }
        Ok((self.values, self.bytes))
    }
}

/// Writes a page of cells; returns its size.
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
    let header = CompactStruct::default()
        .int32(1, kind)
        .int32(2, size)
        .int32(3, size)
        .structure(field, facts)
        .end();
    out.write_all(&header)?;
    for part in parts {
        out.write_all(part)?;
    }
    Ok(header.len() + size)
}

/// Writes a column whose neighbouring cells are often the same, with a dictionary that has each run's cell once.
/// Returns the sizes of the dictionary's page and of the page with the rows' indices.
pub(super) fn repeated_cells<W: Write, T: PartialEq>(
    out: &mut W,
    cells: &[T],
    present: u8,
    write: impl Fn(&T, &mut Vec<u8>),
) -> io::Result<(usize, usize)> {
    let (mut dictionary_cells, mut indices, mut count) = (Vec::new(), vec![INDEX_BITS], 0_u32);
    for run in cells.chunk_by(|one, next| one == next) {
        run.first()
            .into_iter()
            .for_each(|cell| write(cell, &mut dictionary_cells));
        varint(&mut indices, run.len() << 1);
        indices.extend(count.to_le_bytes());
        count += 1;
    }
    let mut definitions = LevelRuns::default();
    cells.iter().for_each(|_| definitions.push(present));
    let facts = CompactStruct::default()
        .int32(1, count as usize)
        .int32(2, PLAIN);
    let dictionary = page(out, DICTIONARY_PAGE, 7, facts, &[&dictionary_cells])?;
    let levels = definitions.take();
    let data = data_page(out, cells.len(), DICTIONARY, &[&levels, &indices])?;
    Ok((dictionary, data))
}
