//! Templates with what Jinja2 in Python renders for them, set up as `transformers` does.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use minijinja::Value;
use time::OffsetDateTime;

use super::{ChatTemplate, Conversation, TemplateError};

fn rendered(source: &str) -> Result<String, TemplateError> {
    let value = |json: &str| serde_json::from_str::<Value>(json).unwrap();
    let variables = [
        ("n", "5"),
        ("s", r#""a,b,c""#),
        ("w", r#""  x  y z ""#),
        ("t", r#"{"b": [1, 2.5, {}, []], "a": "é<'", "A": {"y": true, "x": null}}"#),
        ("f", "[1e-5, 1e16, 1.5, 0.0001, 123456789012345678, 1e22, -0.0, 2.0]"),
        ("m", r#"{"x": 1e-7}"#),
    ];
    let conversation = Conversation {
        messages: vec![
            value(r#"{"role": "user", "content": "Hi"}"#),
            value(r#"{"role": "assistant", "content": "Yo\n"}"#),
        ],
        variables: variables.map(|(name, json)| (name.to_owned(), value(json))).into(),
        ..Conversation::default()
    };
    let sources = BTreeMap::from([("default".to_owned(), source.to_owned())]);
    ChatTemplate::new(sources, BTreeMap::new())?.render(&conversation, OffsetDateTime::UNIX_EPOCH)
}

fn all_render(cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        assert_eq!(rendered(source).unwrap(), *expected, "{source}");
    }
}

fn all_fail(cases: &[(&str, &str)]) {
    for (source, reason) in cases {
        let error = rendered(source).unwrap_err();
        assert!(matches!(error, TemplateError::Failed(_)) && error.to_string().contains(reason), "{source}: {error}");
    }
}

#[test]
fn generation_blocks_render_their_content() {
    all_render(&[
        (
            "{% for m in messages %}{{ m.role }}:\n{% generation %}{{ m.content }}{% endgeneration %}\n{% endfor %}",
            "user:\nHiassistant:\nYo\n",
        ),
        (
            "{% for m in messages %}\n  {%- generation -%}\n  {{ m.content }}\n  {%- endgeneration -%}\n;{% endfor %}|",
            "Hi;Yo\n;|",
        ),
        (
            "{% for m in messages %}\n    {% generation %}\n {{ m.content }}\n    {% endgeneration %}\n{% endfor %}|",
            " Hi\n Yo\n\n|",
        ),
        ("{%+ generation +%}\n x\n{%+ endgeneration +%}\ny", "\n x\n\ny"),
        ("{% set a = 1 %}{%generation%}{% set a = 2 %}{{ a }}{%endgeneration%}{{ a }}", "21"),
        (
            "{% for m in messages %}{% generation %}{{ loop.index }}{% if loop.last %}{{ m.content }}{% endif %}\
             {% endgeneration %}{% endfor %}",
            "12Yo\n",
        ),
        ("{% macro f(m) %}{% generation %}[{{ m }}]{% endgeneration %}{% endmacro %}{{ f('a') }}", "[a]"),
    ]);
}

#[test]
fn what_looks_like_a_generation_block_is_none() {
    all_render(&[
        (
            "{{ '{% generation %}' }}{# {% generation %} #}{% raw %}{% generation %}{% endraw %}\
             {% if \"{% generation %}\" %}!{% endif %}{{ \"a'\" ~ {'b': {'c': 1}}.b.c }}",
            "{% generation %}{% generation %}!a'1",
        ),
        ("{% set generation = 3 %}{{ generation }}{% if generation %}y{% endif %}", "3y"),
        ("a{% raw %} {% endgeneration %} {%- endraw %}\nb", "a {% endgeneration %}b"),
    ]);
    all_fail(&[
        ("{% generation %}x", "{% generation %} without {% endgeneration %}"),
        ("x{% endgeneration %}", "{% endgeneration %} without {% generation %}"),
        ("{% endgeneration %}{% generation %}", "{% endgeneration %} without {% generation %}"),
        ("{% generation x %}y{% endgeneration %}", "without {% generation %}"),
        ("{% generation", ""),
    ]);
}

#[test]
fn json_has_the_options_of_python() {
    all_render(&[
        ("{{ t | tojson(separators=(',', ':')) }}", r#"{"b":[1,2.5,{},[]],"a":"é<'","A":{"y":true,"x":null}}"#),
        (
            "{{ t | tojson(separators=[',', ':'], sort_keys=true) }}",
            r#"{"A":{"x":null,"y":true},"a":"é<'","b":[1,2.5,{},[]]}"#,
        ),
        (
            "{{ t | tojson(separators=(',', ':'), indent=1) }}",
            "{\n \"b\":[\n  1,\n  2.5,\n  {},\n  []\n ],\n \"a\":\"é<'\",\n \"A\":{\n  \"y\":true,\n  \"x\":null\n }\n}",
        ),
        (
            "{{ t | tojson(indent=2, sort_keys=true) }}",
            "{\n  \"A\": {\n    \"x\": null,\n    \"y\": true\n  },\n  \"a\": \"é<'\",\n  \"b\": [\n    1,\n    2.5,\n    {},\n    []\n  ]\n}",
        ),
        ("{{ t.A | tojson(indent='\t') }}", "{\n\t\"y\": true,\n\t\"x\": null\n}"),
        ("{{ t.A | tojson(indent=0) }}", "{\n\"y\": true,\n\"x\": null\n}"),
        ("{{ t.A | tojson(indent=-3) }}", "{\n\"y\": true,\n\"x\": null\n}"),
        ("{{ t.A | tojson(indent=true) }}", "{\n \"y\": true,\n \"x\": null\n}"),
        ("{{ [1] | tojson(indent=17) }}", "[\n                 1\n]"),
        ("{{ t | tojson(true) }}", r#"{"b": [1, 2.5, {}, []], "a": "\u00e9<'", "A": {"y": true, "x": null}}"#),
        ("{{ t.A | tojson(false, 1, (';', '='), true) }}", "{\n \"x\"=null;\n \"y\"=true\n}"),
        ("{{ t.A | tojson(separators=none) }}", r#"{"y": true, "x": null}"#),
        ("{{ t.A | tojson(separators=',:') }}", r#"{"y":true,"x":null}"#),
        ("{{ {3: 'a', 1: 'b'} | tojson(sort_keys=true) }}", r#"{"1": "b", "3": "a"}"#),
        ("{{ {1.5: 'a', true: 1, none: 2} | tojson }}", r#"{"1.5": "a", "true": 1, "null": 2}"#),
    ]);
    all_fail(&[
        ("{{ t | tojson(separators=(',',)) }}", "expected two texts"),
        ("{{ t | tojson(separators=3) }}", ""),
        ("{{ t | tojson(indent=[]) }}", "indent is []"),
        ("{{ {1.5: 'a', none: 2} | tojson(sort_keys=true) }}", "sort_keys with a key that is a n"),
        ("{{ t | tojson(width=3) }}", "width"),
    ]);
}

#[test]
fn numbers_are_written_as_by_python() {
    all_render(&[
        ("{{ f }}", "[1e-05, 1e+16, 1.5, 0.0001, 123456789012345678, 1e+22, -0.0, 2.0]"),
        ("{{ f | tojson }}", "[1e-05, 1e+16, 1.5, 0.0001, 123456789012345678, 1e+22, -0.0, 2.0]"),
        ("{{ m }} {{ m | tojson }}", r#"{'x': 1e-07} {"x": 1e-07}"#),
        ("{{ f[0] }}|{{ f[1] }}|{{ f[0] ~ '' }}|{{ f[1] | string }}", "1e-05|1e+16|1e-05|1e+16"),
        ("{{ f | join(' ') }}", "1e-05 1e+16 1.5 0.0001 123456789012345678 1e+22 -0.0 2.0"),
        ("{{ ' '.join(f | map('string')) }}", "1e-05 1e+16 1.5 0.0001 123456789012345678 1e+22 -0.0 2.0"),
        ("{{ '%s %s' | format(f[0], f[1]) }} {{ '{}'.format(f[0]) }}", "1e-05 1e+16 1e-05"),
        ("{{ (1e-5, 'a') }} {{ (1e-5,) }} {{ [[1e-5]] }}", "(1e-05, 'a') (1e-05,) [[1e-05]]"),
        ("{{ {'a': 1e-5, \"b'\": 'x\"'} }}", "{'a': 1e-05, \"b'\": 'x\"'}"),
        ("{{ 2 ** 70 }} {{ [2 ** 70] | tojson }}", "1180591620717411303424 [1180591620717411303424]"),
        ("{{ 1e3 }} {{ 3 / 2 }} {{ 1e-7 + 0 }} {{ 10 | float }}", "1000.0 1.5 1e-07 10.0"),
    ]);
}

#[test]
fn comparisons_are_chained() {
    all_render(&[
        ("{{ 0 < n < 9 }} {{ 0 < n < 5 }} {{ 0 < n <= 5 < 6 }} {{ 9 < n < 1/0 }}", "True False True False"),
        ("{{ 1 < 2 in [2, 3] }} {{ 3 > 2 not in [4] }} {{ 1 == 1.0 == n }}", "True True False"),
        ("{{ n != 4 != 5 != 5 }}", "False"),
        ("{{ [n] == [5] == [5.0] }}", "True"),
        ("{% if 1 <= n <= 9 %}yes{% else %}no{% endif %} {{ 'a' < 'b' < 'c' and 1 }}", "yes 1"),
        ("{% for i in range(4) if 0 < i < 3 %}{{ i }}{% endfor %} {{ (0 < (1 < n < 9) < 2) }}", "12 True"),
        (
            "{% macro f(x) %}{{ 0 < x < 3 }}{% endmacro %}{% for i in range(4) %}{{ f(i) }}\
             {% if 0 < i < 3 %}{% continue %}{% endif %};{% endfor %}",
            "False;TrueTrueFalse;",
        ),
        (
            "{% for a in [[0, [1]], [5, []]] recursive %}{{ loop(a[1]) if a is sequence and 0 <= a[0] < 3 else '-' }}{% endfor %}",
            "--",
        ),
    ]);
}

#[test]
fn texts_are_formatted_by_the_operator() {
    all_render(&[
        ("{{ 's=%s' % n }} {{ '%s-%s' % ('a', 1) }} {{ '%d%%' % 5 }} {{ '%.2f' % 3.14159 }}", "s=5 a-1 5% 3.14"),
        ("{{ '%(a)s' % {'a': 7} }} {{ '%5s|%-5s|%05d' % ('x', 'y', 42) }} {{ '%x' % 255 }}", "7     x|y    |00042 ff"),
        ("{{ 7 % 3 }} {{ -7 % 3 }} {{ 7.5 % 2 }} {{ n % 2 == 1 }}", "1 2 1.5 True"),
        ("{{ '%s' % [1, 1e-5] }} {{ '%s' % ([1e16],) }}", "[1, 1e-05] [1e+16]"),
    ]);
    all_fail(&[("{{ '%s %s' % 1 }}", ""), ("{{ '%d' % 'a' }}", ""), ("{{ n % 0 }}", ""), ("{{ n % 'a' }}", "")]);
}

#[test]
fn texts_have_the_methods_of_python() {
    all_render(&[
        ("{{ s.rsplit(',', 1) }} {{ s.rsplit(',') }} {{ w.rsplit() }}", "['a,b', 'c'] ['a', 'b', 'c'] ['x', 'y', 'z']"),
        ("{{ w.rsplit(none, 1) }} {{ w.split(none, 1) }}", "['  x  y', 'z'] ['x', 'y z ']"),
        ("{{ w.split(maxsplit=1) }} {{ s.split(',', maxsplit=1) }}", "['x', 'y z '] ['a', 'b,c']"),
        ("{{ s.split(sep=',') }} {{ s.rsplit(sep=',', maxsplit=1) }}", "['a', 'b', 'c'] ['a,b', 'c']"),
        ("{{ w.split(' ') }} {{ ''.split() }} {{ ''.split(',') }}", "['', '', 'x', '', 'y', 'z', ''] [] ['']"),
        ("{{ s.split(',', 0) }} {{ w.split(none, 0) }} {{ w.rsplit(none, 0) }}", "['a,b,c'] ['x  y z '] ['  x  y z']"),
        ("{{ s.removeprefix('a,') }} {{ s.removesuffix(',c') }} {{ s.removeprefix('x') }}", "b,c a,b a,b,c"),
        ("{{ s.partition(',') }} {{ s.rpartition(',') }}", "('a', ',', 'b,c') ('a,b', ',', 'c')"),
        ("{{ s.partition('x') }} {{ s.rpartition('x') }}", "('a,b,c', '', '') ('', '', 'a,b,c')"),
        ("{{ '42'.zfill(5) }} {{ '-42'.zfill(5) }} {{ '+4'.zfill(4) }} {{ 'abc'.zfill(2) }}", "00042 -0042 +004 abc"),
        ("{{ 'a'.ljust(3) }}| {{ 'a'.rjust(3, '.') }}| {{ 'ab'.center(5, '*') }}|", "a  | ..a| **ab*|"),
        ("{{ 'abc'.center(4) }}| {{ 'abcd'.center(7, '-') }}| {{ 'a'.center(4, '-') }}|", "abc | --abcd-| -a--|"),
        ("{{ 'aBc'.swapcase() }} {{ s.index('b') }} {{ s.rindex(',') }} {{ 'a\tb'.expandtabs(4) }}", "AbC 2 3 a   b"),
        ("{{ s.find('c', 1) }} {{ s.find('a', 1) }} {{ s.startswith('b', 2) }}", "4 -1 True"),
        ("{{ s.endswith('b', 0, 3) }} {{ s.count(',', 2) }} {{ s.startswith(('x', 'a')) }}", "True 1 True"),
        ("{{ 'a\nb'.splitlines() }} {{ 'a\\r\\nb\n'.splitlines(true) }}", "['a', 'b'] ['a\\r\\n', 'b\\n']"),
        ("{{ [1, 2].index(2) }} {{ (1, 2).count(1) }} {{ [1].copy() }} {{ {'a': 1}.copy() }}", "1 1 [1] {'a': 1}"),
    ]);
    all_fail(&[
        ("{{ s.split('') }}", "empty separator"),
        ("{{ s.index('z') }}", "substring not found"),
        ("{{ 'a'.center(9, 'ab') }}", "exactly one character"),
        ("{{ [1].index(3) }}", "not in the list"),
        ("{{ s.nothing() }}", "nothing"),
        ("{{ [1].append(2) }}", "append"),
    ]);
}

#[test]
fn views_are_not_written_as_lists() {
    all_render(&[
        ("{{ {'a': 1}.keys() | list }} {{ range(2) | join(',') }} {{ range(5)[1:3] | list }}", "['a'] 0,1 [1, 2]"),
        ("{% for a, b in {'a': 1}.items() %}{{ a }}{{ b }}{% endfor %}{{ range(3) | length }}", "a13"),
    ]);
    all_fail(&[
        ("{{ range(3) }}", "the text of range() is not supported"),
        ("{{ {'a': 1}.keys() }}", "the text of keys() is not supported"),
        ("{% if n %}{{ {'a': 1}.items() }}{% endif %}", "the text of items() is not supported"),
    ]);
}
