//! Statements that `minijinja` executes differently from Jinja2, rewritten in terms of those that both execute alike.
//!
//! - `with` computes all of its values before it sets its variables.
//! - The default of a macro's argument may name the arguments before it.
//! - A macro that mentions `varargs` or `kwargs` takes any further arguments ([`super::collecting`]).

use std::mem;

use minijinja::machinery::Span;
use minijinja::machinery::ast::{
    AutoEscape, Break, Call, CallArg, CallBlock, Const, Continue, Do, EmitExpr, EmitRaw, Expr, FilterBlock, ForLoop,
    IfCond, Macro, Set, SetBlock, Spanned, Stmt, Template, Test, Var, WithBlock,
};
use minijinja::{Error, ErrorKind, Value};

use super::collecting::{COLLECT, KWARGS, VARARGS};
use super::copies::Copier;

/// Names for the values of a `with`, which no variable of a template can have.
const VALUES: [&str; 16] =
    ["+0", "+1", "+2", "+3", "+4", "+5", "+6", "+7", "+8", "+9", "+10", "+11", "+12", "+13", "+14", "+15"];

/// Returns the tree of a template, rewritten.
///
/// # Errors
///
/// An error that names a construct which cannot be rewritten.
pub(super) fn rewritten<'a>(source: &'a str, tree: &Stmt<'a>) -> Result<Stmt<'a>, Error> {
    let mut rewriter = Rewriter { copier: Copier::new(source) };
    let mut made = rewriter.statement(tree)?;
    if let Some(code) = rewriter.copier.unread {
        return Err(unsupported(&format!("the escape \\{code} in a string")));
    }
    match (made.pop(), made.is_empty()) {
        (Some(only), true) => Ok(only),
        _ => Err(unsupported("a template with several parts")),
    }
}

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::SyntaxError, format!("{what} is not supported"))
}

/// The call in an expression whose value Python writes as `range(0, 3)` or `dict_keys(['a'])`, and `minijinja` as a list.
fn view(expression: &Expr<'_>) -> Option<String> {
    let Expr::Call(call) = expression else { return None };
    match &call.expr {
        Expr::Var(function) if function.id == "range" => Some("range()".to_owned()),
        Expr::GetAttr(of) if call.args.is_empty() && matches!(of.name, "keys" | "values" | "items") => {
            Some(format!("{}()", of.name))
        }
        _ => None,
    }
}

struct Rewriter<'a> {
    copier: Copier<'a>,
}

impl<'a> Rewriter<'a> {
    fn body(&mut self, given: &[Stmt<'a>]) -> Result<Vec<Stmt<'a>>, Error> {
        let mut made = Vec::with_capacity(given.len());
        for one in given {
            made.extend(self.statement(one)?);
        }
        Ok(made)
    }

    fn statement(&mut self, given: &Stmt<'a>) -> Result<Vec<Stmt<'a>>, Error> {
        let only = match given {
            Stmt::Template(it) => {
                Stmt::Template(Spanned::new(Template { children: self.body(&it.children)? }, it.span()))
            }
            Stmt::EmitExpr(it) => {
                if let Some(view) = view(&it.expr) {
                    return Err(unsupported(&format!("the text of {view}")));
                }
                Stmt::EmitExpr(Spanned::new(EmitExpr { expr: self.copier.expression(&it.expr) }, it.span()))
            }
            Stmt::EmitRaw(it) => Stmt::EmitRaw(Spanned::new(EmitRaw { raw: it.raw }, it.span())),
            Stmt::ForLoop(it) => {
                let made = ForLoop {
                    target: self.copier.expression(&it.target),
                    iter: self.copier.expression(&it.iter),
                    filter_expr: self.copier.optional(it.filter_expr.as_ref()),
                    recursive: it.recursive,
                    body: self.body(&it.body)?,
                    else_body: self.body(&it.else_body)?,
                };
                Stmt::ForLoop(Spanned::new(made, it.span()))
            }
            Stmt::IfCond(it) => {
                let expr = self.copier.expression(&it.expr);
                let (true_body, false_body) = (self.body(&it.true_body)?, self.body(&it.false_body)?);
                Stmt::IfCond(Spanned::new(IfCond { expr, true_body, false_body }, it.span()))
            }
            Stmt::WithBlock(it) => self.with(it)?,
            Stmt::Set(it) => {
                let (target, expr) = (self.copier.expression(&it.target), self.copier.expression(&it.expr));
                Stmt::Set(Spanned::new(Set { target, expr }, it.span()))
            }
            Stmt::SetBlock(it) => {
                let target = self.copier.expression(&it.target);
                let filter = self.copier.optional(it.filter.as_ref());
                Stmt::SetBlock(Spanned::new(SetBlock { target, filter, body: self.body(&it.body)? }, it.span()))
            }
            Stmt::AutoEscape(it) => {
                let enabled = self.copier.expression(&it.enabled);
                Stmt::AutoEscape(Spanned::new(AutoEscape { enabled, body: self.body(&it.body)? }, it.span()))
            }
            Stmt::FilterBlock(it) => {
                let (filter, filter_span) = (self.copier.expression(&it.filter), it.filter_span);
                let body = self.body(&it.body)?;
                Stmt::FilterBlock(Spanned::new(FilterBlock { filter, filter_span, body }, it.span()))
            }
            Stmt::Macro(it) => return self.named_macro(it),
            Stmt::CallBlock(it) => {
                let call = self.copier.call(&it.call);
                let (macro_decl, collected) = self.macro_of(&it.macro_decl)?;
                if let Some(name) = collected.first() {
                    return Err(unsupported(&format!("{name} in a call block")));
                }
                let made = CallBlock { call, call_expr_span: it.call_expr_span, macro_decl };
                Stmt::CallBlock(Spanned::new(made, it.span()))
            }
            Stmt::Continue(it) => Stmt::Continue(Spanned::new(Continue, it.span())),
            Stmt::Break(it) => Stmt::Break(Spanned::new(Break, it.span())),
            Stmt::Do(it) => Stmt::Do(Spanned::new(Do { call: self.copier.call(&it.call) }, it.span())),
        };
        Ok(vec![only])
    }

    fn with(&mut self, given: &Spanned<WithBlock<'a>>) -> Result<Stmt<'a>, Error> {
        let span = given.span();
        let (mut targets, mut values) = (Vec::new(), Vec::new());
        for (target, value) in &given.assignments {
            targets.push(self.copier.expression(target));
            values.push(self.copier.expression(value));
        }
        let body = self.body(&given.body)?;
        if targets.len() < 2 {
            let assignments = targets.into_iter().zip(values).collect();
            return Ok(Stmt::WithBlock(Spanned::new(WithBlock { assignments, body }, span)));
        }
        if targets.len() > VALUES.len() {
            return Err(unsupported(&format!("a `with` of more than {} variables", VALUES.len())));
        }
        let named = || VALUES.iter().map(|name| variable(name, span));
        let assignments = targets.into_iter().zip(named()).collect();
        let inner = Stmt::WithBlock(Spanned::new(WithBlock { assignments, body }, span));
        let assignments = named().zip(values).collect();
        Ok(Stmt::WithBlock(Spanned::new(WithBlock { assignments, body: vec![inner] }, span)))
    }

    fn named_macro(&mut self, given: &Spanned<Macro<'a>>) -> Result<Vec<Stmt<'a>>, Error> {
        let span = given.span();
        let (made, collected) = self.macro_of(given)?;
        if collected.is_empty() {
            return Ok(vec![Stmt::Macro(made)]);
        }
        let flag = |name| constant(Value::from(collected.contains(&name)), span);
        let args = vec![variable(given.name, span), flag(VARARGS), flag(KWARGS)];
        let args = args.into_iter().map(CallArg::Pos).collect();
        let expr = Expr::Call(Spanned::new(Call { expr: variable(COLLECT, span), args }, span));
        let set = Set { target: variable(given.name, span), expr };
        Ok(vec![Stmt::Macro(made), Stmt::Set(Spanned::new(set, span))])
    }

    /// Returns a macro, and which of `varargs` and `kwargs` it mentions: they are its last two arguments if there are any.
    fn macro_of(&mut self, given: &Spanned<Macro<'a>>) -> Result<(Spanned<Macro<'a>>, Vec<&'static str>), Error> {
        let span = given.span();
        let outer = mem::take(&mut self.copier.names);
        let defaults = self.copier.expressions(&given.defaults);
        let mut body = self.body(&given.body)?;
        let names = mem::replace(&mut self.copier.names, outer);
        // What a macro within it mentions, the macro around it takes as well.
        self.copier.names.extend(&names);
        let mut args = Vec::with_capacity(given.args.len());
        for arg in &given.args {
            let Expr::Var(name) = arg else { return Err(unsupported("an argument that is not a name")) };
            args.push(name.id);
        }
        let collected: Vec<&'static str> =
            [VARARGS, KWARGS].into_iter().filter(|name| names.contains(name) && !args.contains(name)).collect();
        if !collected.is_empty() && args.iter().any(|name| [VARARGS, KWARGS].contains(name)) {
            return Err(unsupported("a macro with an argument called varargs or kwargs that mentions the other"));
        }
        let is_constant = defaults.iter().all(|one| one.as_const().is_some());
        let mut variables: Vec<Expr<'a>> = args.iter().map(|name| variable(name, span)).collect();
        let defaults = if is_constant && collected.is_empty() {
            defaults
        } else {
            let first = args.len() - defaults.len().min(args.len());
            let set = args.iter().skip(first).zip(defaults).map(|(name, default)| or_default(name, default, span));
            body.splice(0..0, set.collect::<Vec<_>>());
            Vec::new()
        };
        if !collected.is_empty() {
            variables.extend([VARARGS, KWARGS].map(|name| variable(name, span)));
        }
        Ok((Spanned::new(Macro { name: given.name, args: variables, defaults, body }, span), collected))
    }
}

fn variable<'a>(id: &'a str, span: Span) -> Expr<'a> {
    Expr::Var(Spanned::new(Var { id }, span))
}

fn constant<'a>(value: Value, span: Span) -> Expr<'a> {
    Expr::Const(Spanned::new(Const { value }, span))
}

/// Sets an argument to its default if it is undefined.
fn or_default<'a>(name: &'a str, default: Expr<'a>, span: Span) -> Stmt<'a> {
    let test = Test { name: "undefined", expr: variable(name, span), args: Vec::new() };
    let set = Stmt::Set(Spanned::new(Set { target: variable(name, span), expr: default }, span));
    let expr = Expr::Test(Spanned::new(test, span));
    Stmt::IfCond(Spanned::new(IfCond { expr, true_body: vec![set], false_body: Vec::new() }, span))
}
