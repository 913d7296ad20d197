//! The functions of a source file, outside its tests: what they are called, what they take and
//! give, and what they call.

use std::collections::BTreeSet;
use syn::visit::Visit;
use syn::{Attribute, Block, ImplItem, Item, Signature, TraitItem, Type};

/// One function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// `Type::name` for a method, `module::name` for any other function.
    pub name: String,
    /// Whether others than its own module can call it.
    pub visible: bool,
    /// The types of its parameters without `self`, written without spaces.
    pub takes: Vec<String>,
    /// The type that it gives, written without spaces; empty for none.
    pub gives: String,
    /// Paths and methods that it calls, written without spaces.
    pub calls: BTreeSet<String>,
}

/// Reads the functions of a source file, whose module has this name.
pub fn functions(source: &str, module: &str) -> Result<Vec<Function>, syn::Error> {
    let file = syn::parse_file(source)?;
    let mut found = Vec::new();
    in_items(&file.items, module, &mut found);
    Ok(found)
}

fn in_items(items: &[Item], module: &str, found: &mut Vec<Function>) {
    for item in items {
        match item {
            Item::Fn(item) if !is_test(&item.attrs) => {
                let visible = is_visible(&item.vis);
                found.push(function(module, visible, &item.sig, Some(&item.block)));
            }
            Item::Impl(item) if !is_test(&item.attrs) => {
                let owner = last_name(&item.self_ty);
                for part in &item.items {
                    if let ImplItem::Fn(part) = part {
                        let visible = item.trait_.is_some() || is_visible(&part.vis);
                        found.push(function(&owner, visible, &part.sig, Some(&part.block)));
                    }
                }
            }
            Item::Trait(item) => {
                for part in &item.items {
                    if let TraitItem::Fn(part) = part {
                        found.push(function(
                            &item.ident.to_string(),
                            true,
                            &part.sig,
                            part.default.as_ref(),
                        ));
                    }
                }
            }
            Item::Mod(item) if !is_test(&item.attrs) => {
                if let Some((_, items)) = &item.content {
                    in_items(items, &item.ident.to_string(), found);
                }
            }
            _ => {}
        }
    }
}

fn function(owner: &str, visible: bool, signature: &Signature, body: Option<&Block>) -> Function {
    let mut calls = Calls::default();
    if let Some(body) = body {
        calls.visit_block(body);
    }
    let takes = signature.inputs.iter().filter_map(|input| match input {
        syn::FnArg::Typed(input) => Some(written(&input.ty)),
        syn::FnArg::Receiver(_) => None,
    });
    Function {
        name: format!("{owner}::{}", signature.ident),
        visible,
        takes: takes.collect(),
        gives: match &signature.output {
            syn::ReturnType::Default => String::new(),
            syn::ReturnType::Type(_, kind) => written(kind),
        },
        calls: calls.0,
    }
}

fn is_visible(visibility: &syn::Visibility) -> bool {
    !matches!(visibility, syn::Visibility::Inherited)
}

/// Whether something is there for tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let written = written(&attribute.meta);
        written == "test" || written == "cfg(test)"
    })
}

fn last_name(kind: &Type) -> String {
    match kind {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .map_or_else(String::new, |part| part.ident.to_string()),
        other => written(other),
    }
}

fn written(part: &impl quote::ToTokens) -> String {
    part.to_token_stream().to_string().replace(' ', "")
}

#[derive(Default)]
struct Calls(BTreeSet<String>);

impl<'ast> Visit<'ast> for Calls {
    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        self.0.insert(written(&path.path));
        syn::visit::visit_expr_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.0.insert(format!(".{}", call.method));
        syn::visit::visit_expr_method_call(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_functions_and_calls_are_found_and_tests_are_not() {
        let source = "
            impl<'a> Shop<'a> {
                pub(crate) fn open(&self, bytes: &[u8], n: usize) -> Result<(), E> { toml::from_str(x)?; y.parse() }
            }
            fn free() { helper(1) }
            #[cfg(test)] mod tests { fn hidden(bytes: &[u8]) {} }
            #[test] fn check() {}
            mod inner { fn deep() -> u8 { 1 } }
        ";
        let found = functions(source, "store").unwrap();
        let names: Vec<&str> = found
            .iter()
            .map(|function| function.name.as_str())
            .collect();
        assert_eq!(names, ["Shop::open", "store::free", "inner::deep"]);
        assert!(found[0].visible && !found[1].visible);
        assert_eq!(found[0].takes, ["&[u8]", "usize"]);
        assert_eq!(found[0].gives, "Result<(),E>");
        assert!(found[0].calls.contains("toml::from_str") && found[0].calls.contains(".parse"));
        assert!(found[1].calls.contains("helper"));
    }
}
