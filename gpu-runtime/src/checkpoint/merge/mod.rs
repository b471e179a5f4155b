//! Merging of an adapter into the files of its base model: `W + (alpha / r) B A` for each adapted matrix `W`.
//!
//! Weights keep their files, types and order. If the unembedding is tied to the embedding, an adapter on it unties
//! them: the merged model has an output projection of its own, and its configuration sets `tie_word_embeddings` to
//! false.

mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use trainyard_protocol::LoraSpec;

use self::file::TensorFile;
use super::adapter::{Adapter, read_adapter};
use super::adapter_names::read_names;
use super::peft_form::check_extents;
use super::{io_error, malformed};
use crate::config::{LoadError, ModelConfig};
use crate::load::{Arrangement, Columns, FileTensor, HEAD, INDEX, file_tensors, plain_files, untied};
use crate::model::{ParamSpec, ParamTable};

/// The table that stands for the output projection where both are tied.
const EMBEDDING: &str = "model.embed_tokens.weight";
/// Endings of files of a base model that are not copied: weights in other forms.
const OTHER_WEIGHTS: [&str; 6] = ["bin", "pth", "pt", "gguf", "onnx", "h5"];
/// Elements of a matrix that are changed at a time.
const PIECE: usize = 1 << 22;

/// What is added to a weight: the product of B, scaled, and A.
struct Change<'a> {
    /// Elements of A: `[rank, inputs]`.
    a: &'a [f32],
    /// Elements of B: `[outputs, rank]`.
    b: &'a [f32],
    rank: usize,
    scale: f32,
}

/// Writes the base model in the folder `base` with the change of the adapter in the folder `adapter` into the folder
/// `to`.
///
/// # Errors
/// Fails if a module of the adapter does not match the base model, if the base model is quantized or has no safetensors
/// files, or if a file cannot be read or written. Files already written remain.
pub fn merge(adapter: &Path, base: &Path, to: &Path) -> Result<(), LoadError> {
    let (config, paths) = plain_files(base)?;
    let adapter = read_adapter(adapter)?;
    let changes = changes(&config, &adapter)?;
    copy(base, to)?;
    let at = |path: &PathBuf| TensorFile::open(&to.join(path.file_name().unwrap_or_default()));
    let mut model = Merged::new(config, paths.iter().map(at).collect::<Result<_, _>>()?);
    if model.config.tie_word_embeddings && changes.contains_key(HEAD) {
        model.untie(to)?;
    }
    model.add(&changes)
}

/// The changes of an adapter by the names of the parameter table.
fn changes<'a>(config: &ModelConfig, adapter: &'a Adapter) -> Result<BTreeMap<String, Change<'a>>, LoadError> {
    let Adapter { rank, alpha, tensors } = adapter;
    let (rank, scale) = (*rank, *alpha / *rank as f32);
    let every = LoraSpec { latent_up: true, ..LoraSpec::on_all(rank as u32, 0) };
    let (mut changes, mut known) = (BTreeMap::new(), 0);
    for module in ParamTable::adapted_modules(config, &every) {
        let Some(pair) = read_names(config, &module).iter().find_map(|name| tensors.get(name)) else { continue };
        check_extents(&module, pair, rank)?;
        known += 1;
        for (weight, [a, b]) in module.weights(config, [&pair.a, &pair.b]) {
            changes.insert(weight, Change { a, b, rank, scale });
        }
    }
    if known == tensors.len() {
        return Ok(changes);
    }
    let names: Vec<String> =
        ParamTable::adapted_modules(config, &every).iter().flat_map(|module| read_names(config, module)).collect();
    let unknown = tensors.keys().find(|name| !names.contains(name)).map_or("a module twice", String::as_str);
    Err(LoadError::Unsupported(format!("the base model has no module {unknown}, which the adapter changes")))
}

/// Copies the files of a base model that belong to the merged one.
fn copy(base: &Path, to: &Path) -> Result<(), LoadError> {
    for entry in fs::read_dir(base).map_err(|error| io_error(base, error))? {
        let path = entry.map_err(|error| io_error(base, error))?.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if path.is_file() && !OTHER_WEIGHTS.contains(&ending) {
            let target = to.join(path.file_name().unwrap_or_default());
            fs::copy(&path, &target).map_err(|error| io_error(&target, error))?;
        }
    }
    Ok(())
}

/// A copy of a base model, to be changed.
struct Merged {
    config: ModelConfig,
    files: Vec<TensorFile>,
    /// File of each tensor, and its name there, by its name in the spelling of the parameter table.
    homes: BTreeMap<String, (usize, String)>,
}

impl Merged {
    fn new(config: ModelConfig, files: Vec<TensorFile>) -> Self {
        let mut homes = BTreeMap::new();
        for (index, file) in files.iter().enumerate() {
            for name in file.names() {
                if let Some(canonical) = config.spelling.canonical(name) {
                    homes.insert(canonical, (index, name.clone()));
                }
            }
        }
        Self { config, files, homes }
    }

    /// Gives the output projection a table of its own.
    fn untie(&mut self, folder: &Path) -> Result<(), LoadError> {
        self.config.tie_word_embeddings = false;
        let path = folder.join("config.json");
        fs::write(&path, untied(read_object(&path)?)).map_err(|error| io_error(&path, error))?;
        if self.homes.contains_key(HEAD) {
            return Ok(());
        }
        let name = self.config.spelling.in_files(HEAD);
        let (index, embedding) = self.home(EMBEDDING)?.clone();
        self.files[index].append_copy(&embedding, &name)?;
        let path = folder.join(INDEX);
        if path.is_file() {
            let mut index_file = read_object(&path)?;
            let map = index_file.get_mut("weight_map").and_then(Value::as_object_mut);
            let map = map.ok_or_else(|| malformed(&path, "weight_map is missing"))?;
            map.insert(name.clone(), json!(self.files[index].file_name()));
            let text = format!("{:#}\n", Value::Object(index_file));
            fs::write(&path, text).map_err(|error| io_error(&path, error))?;
        }
        self.homes.insert(HEAD.to_owned(), (index, name));
        Ok(())
    }

    fn home(&self, canonical: &str) -> Result<&(usize, String), LoadError> {
        let missing = || LoadError::MissingTensor(self.config.spelling.in_files(canonical));
        self.homes.get(canonical).ok_or_else(missing)
    }

    /// Adds all changes to the tensors that hold their weights.
    fn add(&self, changes: &BTreeMap<String, Change<'_>>) -> Result<(), LoadError> {
        let specs = ParamTable::new(&self.config).specs;
        for tensor in file_tensors(&self.config, &specs) {
            let changed = |part: &usize| changes.contains_key(&specs[*part].name);
            if !tensor.parts.iter().any(changed) {
                continue;
            }
            if self.homes.contains_key(&tensor.name) {
                self.add_to(&tensor, &specs, changes)?;
                continue;
            }
            // A file may hold apart what those of the family usually hold together.
            let FileTensor { parts, arrangement, .. } = tensor;
            for part in parts {
                let ParamSpec { name, shape, .. } = &specs[part];
                let single = FileTensor { name: name.clone(), shape: shape.clone(), parts: vec![part], arrangement };
                self.add_to(&single, &specs, changes)?;
            }
        }
        self.files.iter().try_for_each(TensorFile::sync)
    }

    fn add_to(
        &self,
        tensor: &FileTensor,
        specs: &[ParamSpec],
        changes: &BTreeMap<String, Change<'_>>,
    ) -> Result<(), LoadError> {
        let (index, name) = self.home(&tensor.name)?;
        let file = &self.files[*index];
        let found = file.shape(name).unwrap_or_default();
        if found != tensor.shape {
            let (found, expected) = (found.to_vec(), tensor.shape.clone());
            return Err(LoadError::WrongShape { name: name.clone(), found, expected });
        }
        let mut first = 0;
        for (at, part) in tensor.parts.iter().enumerate() {
            let ParamSpec { name: own, shape, .. } = &specs[*part];
            let length = shape.iter().product::<usize>();
            match (changes.get(own), tensor.arrangement) {
                (None, _) => {}
                (Some(change), Arrangement::Rows) => change.add_rows(file, name, first, [shape[0], shape[1]])?,
                (Some(change), Arrangement::Columns(columns)) => {
                    let matrix = at / columns.projections * columns.elements();
                    let add = |values: &mut [f32]| change.add_columns(&columns, at % columns.projections, values);
                    file.change(name, matrix..matrix + columns.elements(), add)?;
                }
            }
            first += length;
        }
        Ok(())
    }
}

impl Change<'_> {
    /// Adds the change to `outputs` rows of `inputs` elements, from an element on.
    fn add_rows(
        &self,
        file: &TensorFile,
        name: &str,
        first: usize,
        [outputs, inputs]: [usize; 2],
    ) -> Result<(), LoadError> {
        let rows = (PIECE / inputs.max(1)).max(1);
        for start in (0..outputs).step_by(rows) {
            let count = rows.min(outputs - start);
            let elements = first + start * inputs..first + (start + count) * inputs;
            file.change(name, elements, |values| {
                for (row, values) in values.chunks_exact_mut(inputs.max(1)).enumerate() {
                    for (factor, a) in self.row(start + row) {
                        values.iter_mut().zip(a).for_each(|(value, a)| *value += factor * a);
                    }
                }
            })?;
        }
        Ok(())
    }

    /// Adds the change to the outputs of a projection in the matrix of an expert.
    fn add_columns(&self, columns: &Columns, projection: usize, values: &mut [f32]) {
        for output in 0..columns.outputs {
            for (factor, a) in self.row(output) {
                for (input, a) in a.iter().enumerate() {
                    values[columns.index(projection, output, input)] += factor * a;
                }
            }
        }
    }

    /// Scaled elements of a row of B, each with its row of A.
    fn row(&self, output: usize) -> impl Iterator<Item = (f32, &[f32])> {
        let inputs = self.a.len() / self.rank;
        let factors = self.b[output * self.rank..][..self.rank].iter().map(|factor| factor * self.scale);
        factors.zip(self.a.chunks_exact(inputs.max(1)))
    }
}

fn read_object(path: &Path) -> Result<Map<String, Value>, LoadError> {
    let text = fs::read(path).map_err(|error| io_error(path, error))?;
    serde_json::from_slice(&text).map_err(|error| malformed(path, error))
}
