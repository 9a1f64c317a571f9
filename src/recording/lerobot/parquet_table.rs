//! Tables as parquet files: columns of numbers, texts, lists of them and pictures, without missing cells.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as CellType};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use crate::error::RecordingError;

/// Largest dictionary of a field of pictures: all that one episode has, for frames often show the same one.
const PICTURES_BYTES_MAX: usize = 1 << 30;

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

    fn schema(&self) -> Result<TypePtr> {
        let name = self.name.as_str();
        let of_texts = || Some(LogicalType::String);
        match &self.data {
            ColumnData::Float(_) => cell(name, CellType::FLOAT, None),
            ColumnData::Int(_) => cell(name, CellType::INT64, None),
            ColumnData::Text(_) => cell(name, CellType::BYTE_ARRAY, of_texts()),
            ColumnData::FloatLists(_) => list(name, CellType::FLOAT, None),
            ColumnData::DoubleLists(_) => list(name, CellType::DOUBLE, None),
            ColumnData::IntLists(_) => list(name, CellType::INT64, None),
            ColumnData::TextLists(_) => list(name, CellType::BYTE_ARRAY, of_texts()),
            ColumnData::Pictures(_) => {
                let bytes = cell("bytes", CellType::BYTE_ARRAY, None)?;
                let path = cell("path", CellType::BYTE_ARRAY, None)?;
                group(name, Repetition::OPTIONAL, None, vec![bytes, path])
            }
        }
    }

    fn write(&self, to: &mut RowGroup<'_>) -> Result<()> {
        match &self.data {
            ColumnData::Float(cells) => flat::<FloatType>(to, cells, 1),
            ColumnData::Int(cells) => flat::<Int64Type>(to, cells, 1),
            ColumnData::Text(cells) => flat::<ByteArrayType>(to, &texts(cells), 1),
            ColumnData::FloatLists(rows) => lists::<FloatType>(to, rows),
            ColumnData::DoubleLists(rows) => lists::<DoubleType>(to, rows),
            ColumnData::IntLists(rows) => lists::<Int64Type>(to, rows),
            ColumnData::TextLists(rows) => {
                let rows: Vec<_> = rows.iter().map(|row| texts(row)).collect();
                lists::<ByteArrayType>(to, &rows)
            }
            ColumnData::Pictures(cells) => {
                let (files, names): (Vec<ByteArray>, Vec<ByteArray>) = cells
                    .iter()
                    .map(|(file, name)| (file.clone().into(), name.as_str().into()))
                    .unzip();
                flat::<ByteArrayType>(to, &files, 2)?;
                flat::<ByteArrayType>(to, &names, 2)
            }
        }
    }
}

fn cell(name: &str, kind: CellType, meaning: Option<LogicalType>) -> Result<TypePtr> {
    Type::primitive_type_builder(name, kind)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(meaning)
        .build()
        .map(Arc::new)
}

fn group(
    name: &str,
    repetition: Repetition,
    meaning: Option<LogicalType>,
    fields: Vec<TypePtr>,
) -> Result<TypePtr> {
    Type::group_type_builder(name)
        .with_repetition(repetition)
        .with_logical_type(meaning)
        .with_fields(fields)
        .build()
        .map(Arc::new)
}

fn list(name: &str, kind: CellType, meaning: Option<LogicalType>) -> Result<TypePtr> {
    let element = cell("element", kind, meaning)?;
    let list = group("list", Repetition::REPEATED, None, vec![element])?;
    group(
        name,
        Repetition::OPTIONAL,
        Some(LogicalType::List),
        vec![list],
    )
}

fn texts(cells: &[String]) -> Vec<ByteArray> {
    cells.iter().map(|text| text.as_str().into()).collect()
}

type RowGroup<'a> = SerializedRowGroupWriter<'a, File>;

/// Writes one cell a row, each present at `depth`.
fn flat<T: DataType>(to: &mut RowGroup<'_>, cells: &[T::T], depth: i16) -> Result<()> {
    column::<T>(to, cells, &vec![depth; cells.len()], None)
}

/// Writes one list a row; a row without cells is an empty list.
fn lists<T: DataType>(to: &mut RowGroup<'_>, rows: &[Vec<T::T>]) -> Result<()> {
    let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
    for row in rows {
        definitions.extend(std::iter::repeat_n(3, row.len()));
        repetitions.push(0);
        match row.len() {
            0 => definitions.push(1),
            cells => repetitions.extend(std::iter::repeat_n(1, cells - 1)),
        }
    }
    column::<T>(to, &rows.concat(), &definitions, Some(&repetitions))
}

fn column<T: DataType>(
    to: &mut RowGroup<'_>,
    cells: &[T::T],
    definitions: &[i16],
    repetitions: Option<&[i16]>,
) -> Result<()> {
    let missing = || ParquetError::General("every row group has the same columns".to_owned());
    let mut column = to.next_column()?.ok_or_else(missing)?;
    column
        .typed::<T>()
        .write_batch(cells, Some(definitions), repetitions)?;
    column.close()
}

/// A parquet file that is written under a temporary name and renamed when it is complete.
pub(super) struct TableFile {
    path: PathBuf,
    part: PathBuf,
    out: Option<SerializedFileWriter<File>>,
    metadata: Vec<KeyValue>,
}

impl TableFile {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            part: path.with_extension("parquet.part"),
            out: None,
            metadata: Vec::new(),
        }
    }

    /// Appends a row group; the first one defines the columns.
    pub(super) fn append(&mut self, columns: &[TableColumn]) -> Result<(), RecordingError> {
        let mut out = match self.out.take() {
            Some(out) => out,
            None => self.begin(columns)?,
        };
        row_group(&mut out, columns).map_err(parquet_error(&self.part))?;
        self.out = Some(out);
        Ok(())
    }

    fn begin(&self, columns: &[TableColumn]) -> Result<SerializedFileWriter<File>, RecordingError> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(RecordingError::file(folder))?;
        }
        let file = File::create(&self.part).map_err(RecordingError::file(&self.part))?;
        let begun = || {
            let fields = columns.iter().map(TableColumn::schema);
            let schema =
                Type::group_type_builder("schema").with_fields(fields.collect::<Result<_>>()?);
            SerializedFileWriter::new(
                file,
                Arc::new(schema.build()?),
                Arc::new(properties(columns)),
            )
        };
        begun().map_err(parquet_error(&self.part))
    }

    /// Returns the number of bytes written so far.
    pub(super) fn bytes(&self) -> usize {
        self.out
            .as_ref()
            .map_or(0, SerializedFileWriter::bytes_written)
    }

    /// Adds metadata of the whole table.
    pub(super) fn add_metadata(&mut self, key: &str, value: &str) {
        self.metadata
            .push(KeyValue::new(key.to_owned(), value.to_owned()));
    }

    /// Finishes the file, syncs it and renames it to its final name.
    pub(super) fn finish(self) -> Result<(), RecordingError> {
        let Some(mut out) = self.out else {
            return Ok(());
        };
        for entry in self.metadata {
            out.append_key_value_metadata(entry);
        }
        let file = out.into_inner().map_err(parquet_error(&self.part))?;
        file.sync_all().map_err(RecordingError::file(&self.part))?;
        std::fs::rename(&self.part, &self.path).map_err(RecordingError::file(&self.path))
    }
}

/// Keeps each picture once in a row group; nothing else is often the same.
fn properties(columns: &[TableColumn]) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by("steadyhand".to_owned())
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .set_dictionary_page_size_limit(PICTURES_BYTES_MAX);
    for column in columns {
        if let ColumnData::Pictures(_) = column.data {
            for field in ["bytes", "path"] {
                let path = ColumnPath::new(vec![column.name.clone(), field.to_owned()]);
                properties = properties.set_column_dictionary_enabled(path, true);
            }
        }
    }
    properties.build()
}

fn row_group(out: &mut SerializedFileWriter<File>, columns: &[TableColumn]) -> Result<()> {
    let mut group = out.next_row_group()?;
    columns
        .iter()
        .try_for_each(|column| column.write(&mut group))?;
    group.close().map(|_| ())
}

/// Tells the system's error as such: a full disk is told from a fault of the format.
fn parquet_error(path: &Path) -> impl FnOnce(ParquetError) -> RecordingError + '_ {
    move |error| {
        let error = match error {
            ParquetError::External(error) => match error.downcast::<std::io::Error>() {
                Ok(error) => *error,
                Err(error) => std::io::Error::other(error),
            },
            error => std::io::Error::other(error),
        };
        RecordingError::file(path)(error)
    }
}
