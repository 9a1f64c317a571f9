//! Tables as parquet files: columns of numbers, texts, lists of them and pictures, without missing cells.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::RecordingError;
use crate::lerobot::compact_thrift::CompactStruct;
use crate::lerobot::parquet_page::{ColumnPages, DICTIONARY, PLAIN, RUN_LENGTHS, repeated_cells};

/// Bytes at the beginning and at the end of a parquet file.
const MAGIC: &[u8] = b"PAR1";

/// The format's numbers for repetitions of fields, and for texts and lists.
const OPTIONAL: usize = 1;
const REPEATED: usize = 2;
const UTF8: usize = 0;
const LIST: usize = 3;

/// A column with its name.
pub(super) struct TableColumn {
    pub(super) name: String,
    pub(super) data: ColumnData,
}

/// The cells of a column, from the first row to the last.
pub(super) enum ColumnData {
    Float(Vec<f32>),
    Int(Vec<i64>),
    Text(Vec<String>),
    FloatLists(Vec<Vec<f32>>),
    DoubleLists(Vec<Vec<f64>>),
    IntLists(Vec<Vec<i64>>),
    TextLists(Vec<Vec<String>>),
    /// Files with their names.
    Pictures(Vec<(Vec<u8>, String)>),
}

/// Types of cells, with the format's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CellKind {
    Int = 2,
    Float = 4,
    Double = 5,
    Bytes = 6,
}

impl TableColumn {
    pub(super) fn new(name: &str, data: ColumnData) -> Self {
        Self {
            name: name.to_owned(),
            data,
        }
    }

    fn rows(&self) -> usize {
        match &self.data {
            ColumnData::Float(cells) => cells.len(),
            ColumnData::Int(cells) => cells.len(),
            ColumnData::Text(cells) => cells.len(),
            ColumnData::FloatLists(rows) => rows.len(),
            ColumnData::DoubleLists(rows) => rows.len(),
            ColumnData::IntLists(rows) => rows.len(),
            ColumnData::TextLists(rows) => rows.len(),
            ColumnData::Pictures(cells) => cells.len(),
        }
    }

    const fn kind(&self) -> CellKind {
        match &self.data {
            ColumnData::Float(_) | ColumnData::FloatLists(_) => CellKind::Float,
            ColumnData::Int(_) | ColumnData::IntLists(_) => CellKind::Int,
            ColumnData::DoubleLists(_) => CellKind::Double,
            ColumnData::Text(_) | ColumnData::TextLists(_) | ColumnData::Pictures(_) => {
                CellKind::Bytes
            }
        }
    }

    const fn is_text(&self) -> bool {
        matches!(self.data, ColumnData::Text(_) | ColumnData::TextLists(_))
    }

    const fn is_list(&self) -> bool {
        !matches!(
            self.data,
            ColumnData::Float(_)
                | ColumnData::Int(_)
                | ColumnData::Text(_)
                | ColumnData::Pictures(_)
        )
    }

    /// Returns the footer's description of the column and its fields.
    fn schema(&self) -> Vec<CompactStruct> {
        let name = self.name.as_str();
        if let ColumnData::Pictures(_) = self.data {
            let files = cell("bytes", CellKind::Bytes, false);
            return vec![
                group(name, OPTIONAL, 2),
                files,
                cell("path", CellKind::Bytes, true),
            ];
        }
        if !self.is_list() {
            return vec![cell(name, self.kind(), self.is_text())];
        }
        vec![
            group(name, OPTIONAL, 1).int32(6, LIST),
            group("list", REPEATED, 1),
            cell("element", self.kind(), self.is_text()),
        ]
    }

    /// Writes its cells; returns their description for the footer.
    fn write(&self, to: &mut CountingFile) -> io::Result<Vec<CompactStruct>> {
        let name = self.name.as_str();
        if let ColumnData::Pictures(cells) = &self.data {
            let files: Vec<&[u8]> = cells.iter().map(|(file, _)| file.as_slice()).collect();
            let names: Vec<&[u8]> = cells.iter().map(|(_, name)| name.as_bytes()).collect();
            let files = repeated_chunk(to, &[name, "bytes"], &files)?;
            return Ok(vec![files, repeated_chunk(to, &[name, "path"], &names)?]);
        }
        let list = [name, "list", "element"];
        let path = if self.is_list() { &list } else { &list[..1] };
        let written = chunk(to, path, self.kind(), |pages| match &self.data {
            ColumnData::Float(cells) => flat(pages, cells, float),
            ColumnData::Int(cells) => flat(pages, cells, int),
            ColumnData::Text(cells) => flat(pages, cells, |cell, to| text(&cell, to)),
            ColumnData::FloatLists(rows) => lists(pages, rows, float),
            ColumnData::DoubleLists(rows) => lists(pages, rows, double),
            ColumnData::IntLists(rows) => lists(pages, rows, int),
            ColumnData::TextLists(rows) => lists(pages, rows, |cell, to| text(&cell, to)),
            ColumnData::Pictures(_) => Ok(()),
        })?;
        Ok(vec![written])
    }
}

/// Returns the description of a field with child fields.
fn group(name: &str, repetition: usize, children: usize) -> CompactStruct {
    CompactStruct::default()
        .int32(3, repetition)
        .text(4, name)
        .int32(5, children)
}

/// Returns the description of a field with cells.
fn cell(name: &str, kind: CellKind, is_text: bool) -> CompactStruct {
    let cell = CompactStruct::default()
        .int32(1, kind as usize)
        .int32(3, OPTIONAL)
        .text(4, name);
    if is_text { cell.int32(6, UTF8) } else { cell }
}

fn float(cell: &f32, to: &mut Vec<u8>) {
    to.extend(cell.to_le_bytes());
}

fn double(cell: &f64, to: &mut Vec<u8>) {
    to.extend(cell.to_le_bytes());
}

fn int(cell: &i64, to: &mut Vec<u8>) {
    to.extend(cell.to_le_bytes());
}

fn bytes(cell: &[u8], to: &mut Vec<u8>) {
    // A picture or a text is far shorter than the 4 GB that can be said.
    to.extend(u32::try_from(cell.len()).unwrap_or(u32::MAX).to_le_bytes());
    to.extend(cell);
}

fn text(cell: &&String, to: &mut Vec<u8>) {
    bytes(cell.as_bytes(), to);
}

type Pages<'a> = ColumnPages<'a, CountingFile>;

fn flat<T>(pages: &mut Pages<'_>, cells: &[T], write: fn(&T, &mut Vec<u8>)) -> io::Result<()> {
    let mut rows = cells.chunks(1);
    rows.try_for_each(|row| pages.row(row, write))
}

fn lists<T>(pages: &mut Pages<'_>, rows: &[Vec<T>], write: fn(&T, &mut Vec<u8>)) -> io::Result<()> {
    rows.iter().try_for_each(|row| pages.row(row, write))
}

/// Writes the cells of one column in one row group; the depth of its path determines the levels.
fn chunk(
    to: &mut CountingFile,
    path: &[&str],
    kind: CellKind,
    fill: impl FnOnce(&mut Pages<'_>) -> io::Result<()>,
) -> io::Result<CompactStruct> {
    let start = to.bytes;
    let mut pages = match path {
        [_] => ColumnPages::new(to, 1, false),
        _ => ColumnPages::new(to, 3, true),
    };
    fill(&mut pages)?;
    let (values, bytes) = pages.end()?;
    let facts = chunk_facts(path, kind, &[PLAIN, RUN_LENGTHS], values, bytes);
    Ok(CompactStruct::default()
        .int64(2, start)
        .structure(3, facts.int64(9, start)))
}

/// Writes a chunk like [`chunk`] for one field of pictures, which are often the same in consecutive rows.
fn repeated_chunk(
    to: &mut CountingFile,
    path: &[&str],
    cells: &[&[u8]],
) -> io::Result<CompactStruct> {
    let start = to.bytes;
    let (dictionary, data) = repeated_cells(to, cells, 2, |cell, to| bytes(cell, to))?;
    let encodings = [PLAIN, RUN_LENGTHS, DICTIONARY];
    let total = dictionary + data;
    let facts = chunk_facts(path, CellKind::Bytes, &encodings, cells.len(), total)
        .int64(9, start + dictionary)
        .int64(11, start);
    Ok(CompactStruct::default().int64(2, start).structure(3, facts))
}

fn chunk_facts(
    path: &[&str],
    kind: CellKind,
    encodings: &[usize],
    values: usize,
    bytes: usize,
) -> CompactStruct {
    CompactStruct::default()
        .int32(1, kind as usize)
        .ints(2, encodings)
        .texts(3, path)
        .int32(4, 0)
        .int64(5, values)
        .int64(6, bytes)
        .int64(7, bytes)
}

/// A file that counts the bytes written.
struct CountingFile {
    file: BufWriter<File>,
    bytes: usize,
}

impl Write for CountingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A parquet file that is written under a temporary name and renamed when it is complete.
pub(super) struct TableFile {
    path: PathBuf,
    part: PathBuf,
    out: Option<CountingFile>,
    schema: Vec<CompactStruct>,
    fields: usize,
    groups: Vec<CompactStruct>,
    rows: usize,
    metadata: Vec<CompactStruct>,
}

impl TableFile {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            part: path.with_extension("parquet.part"),
            out: None,
            schema: Vec::new(),
            fields: 0,
            groups: Vec::new(),
            rows: 0,
            metadata: Vec::new(),
        }
    }

    /// Appends a row group; the first one defines the columns.
    pub(super) fn append(&mut self, columns: &[TableColumn]) -> Result<(), RecordingError> {
        let mut out = match self.out.take() {
            Some(out) => out,
            None => {
                self.schema = columns.iter().flat_map(TableColumn::schema).collect();
                self.fields = columns.len();
                self.begin().map_err(RecordingError::file(&self.part))?
            }
        };
        let group = row_group(&mut out, columns).map_err(RecordingError::file(&self.part))?;
        self.groups.push(group);
        self.rows += columns.first().map_or(0, TableColumn::rows);
        self.out = Some(out);
        Ok(())
    }

    fn begin(&self) -> io::Result<CountingFile> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut out = CountingFile {
            file: BufWriter::new(File::create(&self.part)?),
            bytes: 0,
        };
        out.write_all(MAGIC)?;
        Ok(out)
    }

    /// Returns the number of bytes written so far.
    pub(super) fn bytes(&self) -> usize {
        self.out.as_ref().map_or(0, |out| out.bytes)
    }

    /// Adds metadata of the whole table.
    pub(super) fn add_metadata(&mut self, key: &str, value: &str) {
        self.metadata
            .push(CompactStruct::default().text(1, key).text(2, value));
    }

    /// Finishes the file, syncs it and renames it to its final name.
    pub(super) fn finish(mut self) -> Result<(), RecordingError> {
        let Some(out) = self.out.take() else {
            return Ok(());
        };
        let (part, path) = (self.part.clone(), self.path.clone());
        self.end(out).map_err(RecordingError::file(&part))?;
        std::fs::rename(&part, &path).map_err(RecordingError::file(&path))
    }

    fn end(self, mut out: CountingFile) -> io::Result<()> {
        let mut schema = vec![
            CompactStruct::default()
                .text(4, "schema")
                .int32(5, self.fields),
        ];
        schema.extend(self.schema);
        let footer = CompactStruct::default()
            .int32(1, 1)
            .structures(2, schema)
            .int64(3, self.rows)
            .structures(4, self.groups)
            .structures(5, self.metadata)
            .text(6, "steadyhand")
            .end();
        out.write_all(&footer)?;
        let length = u32::try_from(footer.len()).unwrap_or(u32::MAX);
        out.write_all(&length.to_le_bytes())?;
        out.write_all(MAGIC)?;
        out.flush()?;
        out.file.get_ref().sync_all()
    }
}

fn row_group(out: &mut CountingFile, columns: &[TableColumn]) -> io::Result<CompactStruct> {
    let start = out.bytes;
    let mut chunks = Vec::new();
    for column in columns {
        chunks.extend(column.write(out)?);
    }
    Ok(CompactStruct::default()
        .structures(1, chunks)
        .int64(2, out.bytes - start)
        .int64(3, columns.first().map_or(0, TableColumn::rows)))
}
