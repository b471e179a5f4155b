//! Copies of a template's syntax tree, whose nodes cannot be changed in place.

use std::collections::BTreeSet;

use minijinja::machinery::ast::{
    BinOp, Call, CallArg, Compare, CompareOp, Const, Expr, Filter, GetAttr, GetItem, IfExpr, List, Map, Slice, Spanned,
    Test, Tuple, UnaryOp, UnaryOpKind, Var,
};

/// Copies expressions, and collects the names of the variables in them.
pub(super) struct Copier<'a> {
    pub(super) names: BTreeSet<&'a str>,
    source: &'a str,
    /// An escape in a text that Python reads and `minijinja` leaves as it is.
    pub(super) unread: Option<char>,
}

/// Returns the first escape of a written text that `minijinja` does not read.
fn unread_escape(written: &str) -> Option<char> {
    let mut characters = written.chars();
    while let Some(character) = characters.next() {
        let escaped = if character == '\\' { characters.next() } else { None };
        if let Some(code @ ('a' | 'v' | 'N' | 'U')) = escaped {
            return Some(code);
        }
    }
    None
}

impl<'a> Copier<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self { names: BTreeSet::new(), source, unread: None }
    }

    pub(super) fn expressions(&mut self, given: &[Expr<'a>]) -> Vec<Expr<'a>> {
        given.iter().map(|one| self.expression(one)).collect()
    }

    pub(super) fn optional(&mut self, given: Option<&Expr<'a>>) -> Option<Expr<'a>> {
        given.map(|one| self.expression(one))
    }

    pub(super) fn expression(&mut self, given: &Expr<'a>) -> Expr<'a> {
        let span = given.span();
        match given {
            Expr::Var(it) => {
                self.names.insert(it.id);
                Expr::Var(Spanned::new(Var { id: it.id }, span))
            }
            Expr::Const(it) => {
                let written = self.source.get(span.start_offset as usize..span.end_offset as usize);
                if let (Some(_), Some(written)) = (it.value.as_str(), written) {
                    self.unread = self.unread.or_else(|| unread_escape(written));
                }
                Expr::Const(Spanned::new(Const { value: it.value.clone() }, span))
            }
            Expr::Slice(it) => {
                let (start, stop) = (self.optional(it.start.as_ref()), self.optional(it.stop.as_ref()));
                let (expr, step) = (self.expression(&it.expr), self.optional(it.step.as_ref()));
                Expr::Slice(Spanned::new(Slice { expr, start, stop, step }, span))
            }
            Expr::UnaryOp(it) => {
                #[allow(clippy::needless_match, reason = "it can be neither copied nor cloned")]
                let op = match it.op {
                    UnaryOpKind::Not => UnaryOpKind::Not,
                    UnaryOpKind::Neg => UnaryOpKind::Neg,
                };
                Expr::UnaryOp(Spanned::new(UnaryOp { op, expr: self.expression(&it.expr) }, span))
            }
            Expr::BinOp(it) => {
                let (left, right) = (self.expression(&it.left), self.expression(&it.right));
                Expr::BinOp(Spanned::new(BinOp { op: it.op, left, right }, span))
            }
            Expr::Compare(it) => {
                let ops = it.ops.iter();
                let ops = ops.map(|one| CompareOp { op: one.op, expr: self.expression(&one.expr) }).collect();
                Expr::Compare(Spanned::new(Compare { expr: self.expression(&it.expr), ops }, span))
            }
            Expr::IfExpr(it) => {
                let (test_expr, true_expr) = (self.expression(&it.test_expr), self.expression(&it.true_expr));
                let false_expr = self.optional(it.false_expr.as_ref());
                Expr::IfExpr(Spanned::new(IfExpr { test_expr, true_expr, false_expr }, span))
            }
            Expr::Filter(it) => {
                let (expr, args) = (self.optional(it.expr.as_ref()), self.arguments(&it.args));
                Expr::Filter(Spanned::new(Filter { name: it.name, expr, args }, span))
            }
            Expr::Test(it) => {
                let (expr, args) = (self.expression(&it.expr), self.arguments(&it.args));
                Expr::Test(Spanned::new(Test { name: it.name, expr, args }, span))
            }
            Expr::GetAttr(it) => {
                Expr::GetAttr(Spanned::new(GetAttr { expr: self.expression(&it.expr), name: it.name }, span))
            }
            Expr::GetItem(it) => {
                let (expr, subscript_expr) = (self.expression(&it.expr), self.expression(&it.subscript_expr));
                Expr::GetItem(Spanned::new(GetItem { expr, subscript_expr }, span))
            }
            Expr::Call(it) => Expr::Call(self.call(it)),
            Expr::List(it) => Expr::List(Spanned::new(List { items: self.expressions(&it.items) }, span)),
            Expr::Tuple(it) => Expr::Tuple(Spanned::new(Tuple { items: self.expressions(&it.items) }, span)),
            Expr::Map(it) => {
                let (keys, values) = (self.expressions(&it.keys), self.expressions(&it.values));
                Expr::Map(Spanned::new(Map { keys, values }, span))
            }
        }
    }

    pub(super) fn call(&mut self, given: &Spanned<Call<'a>>) -> Spanned<Call<'a>> {
        let (expr, args) = (self.expression(&given.expr), self.arguments(&given.args));
        Spanned::new(Call { expr, args }, given.span())
    }

    fn arguments(&mut self, given: &[CallArg<'a>]) -> Vec<CallArg<'a>> {
        let one = |one: &CallArg<'a>| match one {
            CallArg::Pos(it) => CallArg::Pos(self.expression(it)),
            CallArg::Kwarg(name, it) => CallArg::Kwarg(name, self.expression(it)),
            CallArg::PosSplat(it) => CallArg::PosSplat(self.expression(it)),
            CallArg::KwargSplat(it) => CallArg::KwargSplat(self.expression(it)),
        };
        given.iter().map(one).collect()
    }
}
