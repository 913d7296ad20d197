//! Places of a source file that can be changed, and into what.

use super::values;
use proc_macro2::Span;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Pat, Signature, Stmt, UnOp};

/// Bytes of the file.
pub type Bytes = Range<usize>;

/// A place, and its mutants in the order in which they are numbered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// What is replaced; empty where something is put in.
    pub bytes: Bytes,
    /// How.
    pub kind: Kind,
    /// The function around it.
    pub function: String,
    /// The text of that function.
    pub body: Bytes,
}

/// What a place is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The beginning of a function: it gives one of these at once.
    Body(Vec<String>),
    /// Two operands and what may stand between them, the operator that does first.
    Operands {
        /// Before the operator.
        left: Bytes,
        /// After it.
        right: Bytes,
        /// How the choice is written.
        form: Form,
        /// As written.
        operator: &'static str,
        /// In its place.
        others: &'static [&'static str],
    },
    /// `!` or `-` before an operand: it is left out.
    Sign {
        /// The operand.
        operand: Bytes,
        /// What is left out.
        sign: &'static str,
    },
    /// A condition: it is negated.
    Condition,
    /// The guard of an arm: it is always true, or never.
    Guard,
    /// Behind the pattern of an arm without a guard: it never fits.
    Arm(Bytes),
    /// A statement: it is left out.
    Statement,
}

/// How the choice between operators is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Operands are values: each is computed once.
    Values,
    /// Operands are places, or may be: the whole is written once for each operator.
    Places,
    /// The second operand may not be computed.
    Lazy,
}

impl Site {
    /// What its mutants change, in words.
    pub fn mutations(&self, text: &str) -> Vec<String> {
        let whole = written(text, &self.bytes);
        match &self.kind {
            Kind::Body(values) => {
                let name = |value: &String| format!("give `{value}` at once");
                values.iter().map(name).collect()
            }
            Kind::Operands {
                left,
                right,
                operator,
                others,
                ..
            } => {
                let (left, right) = (written(text, left), written(text, right));
                let name = |other: &&str| format!("`{left} {operator} {right}`: `{other}`");
                others.iter().map(name).collect()
            }
            Kind::Sign { sign, .. } => vec![format!("`{whole}` without `{sign}`")],
            Kind::Condition => vec![format!("negate `{whole}`")],
            Kind::Guard => vec![
                format!("guard `{whole}` always true"),
                format!("guard `{whole}` always false"),
            ],
            Kind::Arm(pattern) => vec![format!("delete arm `{}`", written(text, pattern))],
            Kind::Statement => vec![format!("delete `{whole}`")],
        }
    }
}

/// A piece of the file without line breaks.
fn written(text: &str, bytes: &Bytes) -> String {
    let words: Vec<&str> = text[bytes.clone()].split_whitespace().collect();
    words.join(" ")
}

/// Function, mutation and text of the function for every mutant, in the order of the sites.
pub fn named(text: &str, sites: &[Site]) -> Vec<(String, String, String)> {
    let one = |site: &Site| {
        let (function, body) = (site.function.clone(), text[site.body.clone()].to_owned());
        let mutations = site.mutations(text).into_iter();
        mutations
            .map(|mutation| (function.clone(), mutation, body.clone()))
            .collect::<Vec<_>>()
    };
    sites.iter().flat_map(one).collect()
}

/// All places of a file outside its tests, each before those that lie within it.
pub fn sites(text: &str) -> Result<Vec<Site>, syn::Error> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder::default();
    finder.visit_file(&file);
    let mut sites = finder.sites;
    // The sort is stable: where two are equal, the outer one was found first.
    sites.sort_by_key(|site| (site.bytes.start, std::cmp::Reverse(site.bytes.end)));
    Ok(sites)
}

/// Whether an item belongs to tests.
pub fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        attribute.path().is_ident("test")
            || is_cfg
                && attribute
                    .parse_args::<syn::Path>()
                    .is_ok_and(|path| path.is_ident("test"))
    })
}

#[derive(Default)]
struct Finder {
    sites: Vec<Site>,
    owner: Option<String>,
    function: Option<(String, Bytes)>,
}

fn bytes(span: Span) -> Bytes {
    span.byte_range()
}

impl Finder {
    fn add(&mut self, bytes: Bytes, kind: Kind) {
        let Some((function, body)) = self.function.clone() else {
            return;
        };
        self.sites.push(Site {
            bytes,
            kind,
            function,
            body,
        });
    }

    /// A function: mutants of its body, then those inside. Code that runs while it is compiled has no switch.
    fn function(&mut self, signature: &Signature, block: &Block, whole: Span) {
        if signature.constness.is_some() {
            return;
        }
        let name = match &self.owner {
            Some(owner) => format!("{owner}::{}", signature.ident),
            None => signature.ident.to_string(),
        };
        let outer = self.function.replace((name, bytes(whole)));
        let values = values::of_function(&signature.output, block);
        let begin = bytes(block.brace_token.span.open()).end;
        if !values.is_empty() && !block.stmts.is_empty() {
            self.add(begin..begin, Kind::Body(values));
        }
        self.visit_block(block);
        self.function = outer;
    }

    fn condition(&mut self, condition: &Expr) {
        if !has_let(condition) {
            self.add(bytes(condition.span()), Kind::Condition);
        }
    }

    fn arms(&mut self, arms: &[syn::Arm]) {
        let rest = |pat: &Pat| matches!(pat, Pat::Wild(_));
        let Some(last) = arms.iter().rposition(|arm| rest(&arm.pat)) else {
            return;
        };
        for arm in &arms[..last] {
            let pattern = bytes(arm.pat.span());
            if !matches!(arm.pat, Pat::Guard(_)) && arm.attrs.is_empty() {
                self.add(pattern.end..pattern.end, Kind::Arm(pattern));
            }
        }
    }
}

/// Whether a condition binds names: then it cannot be wrapped.
fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// The operator, how the choice is written, and what may stand in its place.
fn operators(operator: &BinOp) -> Option<(&'static str, Form, &'static [&'static str])> {
    use Form::{Lazy, Places, Values};
    Some(match operator {
        BinOp::Add(_) => ("+", Values, &["-", "*"]),
        BinOp::Sub(_) => ("-", Values, &["+", "/"]),
        BinOp::Mul(_) => ("*", Values, &["+", "/"]),
        BinOp::Div(_) => ("/", Values, &["%", "*"]),
        BinOp::Rem(_) => ("%", Values, &["/", "+"]),
        BinOp::BitAnd(_) => ("&", Values, &["|", "^"]),
        BinOp::BitOr(_) => ("|", Values, &["&", "^"]),
        BinOp::BitXor(_) => ("^", Values, &["|", "&"]),
        BinOp::Shl(_) => ("<<", Values, &[">>"]),
        BinOp::Shr(_) => (">>", Values, &["<<"]),
        BinOp::Eq(_) => ("==", Places, &["!="]),
        BinOp::Ne(_) => ("!=", Places, &["=="]),
        BinOp::Lt(_) => ("<", Places, &["==", ">", "<="]),
        BinOp::Gt(_) => (">", Places, &["==", "<", ">="]),
        BinOp::Le(_) => ("<=", Places, &[">", "<"]),
        BinOp::Ge(_) => (">=", Places, &["<", ">"]),
        BinOp::And(_) => ("&&", Lazy, &["||"]),
        BinOp::Or(_) => ("||", Lazy, &["&&"]),
        BinOp::AddAssign(_) => ("+=", Places, &["-=", "*="]),
        BinOp::SubAssign(_) => ("-=", Places, &["+=", "/="]),
        BinOp::MulAssign(_) => ("*=", Places, &["+=", "/="]),
        BinOp::DivAssign(_) => ("/=", Places, &["%=", "*="]),
        BinOp::RemAssign(_) => ("%=", Places, &["/=", "+="]),
        BinOp::BitAndAssign(_) => ("&=", Places, &["|=", "^="]),
        BinOp::BitOrAssign(_) => ("|=", Places, &["&=", "^="]),
        BinOp::BitXorAssign(_) => ("^=", Places, &["|=", "&="]),
        BinOp::ShlAssign(_) => ("<<=", Places, &[">>="]),
        BinOp::ShrAssign(_) => (">>=", Places, &["<<="]),
        _ => return None,
    })
}

/// Whether a statement does something that may be left out.
fn acts(expression: &Expr) -> bool {
    match expression {
        Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_) => true,
        Expr::Binary(binary) => binary.op.is_assignment(),
        Expr::Try(tried) => acts(&tried.expr),
        Expr::Await(awaited) => acts(&awaited.base),
        _ => false,
    }
}

/// Extends what `syn` knows of operators.
trait IsAssignment {
    fn is_assignment(&self) -> bool;
}

impl IsAssignment for BinOp {
    fn is_assignment(&self) -> bool {
        operators(self).is_some_and(|(operator, ..)| {
            operator.ends_with('=') && !["==", "!=", "<=", ">="].contains(&operator)
        })
    }
}

/// Whether an `impl` only shows what a value is.
fn only_shows(item: &syn::ItemImpl) -> bool {
    let shows = |path: &syn::Path| {
        let last = path.segments.last();
        last.is_some_and(|segment| segment.ident == "Debug")
    };
    item.trait_.as_ref().is_some_and(|(path, _)| shows(path))
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            let owner = self.owner.take();
            self.function(&item.sig, &item.block, item.span());
            self.owner = owner;
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if is_test(&item.attrs) || only_shows(item) {
            return;
        }
        let name = match item.self_ty.as_ref() {
            syn::Type::Path(path) => path.path.segments.last().map(|s| s.ident.to_string()),
            _ => None,
        };
        let owner = std::mem::replace(&mut self.owner, name);
        visit::visit_item_impl(self, item);
        self.owner = owner;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block, item.span());
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let owner = self.owner.replace(item.ident.to_string());
        visit::visit_item_trait(self, item);
        self.owner = owner;
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block, item.span());
        }
    }

    // What is computed while the program is compiled has no switch.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_pat_guard(&mut self, pattern: &'ast syn::PatGuard) {
        if !has_let(&pattern.guard) {
            self.add(bytes(pattern.guard.span()), Kind::Guard);
        }
        self.visit_expr(&pattern.guard);
    }

    fn visit_expr_if(&mut self, expression: &'ast syn::ExprIf) {
        self.condition(&expression.cond);
        visit::visit_expr_if(self, expression);
    }

    fn visit_expr_while(&mut self, expression: &'ast syn::ExprWhile) {
        self.condition(&expression.cond);
        visit::visit_expr_while(self, expression);
    }

    fn visit_expr_match(&mut self, expression: &'ast syn::ExprMatch) {
        self.arms(&expression.arms);
        visit::visit_expr_match(self, expression);
    }

    fn visit_expr_unary(&mut self, expression: &'ast syn::ExprUnary) {
        let sign = match expression.op {
            UnOp::Not(_) => Some("!"),
            UnOp::Neg(_) => Some("-"),
            _ => None,
        };
        if let (Some(sign), true) = (sign, expression.attrs.is_empty()) {
            let operand = bytes(expression.expr.span());
            self.add(bytes(expression.span()), Kind::Sign { operand, sign });
        }
        visit::visit_expr_unary(self, expression);
    }

    fn visit_expr_binary(&mut self, expression: &'ast syn::ExprBinary) {
        let known = operators(&expression.op);
        let wrapped = has_let(&expression.left) || has_let(&expression.right);
        if let (Some((operator, form, others)), false) = (known, wrapped) {
            let kind = Kind::Operands {
                left: bytes(expression.left.span()),
                right: bytes(expression.right.span()),
                form,
                operator,
                others,
            };
            self.add(bytes(expression.span()), kind);
        }
        visit::visit_expr_binary(self, expression);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let left_out = match statement {
            Stmt::Expr(expression, Some(_)) => acts(expression),
            Stmt::Macro(called) => {
                let name = called.mac.path.segments.last();
                name.is_some_and(|name| name.ident.to_string().starts_with("assert"))
            }
            _ => false,
        };
        if left_out {
            self.add(bytes(statement.span()), Kind::Statement);
        }
        visit::visit_stmt(self, statement);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn mutations(text: &str) -> Vec<String> {
        let sites = sites(text).unwrap();
        let named = named(text, &sites).into_iter();
        named
            .map(|(function, mutation, _)| format!("{function}: {mutation}"))
            .collect()
    }

    #[test]
    fn every_kind_of_place_is_found() {
        let text = "impl A { fn f(&mut self, a: u8) -> bool {
            self.hash.update(a);
            if a + 1 < 3 { return !b; }
            match a { 1 if b => c, 2 => d, _ => -e > f && g }
        } }";
        let expected = [
            "A::f: give `true` at once",
            "A::f: give `false` at once",
            "A::f: delete `self.hash.update(a);`",
            "A::f: negate `a + 1 < 3`",
            "A::f: `a + 1 < 3`: `==`",
            "A::f: `a + 1 < 3`: `>`",
            "A::f: `a + 1 < 3`: `<=`",
            "A::f: `a + 1`: `-`",
            "A::f: `a + 1`: `*`",
            "A::f: `!b` without `!`",
            "A::f: guard `b` always true",
            "A::f: guard `b` always false",
            "A::f: delete arm `2`",
            "A::f: `-e > f && g`: `||`",
            "A::f: `-e > f`: `==`",
            "A::f: `-e > f`: `<`",
            "A::f: `-e > f`: `>=`",
            "A::f: `-e` without `-`",
        ];
        assert_eq!(mutations(text), expected);
    }

    #[test]
    fn what_a_function_gives_anyway_is_no_mutant() {
        let text = "fn f() -> bool { true } fn g() -> Result<(), E> { Ok(()) }
            fn h() -> Result<u8, E> { Ok(1) } fn i() -> u8 { j(); 0 }";
        let expected = [
            "f: give `false` at once",
            "h: give `Ok(0)` at once",
            "i: give `0` at once",
            "i: give `1` at once",
            "i: delete `j();`",
        ];
        assert_eq!(mutations(text), expected);
    }

    #[test]
    fn tests_constants_types_and_printing_are_left_alone() {
        let text = "
            const A: u8 = 1 + 2;
            const fn b() -> u8 { 1 + 2 }
            static C: [u8; 1 + 2] = [0; 1 + 2];
            fn d(x: [u8; 1 + 2]) { let y: [u8; 2 * 2] = [0; 3 * 3]; log!(1 + 2); }
            impl fmt::Debug for A { fn fmt(&self) -> bool { self.a + 1 == 2 } }
            #[cfg(test)] mod tests { fn e() -> bool { true } }
            #[test] fn g() { h(); }
            fn i() { if let Some(x) = y && z { } }
        ";
        assert_eq!(
            mutations(text),
            ["d: give `()` at once", "i: give `()` at once"]
        );
    }

    #[test]
    fn files_of_tests_are_known_by_their_attribute() {
        let file = syn::parse_file("#[cfg(test)] mod a; #[cfg(unix)] mod b; #[test] fn c() {}");
        let items = file.unwrap().items;
        let tests = items.iter().map(|item| match item {
            syn::Item::Mod(item) => is_test(&item.attrs),
            syn::Item::Fn(item) => is_test(&item.attrs),
            _ => unreachable!(),
        });
        assert_eq!(tests.collect::<Vec<_>>(), [true, false, true]);
    }
}
