//! What a function may give in place of what it should: values that are easily written and probably
//! wrong.

use quote::ToTokens;
use syn::{Block, GenericArgument, PathArguments, ReturnType, Stmt, Type};

/// Expressions for the body of a function; none if there is no simple one. What it gives anyway is no change.
pub fn of_function(output: &ReturnType, block: &Block) -> Vec<String> {
    let given = only_expression(block);
    let mut values = of_return(output);
    values.retain(|value| Some(value.replace(' ', "")) != given);
    values
}

/// What a function gives if it does nothing else, written without spaces.
fn only_expression(block: &Block) -> Option<String> {
    match &block.stmts[..] {
        [Stmt::Expr(given, None)] => Some(given.to_token_stream().to_string().replace(' ', "")),
        _ => None,
    }
}

/// Expressions for what a function gives.
fn of_return(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".into()],
        ReturnType::Type(_, ty) => of_type(ty),
    }
}

fn of_type(ty: &Type) -> Vec<String> {
    match ty {
        Type::Path(path) => of_path(path),
        Type::Tuple(tuple) => of_tuple(&tuple.elems.iter().collect::<Vec<_>>()),
        Type::Array(array) => {
            let length = array.len.to_token_stream().to_string();
            let values = of_type(&array.elem).into_iter();
            let each = |value: String| match array.elem.to_token_stream().to_string().as_str() {
                // What is no number may be no copy either, and an error in a macro names no place.
                "u8" | "u16" | "u32" | "u64" | "usize" | "i64" | "f64" => {
                    format!("[{value}; {length}]")
                }
                _ => format!("std::array::from_fn(|_| {value})"),
            };
            values.map(each).collect()
        }
        Type::Reference(reference) => of_reference(&reference.elem),
        _ => Vec::new(),
    }
}

fn of_reference(to: &Type) -> Vec<String> {
    match to {
        Type::Slice(_) => vec!["&[]".into()],
        Type::Path(path) if path.path.is_ident("str") => vec!["\"\"".into()],
        Type::Path(_) => vec!["Box::leak(Box::new(Default::default()))".into()],
        _ => Vec::new(),
    }
}

/// The first value of every part.
fn of_tuple(parts: &[&Type]) -> Vec<String> {
    let firsts: Option<Vec<String>> = parts
        .iter()
        .map(|part| of_type(part).into_iter().next())
        .collect();
    match firsts {
        Some(firsts) if firsts.is_empty() => vec!["()".into()],
        Some(firsts) => vec![format!("({},)", firsts.join(", "))],
        None => Vec::new(),
    }
}

fn of_path(path: &syn::TypePath) -> Vec<String> {
    let Some(last) = path.path.segments.last() else {
        return Vec::new();
    };
    let inner = first_argument(&last.arguments);
    let inside = || inner.map(of_type).unwrap_or_default();
    let wrapped = |with: &str| -> Vec<String> {
        let values = inside().into_iter();
        values.map(|value| format!("{with}({value})")).collect()
    };
    let listed = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    match last.ident.to_string().as_str() {
        "bool" => listed(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => listed(&["0", "1"]),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => listed(&["0", "1", "-1"]),
        "f32" | "f64" => listed(&["0.0", "1.0", "-1.0"]),
        "String" => listed(&["String::new()", "\"other\".into()"]),
        "Option" => [listed(&["None"]), wrapped("Some")].concat(),
        "Result" => wrapped("Ok"),
        "Zeroizing" => wrapped("Zeroizing::new"),
        "Vec" => {
            let one = inside().into_iter().next();
            let one = one.map(|value| format!("vec![{value}]"));
            [vec!["Vec::new()".to_owned()], one.into_iter().collect()].concat()
        }
        _ => listed(&["Default::default()"]),
    }
}

fn first_argument(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn values(signature: &str) -> Vec<String> {
        of_return(&syn::parse_str::<syn::Signature>(signature).unwrap().output)
    }

    #[test]
    fn every_kind_of_type_has_its_values() {
        for (signature, expected) in [
            ("fn f()", &["()"][..]),
            ("fn f() -> bool", &["true", "false"]),
            ("fn f() -> Result<u8, E>", &["Ok(0)", "Ok(1)"]),
            ("fn f() -> io::Result<()>", &["Ok(())"]),
            (
                "fn f() -> Option<String>",
                &["None", "Some(String::new())", "Some(\"other\".into())"],
            ),
            (
                "fn f() -> Zeroizing<Vec<u64>>",
                &["Zeroizing::new(Vec::new())", "Zeroizing::new(vec![0])"],
            ),
            ("fn f() -> (u8, f64)", &["(0, 0.0,)"]),
            ("fn f() -> [u8; 32]", &["[0; 32]", "[1; 32]"]),
            ("fn f() -> &[u8]", &["&[]"]),
            ("fn f() -> Self", &["Default::default()"]),
            ("fn f() -> impl Iterator<Item = u8>", &[]),
        ] {
            assert_eq!(values(signature), expected, "{signature}");
        }
    }
}
