//! The operations of the document.

use utoipa::openapi::OpenApi;
use utoipa::openapi::path::Operation;

/// All operations, in the order of the document.
pub(super) fn operations(document: &mut OpenApi) -> impl Iterator<Item = &mut Operation> {
    let items = document.paths.paths.values_mut();
    items.flat_map(|item| [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten())
}
