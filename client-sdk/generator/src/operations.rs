//! Operations of the Rust client: a module for each tag.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use serde_json::Value;
use syn::Ident;

use crate::Error;

const METHODS: &[&str] = &["get", "post", "put", "delete"];

/// Returns the modules by file name.
///
/// # Errors
///
/// The type of a body, an answer or a parameter of an operation is unsupported.
pub fn modules(document: &Value) -> Result<Vec<(String, String)>, Error> {
    let mut tags: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
    let paths = document["paths"].as_object().into_iter().flatten();
    for (path, operations) in paths {
        for method in METHODS {
            if let Some(description) = operations.get(method) {
                let operation = Operation::read(path, method, description)?;
                tags.entry(operation.tag.clone()).or_default().push(operation);
            }
        }
    }
    let mut files = Vec::new();
    for (tag, operations) in &tags {
        files.push((format!("{tag}.rs"), file(&format!("Operations of the group `{tag}`."), &group(operations))?));
    }
    files.push(("mod.rs".into(), file("What is generated from the API's description.", &root(&tags))?));
    Ok(files)
}

fn file(about: &str, items: &TokenStream) -> Result<String, Error> {
    let text = prettyplease::unparse(&syn::parse2(items.clone())?);
    Ok(format!("// Generated from openapi/openapi.json by `make sdk`; not for editing.\n\n//! {about}\n\n{text}"))
}

/// Writes the root module. Groups with query types are public; the others only have methods of `Api`.
fn root(tags: &BTreeMap<String, Vec<Operation>>) -> TokenStream {
    let modules = tags.iter().map(|(tag, operations)| {
        let name = format_ident!("{tag}");
        match operations.iter().any(|operation| !operation.in_query.is_empty()) {
            true => quote!(pub mod #name;),
            false => quote!(mod #name;),
        }
    });
    let types = format_ident!("types");
    quote! {
        #(#modules)*
        pub mod #types;
    }
}

fn group(operations: &[Operation]) -> TokenStream {
    let queries = operations.iter().filter_map(Operation::query_type);
    let methods = operations.iter().map(Operation::method);
    quote! {
        use crate::api::{Api, Request};
        use crate::error::Error;
        #[allow(unused_imports, reason = "not every group has bodies")]
        use super::types;

        impl Api {
            #(#methods)*
        }

        #(#queries)*
    }
}

/// Type of a request's body.
enum Body {
    None,
    Json(Ident),
    Bytes,
}

/// Type of a successful answer.
enum Answer {
    Nothing,
    Json(TokenStream),
    Text,
    Bytes,
}

struct Parameter {
    name: String,
    kind: TokenStream,
    required: bool,
    about: String,
}

struct Operation {
    name: Ident,
    tag: String,
    about: String,
    verb: Ident,
    path: String,
    in_path: Vec<Parameter>,
    in_query: Vec<Parameter>,
    body: Body,
    answer: Answer,
}

impl Operation {
    fn read(path: &str, method: &str, description: &Value) -> Result<Self, Error> {
        let text = |field: &str| description[field].as_str().unwrap_or_default().to_owned();
        let name = text("operationId");
        let unknown = |what: &str| Error::Unsupported(format!("{name}: unknown kind of {what}"));
        let parameters = description["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        let placed = |place: &str| -> Result<Vec<Parameter>, Error> {
            let those = parameters.iter().filter(|parameter| parameter["in"] == place);
            those.map(|parameter| Parameter::read(parameter).ok_or_else(|| unknown("parameter"))).collect()
        };
        let about = match text("description") {
            about if about.is_empty() => text("summary"),
            about => about,
        };
        Ok(Self {
            name: format_ident!("{name}"),
            tag: description["tags"][0].as_str().unwrap_or("other").to_owned(),
            about,
            verb: format_ident!("{}", method.to_uppercase()),
            path: path.into(),
            in_path: placed("path")?,
            in_query: placed("query")?,
            body: body(description).ok_or_else(|| unknown("body"))?,
            answer: answer(description).ok_or_else(|| unknown("answer"))?,
        })
    }

    /// Writes the struct of the parameters in the query.
    fn query_type(&self) -> Option<TokenStream> {
        if self.in_query.is_empty() {
            return None;
        }
        let name = self.query_name();
        let about = format!(" What `{}` takes in the query.", self.name);
        let fields = self.in_query.iter().map(|parameter| {
            let (name, kind, about) =
                (format_ident!("{}", parameter.name), &parameter.kind, format!(" {}", parameter.about));
            match parameter.required {
                true => quote!(#[doc = #about] pub #name: #kind),
                false => quote! {
                    #[doc = #about]
                    #[serde(skip_serializing_if = "Option::is_none")]
                    pub #name: Option<#kind>
                },
            }
        });
        Some(quote! {
            #[doc = #about]
            #[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
            pub struct #name { #(#fields,)* }
        })
    }

    fn query_name(&self) -> Ident {
        let words = self.name.to_string();
        let camel: String = words.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
        format_ident!("{camel}Query")
    }

    fn method(&self) -> TokenStream {
        let Self { name, verb, path, .. } = self;
        let about = self.about.lines().map(|line| format!(" {}", line.trim()));
        let place = format!(" `{verb} {path}`");
        let mut arguments: Vec<TokenStream> = Vec::new();
        let mut url = Vec::new();
        for piece in path.trim_start_matches('/').split('/') {
            match piece.strip_prefix('{').and_then(|piece| piece.strip_suffix('}')) {
                Some(parameter) => {
                    let parameter = format_ident!("{parameter}");
                    url.push(quote!(&#parameter.to_string()));
                }
                None => url.push(quote!(#piece)),
            }
        }
        for parameter in &self.in_path {
            let (name, kind) = (format_ident!("{}", parameter.name), &parameter.kind);
            let kind = if kind.to_string() == "String" { quote!(&str) } else { kind.clone() };
            arguments.push(quote!(#name: #kind));
        }
        let mut request = quote!(Request::new(reqwest::Method::#verb, &[#(#url),*]));
        if !self.in_query.is_empty() {
            let query = self.query_name();
            arguments.push(quote!(query: &#query));
            request = quote!(#request.query(query)?);
        }
        match &self.body {
            Body::None => {}
            Body::Json(kind) => {
                arguments.push(quote!(body: &types::#kind));
                request = quote!(#request.json(body)?);
            }
            Body::Bytes => {
                arguments.push(quote!(body: Vec<u8>));
                request = quote!(#request.bytes(body, "application/octet-stream"));
            }
        }
        let (kind, send) = match &self.answer {
            Answer::Nothing => (quote!(()), quote!(self.send_for_nothing(request).await)),
            Answer::Json(kind) => (kind.clone(), quote!(self.send_for_json(request).await)),
            Answer::Text => (quote!(String), quote!(self.send_for_text(request).await)),
            Answer::Bytes => (quote!(Vec<u8>), quote!(self.send_for_bytes(request).await)),
        };
        quote! {
            #(#[doc = #about])*
            #[doc = ""]
            #[doc = #place]
            #[doc = ""]
            #[doc = " # Errors"]
            #[doc = ""]
            #[doc = " [`Error::Api`] when the server refuses the request; others when it does not answer."]
            pub async fn #name(&self, #(#arguments),*) -> Result<#kind, Error> {
                let request = #request;
                #send
            }
        }
    }
}

impl Parameter {
    fn read(parameter: &Value) -> Option<Self> {
        let schema = &parameter["schema"];
        let kind = match (schema["type"].as_str()?, schema["format"].as_str().unwrap_or_default()) {
            ("string", _) => quote!(String),
            ("integer", "int32") => quote!(i32),
            ("integer", "uint32") => quote!(u32),
            ("integer", "uint64") => quote!(u64),
            ("integer", _) => quote!(i64),
            ("boolean", _) => quote!(bool),
            _ => return None,
        };
        Some(Self {
            name: parameter["name"].as_str()?.to_owned(),
            kind,
            required: parameter["required"] == true,
            about: parameter["description"].as_str().unwrap_or_default().replace('\n', " "),
        })
    }
}

/// Returns the name of a schema that is a reference.
fn referenced(schema: &Value) -> Option<Ident> {
    let name = schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")?;
    Some(format_ident!("{name}"))
}

fn body(description: &Value) -> Option<Body> {
    let Some(content) = description.pointer("/requestBody/content") else { return Some(Body::None) };
    match content.get("application/json") {
        Some(json) => Some(Body::Json(referenced(&json["schema"])?)),
        None => content.get("application/octet-stream").map(|_| Body::Bytes),
    }
}

fn answer(description: &Value) -> Option<Answer> {
    let responses = description["responses"].as_object()?;
    let (_, success) = responses.iter().find(|(status, _)| status.starts_with('2'))?;
    let Some(content) = success.get("content") else { return Some(Answer::Nothing) };
    if let Some(json) = content.get("application/json") {
        let kind = referenced(&json["schema"])?;
        return Some(Answer::Json(quote!(types::#kind)));
    }
    match content.as_object()?.keys().next()?.as_str() {
        text if text.starts_with("text/") => Some(Answer::Text),
        _ => Some(Answer::Bytes),
    }
}
