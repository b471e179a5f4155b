//! The short paths of the compatible APIs, which the router rewrites to the long ones.

use utoipa::openapi::OpenApi;
use utoipa::openapi::path::Operation;

use crate::inference::error_form::short_path;

/// Describes each operation of the compatible APIs under its short path too.
pub(super) fn insert(document: &mut OpenApi) {
    let paths = &mut document.paths.paths;
    let long: Vec<_> =
        paths.iter().filter_map(|(path, item)| Some((short_path(path)?, path.clone(), item.clone()))).collect();
    for (short, long, mut item) in long {
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            rename(operation, &long);
        }
        paths.insert(short, item);
    }
}

fn rename(operation: &mut Operation, long: &str) {
    if let Some(id) = &mut operation.operation_id {
        id.insert_str(0, "short_");
    }
    let text = operation.description.take().unwrap_or_default();
    let mut paragraphs: Vec<&str> = text.split("\n\n").filter(|text| !text.starts_with("Also served at ")).collect();
    let same = format!("The same operation as `{long}`.");
    paragraphs.push(&same);
    operation.description = Some(paragraphs.join("\n\n"));
}
