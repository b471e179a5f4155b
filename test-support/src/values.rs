//! Mutations of JSON values.

use serde_json::{Value, json};

use crate::random::Random;

/// Changes one value within a value.
pub(crate) fn mutate(value: &mut Value, others: &[Value], words: &[&str], random: &mut Random) {
    let count = nodes(value);
    let other = &others[random.below(others.len())];
    let donor = at(other, random.below(nodes(other))).clone();
    let own = at(value, random.below(count)).clone();
    let target = at_mut(value, random.below(count));
    match random.below(8) {
        0 => *target = hostile(random),
        1 => *target = donor,
        2 => *target = own,
        3 => *target = json!(random.one_of(words)),
        4 => match target {
            Value::Array(items) if !items.is_empty() => drop(items.remove(random.below(items.len()))),
            Value::Object(members) if !members.is_empty() => {
                let name = members.keys().nth(random.below(members.len())).cloned();
                drop(name.and_then(|name| members.remove(&name)));
            }
            _ => *target = Value::Null,
        },
        5 => match target {
            Value::Array(items) => items.insert(random.below(items.len() + 1), donor),
            Value::Object(members) => drop(members.insert(random.one_of(words).to_owned(), donor)),
            _ => *target = json!([target.clone(), own]),
        },
        6 => match target {
            // What repeats becomes long.
            Value::Array(items) if items.len() < 512 => {
                let copies = vec![items.clone(); 1 + random.below(8)];
                *items = copies.concat();
            }
            Value::String(text) if text.len() < 4_096 => *text = text.repeat(1 + random.below(16)),
            Value::Number(number) => *target = json!(number.as_f64().unwrap_or(1.0) * -1e9),
            _ => {}
        },
        _ => {
            // What nests becomes deep.
            for _ in 0..random.below(40) {
                *target = match random.below(2) {
                    0 => json!([target.take()]),
                    _ => json!({ random.one_of(words): target.take() }),
                };
            }
        }
    }
}

fn hostile(random: &mut Random) -> Value {
    match random.below(12) {
        0 => json!(0),
        1 => json!(-1),
        2 => json!(i64::MAX),
        3 => json!(i64::MIN),
        4 => json!(u64::MAX),
        5 => json!(1e300),
        6 => json!(1_u64 << 40),
        7 => json!([]),
        8 => json!({}),
        9 => json!(""),
        10 => json!("x".repeat(1 << random.below(14))),
        _ => json!(random.below(2) == 0),
    }
}

/// Returns how deeply values are nested.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Counts a value and those within it.
fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(nodes).sum::<usize>(),
        _ => 1,
    }
}

/// Finds the value with this number, counted from the outermost, which is 0.
fn at(value: &Value, mut index: usize) -> &Value {
    if index == 0 {
        return value;
    }
    index -= 1;
    let children: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return value,
    };
    for child in children {
        let inside = nodes(child);
        if index < inside {
            return at(child, index);
        }
        index -= inside;
    }
    value
}

fn at_mut(value: &mut Value, mut index: usize) -> &mut Value {
    if index == 0 {
        return value;
    }
    index -= 1;
    let sizes: Vec<usize> = match value {
        Value::Array(items) => items.iter().map(nodes).collect(),
        Value::Object(members) => members.values().map(nodes).collect(),
        _ => return value,
    };
    let mut child = 0;
    while index >= sizes[child] {
        index -= sizes[child];
        child += 1;
    }
    match value {
        Value::Array(items) => at_mut(&mut items[child], index),
        Value::Object(members) => match members.values_mut().nth(child) {
            Some(child) => at_mut(child, index),
            None => unreachable!("it was counted"),
        },
        _ => value,
    }
}
