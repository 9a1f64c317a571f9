//! Tables as parquet files: columns of numbers, texts and lists of them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::schema::parser::parse_message_type;

use crate::error::RecordingError;

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

impl TableColumn {
    pub(super) fn new(name: &str, data: ColumnData) -> Self {
        Self {
            name: name.to_owned(),
            data,
        }
    }

    /// The column in parquet's language of schemas.
    fn schema(&self) -> String {
        let name = &self.name;
        let list = |element: &str| {
            format!(
                "optional group {name} (LIST) {{ repeated group list {{ optional {element}; }} }}"
            )
        };
        match &self.data {
            ColumnData::Float(_) => format!("optional float {name};"),
            ColumnData::Int(_) => format!("optional int64 {name};"),
            ColumnData::Text(_) => format!("optional binary {name} (STRING);"),
            ColumnData::FloatLists(_) => list("float element"),
            ColumnData::DoubleLists(_) => list("double element"),
            ColumnData::IntLists(_) => list("int64 element"),
            ColumnData::TextLists(_) => list("binary element (STRING)"),
            ColumnData::Pictures(_) => format!(
                "optional group {name} {{ optional binary bytes; optional binary path (STRING); }}"
            ),
        }
    }

    fn write(&self, group: &mut TableGroup<'_>) -> Result<(), ParquetError> {
        if let ColumnData::Pictures(cells) = &self.data {
            return pictures(group, cells);
        }
        let mut to = next(group)?;
        let bytes = |text: &String| ByteArray::from(text.as_str());
        match &self.data {
            ColumnData::Float(cells) => flat::<FloatType>(&mut to, cells)?,
            ColumnData::Int(cells) => flat::<Int64Type>(&mut to, cells)?,
            ColumnData::Text(cells) => {
                let cells: Vec<ByteArray> = cells.iter().map(bytes).collect();
                flat::<ByteArrayType>(&mut to, &cells)?;
            }
            ColumnData::FloatLists(rows) => nested::<FloatType>(&mut to, rows)?,
            ColumnData::DoubleLists(rows) => nested::<DoubleType>(&mut to, rows)?,
            ColumnData::IntLists(rows) => nested::<Int64Type>(&mut to, rows)?,
            ColumnData::TextLists(rows) => {
                let rows: Vec<Vec<ByteArray>> = rows
                    .iter()
                    .map(|row| row.iter().map(bytes).collect())
                    .collect();
                nested::<ByteArrayType>(&mut to, &rows)?;
            }
            ColumnData::Pictures(_) => {}
        }
        to.close()
    }
}

/// A group of rows while it is written.
type TableGroup<'a> = SerializedRowGroupWriter<'a, File>;

fn next<'a>(group: &'a mut TableGroup<'_>) -> Result<SerializedColumnWriter<'a>, ParquetError> {
    let next = group.next_column()?;
    next.ok_or_else(|| ParquetError::General("more columns than before".to_owned()))
}

/// Two columns: the files, and their names.
fn pictures(group: &mut TableGroup<'_>, cells: &[(Vec<u8>, String)]) -> Result<(), ParquetError> {
    let present = vec![2; cells.len()];
    let files = cells.iter().map(|(file, _)| ByteArray::from(file.clone()));
    let names = cells.iter().map(|(_, name)| ByteArray::from(name.as_str()));
    for column in [files.collect::<Vec<_>>(), names.collect()] {
        let mut to = next(group)?;
        to.typed::<ByteArrayType>()
            .write_batch(&column, Some(&present), None)?;
        to.close()?;
    }
    Ok(())
}

/// Cells that are all there.
fn flat<T: DataType>(
    to: &mut SerializedColumnWriter<'_>,
    cells: &[T::T],
) -> Result<(), ParquetError> {
    let present = vec![1; cells.len()];
    to.typed::<T>().write_batch(cells, Some(&present), None)?;
    Ok(())
}

/// Lists without gaps; an empty one has the level of a list without elements.
fn nested<T: DataType>(
    to: &mut SerializedColumnWriter<'_>,
    rows: &[Vec<T::T>],
) -> Result<(), ParquetError> {
    let (mut cells, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        if row.is_empty() {
            definitions.push(1);
            repetitions.push(0);
        }
        for (at, cell) in row.iter().enumerate() {
            cells.push(cell.clone());
            definitions.push(3);
            repetitions.push(i16::from(at > 0));
        }
    }
    to.typed::<T>()
        .write_batch(&cells, Some(&definitions), Some(&repetitions))?;
    Ok(())
}

/// A parquet file that is written beside its place and put there when it is whole.
pub(super) struct TableFile {
    path: PathBuf,
    part: PathBuf,
    writer: Option<SerializedFileWriter<File>>,
}

impl TableFile {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            part: path.with_extension("parquet.part"),
            writer: None,
        }
    }

    /// Appends a group of rows; the first one says which columns there are.
    pub(super) fn append(&mut self, columns: &[TableColumn]) -> Result<(), RecordingError> {
        let failed = RecordingError::parquet(&self.path);
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                if let Some(folder) = self.path.parent() {
                    std::fs::create_dir_all(folder).map_err(RecordingError::file(folder))?;
                }
                let file = File::create(&self.part).map_err(RecordingError::file(&self.part))?;
                none.insert(begin(file, columns).map_err(RecordingError::parquet(&self.path))?)
            }
        };
        let mut append = || {
            let mut group = writer.next_row_group()?;
            for column in columns {
                column.write(&mut group)?;
            }
            group.close().map(drop)
        };
        append().map_err(failed)
    }

    /// Number of bytes written so far.
    pub(super) fn bytes(&self) -> usize {
        self.writer
            .as_ref()
            .map_or(0, SerializedFileWriter::bytes_written)
    }

    /// Says something of the whole table.
    pub(super) fn note(&mut self, key: &str, value: String) {
        if let Some(writer) = &mut self.writer {
            writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
    }

    /// Ends the file, brings it to the disk and puts it into its place.
    pub(super) fn finish(self) -> Result<(), RecordingError> {
        let Some(writer) = self.writer else {
            return Ok(());
        };
        writer
            .close()
            .map_err(RecordingError::parquet(&self.path))?;
        let file = File::open(&self.part).map_err(RecordingError::file(&self.part))?;
        file.sync_all().map_err(RecordingError::file(&self.part))?;
        std::fs::rename(&self.part, &self.path).map_err(RecordingError::file(&self.path))
    }
}

fn begin(file: File, columns: &[TableColumn]) -> Result<SerializedFileWriter<File>, ParquetError> {
    let fields: Vec<String> = columns.iter().map(TableColumn::schema).collect();
    let schema = parse_message_type(&format!("message schema {{ {} }}", fields.join(" ")))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by("steadyhand".to_owned());
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
}
