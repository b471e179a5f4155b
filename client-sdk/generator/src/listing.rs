//! A listing of a crate's public items, one line each: the names that a user's program may use.

use std::path::Path;

use quote::{ToTokens, quote};
use syn::{Fields, ImplItem, Item, TraitItem, UseTree, Visibility};

use crate::{Error, read};

/// Returns the public items below `<folder>/src/lib.rs`, sorted, with their signatures.
///
/// # Errors
///
/// A file can't be read or parsed.
pub fn public_items(folder: &Path, name: &str) -> Result<String, Error> {
    let mut lines = Vec::new();
    let source = folder.join("src");
    module(&source.join("lib.rs"), &source, name, &mut lines)?;
    lines.sort();
    lines.dedup();
    Ok(lines.join("\n") + "\n")
}

/// Lists a module's items. Private modules are followed too: their items are public where they are re-exported, and the
/// listing then names them where they are declared.
fn module(file: &Path, folder: &Path, path: &str, lines: &mut Vec<String>) -> Result<(), Error> {
    let parsed = syn::parse_file(&read(file)?)?;
    items(&parsed.items, folder, path, lines)
}

fn items(items_of_module: &[Item], folder: &Path, path: &str, lines: &mut Vec<String>) -> Result<(), Error> {
    for item in items_of_module {
        match item {
            Item::Mod(item) => {
                let name = item.ident.to_string();
                if item.attrs.iter().any(|attribute| attribute.to_token_stream().to_string().contains("test")) {
                    continue;
                }
                let inner = format!("{path}::{name}");
                let below = folder.join(&name);
                match &item.content {
                    Some((_, content)) => items(content, &below, &inner, lines)?,
                    None => {
                        let file = folder.join(format!("{name}.rs"));
                        let file = if file.is_file() { file } else { below.join("mod.rs") };
                        module(&file, &below, &inner, lines)?;
                    }
                }
            }
            other => one(other, path, lines),
        }
    }
    Ok(())
}

fn one(item: &Item, path: &str, lines: &mut Vec<String>) {
    match item {
        Item::Struct(item) if is_public(&item.vis) => {
            let (name, generics) = (&item.ident, &item.generics);
            lines.push(format!("struct {path}::{name}{}", compact(generics)));
            fields(&item.fields, &format!("{path}::{name}"), false, lines);
        }
        Item::Enum(item) if is_public(&item.vis) => {
            let name = &item.ident;
            lines.push(format!("enum {path}::{name}{}", compact(&item.generics)));
            for variant in &item.variants {
                let place = format!("{path}::{name}::{}", variant.ident);
                lines.push(format!("variant {place}"));
                fields(&variant.fields, &place, true, lines);
            }
        }
        Item::Fn(item) if is_public(&item.vis) => {
            lines.push(format!("fn {path}::{}", compact(&item.sig).trim_start_matches("fn ")));
        }
        Item::Const(item) if is_public(&item.vis) => {
            lines.push(format!("const {path}::{}: {}", item.ident, compact(&item.ty)));
        }
        Item::Type(item) if is_public(&item.vis) => {
            lines.push(format!("type {path}::{} = {}", item.ident, compact(&item.ty)));
        }
        Item::Use(item) if is_public(&item.vis) => uses(&item.tree, "", path, lines),
        Item::Trait(item) if is_public(&item.vis) => {
            lines.push(format!("trait {path}::{}", item.ident));
            for function in &item.items {
                if let TraitItem::Fn(function) = function {
                    lines.push(format!("fn {path}::{}::{}", item.ident, compact(&function.sig)));
                }
            }
        }
        Item::Impl(item) => {
            let own = compact(&item.self_ty);
            if let Some((_, implemented, _)) = &item.trait_ {
                lines.push(format!("impl {} for {path}::{own}", compact(implemented)));
                return;
            }
            for function in &item.items {
                match function {
                    ImplItem::Fn(function) if is_public(&function.vis) => {
                        lines.push(format!("method {path}::{own}: {}", compact(&function.sig)));
                    }
                    ImplItem::Const(constant) if is_public(&constant.vis) => {
                        lines.push(format!("const {path}::{own}::{}: {}", constant.ident, compact(&constant.ty)));
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn fields(fields: &Fields, place: &str, all: bool, lines: &mut Vec<String>) {
    for (position, field) in fields.iter().enumerate() {
        if all || is_public(&field.vis) {
            let name = field.ident.as_ref().map_or(position.to_string(), ToString::to_string);
            lines.push(format!("field {place}.{name}: {}", compact(&field.ty)));
        }
    }
}

fn uses(tree: &UseTree, prefix: &str, path: &str, lines: &mut Vec<String>) {
    match tree {
        UseTree::Path(tree) => uses(&tree.tree, &format!("{prefix}{}::", tree.ident), path, lines),
        UseTree::Name(tree) => lines.push(format!("use {path}::{} = {prefix}{}", tree.ident, tree.ident)),
        UseTree::Rename(tree) => lines.push(format!("use {path}::{} = {prefix}{}", tree.rename, tree.ident)),
        UseTree::Glob(_) => lines.push(format!("use {path}::* = {prefix}*")),
        UseTree::Group(tree) => tree.items.iter().for_each(|tree| uses(tree, prefix, path, lines)),
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns tokens as text, without most of the spaces between them.
fn compact(tokens: &impl ToTokens) -> String {
    let mut text = quote!(#tokens).to_string();
    for (spaced, tight) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        (" >", ">"),
        (" ,", ","),
        ("& ", "&"),
        (" :", ":"),
        ("( ", "("),
        (" )", ")"),
        (" (", "("),
        ("-> ", "-> "),
        ("::std::option::Option", "Option"),
        ("::std::string::String", "String"),
        ("::std::vec::Vec", "Vec"),
    ] {
        text = text.replace(spaced, tight);
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::items;

    #[test]
    fn public_items_are_listed_and_private_ones_are_not() {
        let code =
            "pub struct A { pub b: Vec<u8>, c: u8 } struct P; impl A { pub fn new(b: u8) -> Self { todo } fn d() {} }
            pub enum E { V(u8) } impl Clone for A {} pub use x::{Y as Z, W}; pub mod m { pub const N: u8 = 1; }
            #[cfg(test)] mod tests { pub fn t() {} }";
        let mut lines = Vec::new();
        items(&syn::parse_file(&code.replace("todo", "loop {}")).unwrap().items, "x".as_ref(), "k", &mut lines)
            .unwrap();
        let expected = [
            "struct k::A",
            "field k::A.b: Vec<u8>",
            "method k::A: fn new(b: u8) -> Self",
            "enum k::E",
            "variant k::E::V",
            "field k::E::V.0: u8",
            "impl Clone for k::A",
            "use k::Z = x::Y",
            "use k::W = x::W",
            "const k::m::N: u8",
        ];
        assert_eq!(lines, expected);
    }
}
