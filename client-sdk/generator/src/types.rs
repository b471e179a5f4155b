//! The types of the Rust client: made by `typify`, then completed with constructors, setters and documentation.

use quote::{format_ident, quote};
use serde_json::{Value, json};
use syn::{Attribute, Field, Fields, Item, ItemEnum, ItemMod, ItemStruct, Type, parse_quote};
use typify::{TypeSpace, TypeSpaceSettings};

use crate::Error;

/// Returns the text of the types module.
///
/// # Errors
///
/// A schema is not supported.
pub fn module(document: &Value) -> Result<String, Error> {
    let schemas = document.pointer("/components/schemas").cloned().unwrap_or_default();
    let mut definitions = json!({"definitions": schemas});
    adapt(&mut definitions);
    let root: schemars::schema::RootSchema = serde_json::from_value(definitions)?;
    let mut settings = TypeSpaceSettings::default();
    settings.with_derive("PartialEq".into());
    let mut space = TypeSpace::new(&settings);
    space.add_root_schema(root).map_err(|error| Error::Unsupported(format!("schemas: {error}")))?;
    let mut file: syn::File = syn::parse2(space.to_stream())?;
    complete(&mut file.items);
    let header = "// Generated from openapi/openapi.json by `make sdk`; not for editing.\n\n";
    let intro = "//! Bodies of requests and answers, as the API's description names them.\n//!\n\
                 //! `new` takes what a body must have; a method of a field's name sets what it may have.\n\n";
    Ok(format!("{header}{intro}{}", prettyplease::unparse(&file)))
}

/// Rewrites references into the form that `typify` reads, and `anyOf` into `oneOf`.
fn adapt(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(adapt),
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref") {
                *reference = reference.replace("#/components/schemas/", "#/definitions/");
            }
            if let Some(alternatives) = fields.remove("anyOf") {
                fields.insert("oneOf".into(), alternatives);
            }
            fields.remove("example");
            // Times stay strings in the format of RFC 3339: programs choose their own library for dates.
            if fields.get("format").is_some_and(|format| format == "date-time") {
                fields.remove("format");
            }
            if !fields.contains_key("description")
                && let Some(description) = described_alternative(fields)
            {
                fields.insert("description".into(), description);
            }
            fields.values_mut().for_each(adapt);
        }
        _ => {}
    }
}

/// Returns the description of a nullable value, which stands beside its reference.
fn described_alternative(fields: &serde_json::Map<String, Value>) -> Option<Value> {
    let alternatives = fields.get("oneOf")?.as_array()?;
    let null = json!({"type": "null"});
    let (nulls, others): (Vec<&Value>, Vec<&Value>) = alternatives.iter().partition(|value| **value == null);
    match (&nulls[..], &others[..]) {
        ([_], [other]) => other.get("description").cloned(),
        _ => None,
    }
}

/// Adds constructors and setters to structs, and documentation to items that lack it. Conversions that only repeat
/// `serde` are left out.
fn complete(items: &mut Vec<Item>) {
    items.retain(|item| !is_redundant(item));
    let mut added = Vec::new();
    for item in items.iter_mut() {
        match item {
            Item::Struct(item) => {
                document_struct(item);
                added.extend(constructor(item));
            }
            Item::Enum(item) => {
                document_enum(item);
                added.extend(from_text(item));
            }
            Item::Mod(item) => document_module(item),
            _ => {}
        }
    }
    items.extend(added);
}

/// Whether a conversion is redundant: `From<&T> for T` clones, and `TryFrom` of three kinds of strings repeats
/// `FromStr`.
fn is_redundant(item: &Item) -> bool {
    let Item::Impl(item) = item else { return false };
    let Some((_, path, _)) = &item.trait_ else { return false };
    let text = quote!(#path).to_string();
    let own = &item.self_ty;
    text.contains("TryFrom") || text.ends_with(&format!("From < & {} >", quote!(#own)))
}

fn has_docs(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("doc"))
}

fn ensure_docs(attributes: &mut Vec<Attribute>, text: &str) {
    // The schema as JSON, which `typify` appends, is in the API's description already.
    if has_docs(attributes) {
        let docs = docs(attributes);
        let described = docs.split("<details>").next().unwrap_or_default().trim();
        let described = if described.starts_with('`') && described.ends_with('`') && !described.contains(' ') {
            text
        } else {
            described
        };
        attributes.retain(|attribute| !attribute.path().is_ident("doc"));
        set_docs(attributes, described);
    } else {
        set_docs(attributes, text);
    }
}

fn set_docs(attributes: &mut Vec<Attribute>, text: &str) {
    for (position, line) in text.lines().enumerate() {
        let line = format!(" {}", line.trim());
        attributes.insert(position, parse_quote!(#[doc = #line]));
    }
}

/// Returns the text of a documentation comment.
fn docs(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).filter_map(|attribute| {
        let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return None };
        Some(text.value().trim().to_owned())
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn document_struct(item: &mut ItemStruct) {
    let name = item.ident.to_string();
    ensure_docs(&mut item.attrs, &format!("An object of the kind `{name}`."));
    for field in &mut item.fields {
        let name = field.ident.as_ref().map_or("the value".into(), |name| format!("`{name}`"));
        ensure_docs(&mut field.attrs, &format!("The field {name}."));
    }
}

fn document_enum(item: &mut ItemEnum) {
    let name = item.ident.to_string();
    ensure_docs(&mut item.attrs, &format!("One of the kinds of `{name}`."));
    for variant in &mut item.variants {
        let name = variant.ident.to_string();
        ensure_docs(&mut variant.attrs, &format!("The alternative `{name}`."));
        for field in &mut variant.fields {
            let Some(name) = field.ident.as_ref().map(ToString::to_string) else { continue };
            ensure_docs(&mut field.attrs, &format!("The field `{name}`."));
        }
    }
}

fn document_module(item: &mut ItemMod) {
    let text = match item.ident.to_string().as_str() {
        "error" => "Errors of conversions.",
        "defaults" => "Values of fields that are absent.",
        _ => "Further items.",
    };
    ensure_docs(&mut item.attrs, text);
    for item in item.content.iter_mut().flat_map(|(_, items)| items) {
        match item {
            Item::Struct(item) => ensure_docs(&mut item.attrs, "A text is not one of an enumeration's."),
            Item::Fn(item) => ensure_docs(&mut item.attrs, "A default."),
            _ => {}
        }
    }
}

/// Returns conversions for an enumeration of which one alternative is any text.
fn from_text(item: &ItemEnum) -> Vec<Item> {
    let name = &item.ident;
    let is_text = |variant: &syn::Variant| match &variant.fields {
        Fields::Unnamed(fields) => variant.ident == "String" && fields.unnamed.iter().all(|field| is_string(&field.ty)),
        _ => false,
    };
    if !item.variants.iter().any(is_text) {
        return Vec::new();
    }
    let conversion = |source: Type| -> Item {
        parse_quote! {
            impl ::std::convert::From<#source> for #name {
                fn from(value: #source) -> Self {
                    Self::String(value.into())
                }
            }
        }
    };
    vec![conversion(parse_quote!(&str)), conversion(parse_quote!(::std::string::String))]
}

/// Returns `new` with the fields that a body must have, and a setter for each of the others.
fn constructor(item: &ItemStruct) -> Option<Item> {
    let Fields::Named(fields) = &item.fields else { return None };
    let name = &item.ident;
    let (optional, required): (Vec<&Field>, Vec<&Field>) = fields.named.iter().partition(|field| is_optional(field));
    let arguments = required.iter().map(|field| {
        let (name, kind) = (&field.ident, &field.ty);
        if is_string(kind) { quote!(#name: impl Into<#kind>) } else { quote!(#name: #kind) }
    });
    let values = required.iter().map(|field| {
        let name = &field.ident;
        if is_string(&field.ty) { quote!(#name: #name.into()) } else { quote!(#name) }
    });
    let defaults = optional.iter().map(|field| {
        let name = &field.ident;
        let value = default_value(field);
        quote!(#name: #value)
    });
    let setters = optional.iter().map(|field| setter(field));
    let about = format!(" {name} with what it must have, and the defaults of the rest.");
    Some(parse_quote! {
        impl #name {
            #[doc = #about]
            pub fn new(#(#arguments),*) -> Self {
                Self { #(#values,)* #(#defaults,)* }
            }
            #(#setters)*
        }
    })
}

fn setter(field: &Field) -> proc_macro2::TokenStream {
    let name = &field.ident;
    let docs = field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let value = format_ident!("value");
    let (kind, wrapped) = match option_of(&field.ty) {
        Some(inner) => (inner, true),
        None => (&field.ty, false),
    };
    let (argument, converted) = if is_string(kind) {
        (quote!(impl Into<#kind>), quote!(#value.into()))
    } else {
        (quote!(#kind), quote!(#value))
    };
    let stored = if wrapped { quote!(::std::option::Option::Some(#converted)) } else { converted };
    quote! {
        #(#docs)*
        #[must_use]
        pub fn #name(mut self, #value: #argument) -> Self {
            self.#name = #stored;
            self
        }
    }
}

fn serde_attribute(field: &Field) -> String {
    let attributes = field.attrs.iter().filter(|attribute| attribute.path().is_ident("serde"));
    attributes.map(|attribute| quote!(#attribute).to_string()).collect()
}

fn is_optional(field: &Field) -> bool {
    serde_attribute(field).contains("default") || option_of(&field.ty).is_some()
}

/// Returns the value that `serde` uses for an absent field.
fn default_value(field: &Field) -> proc_macro2::TokenStream {
    let attribute = serde_attribute(field);
    let function = attribute.split("default = \"").nth(1).and_then(|rest| rest.split('"').next());
    match function.and_then(|path| syn::parse_str::<syn::Expr>(path).ok()) {
        Some(function) => quote!(#function()),
        None => quote!(::std::default::Default::default()),
    }
}

fn is_string(kind: &Type) -> bool {
    quote!(#kind).to_string().ends_with(":: string :: String")
}

/// Returns the `T` of `Option<T>`.
fn option_of(kind: &Type) -> Option<&Type> {
    let Type::Path(path) = kind else { return None };
    let last = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        syn::GenericArgument::Type(inner) if last.ident == "Option" => Some(inner),
        _ => None,
    }
}
