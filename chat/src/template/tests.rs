#![allow(clippy::unwrap_used, reason = "tests")]
use std::collections::BTreeMap;

use minijinja::Value;
use time::OffsetDateTime;

use super::{ChatTemplate, Conversation, TemplateError};

const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn template(source: &str) -> ChatTemplate {
    let tokens = BTreeMap::from([("bos_token".to_owned(), "<s>".to_owned())]);
    ChatTemplate::new(BTreeMap::from([("default".to_owned(), source.to_owned())]), tokens).unwrap()
}

fn rendered(source: &str, conversation: &Conversation) -> Result<String, TemplateError> {
    template(source).render(conversation, NOW)
}

fn hello() -> Conversation {
    Conversation {
        messages: vec![value(r#"{"role": "user", "content": "Hello <&>"}"#)],
        add_generation_prompt: true,
        ..Conversation::default()
    }
}

const CHATML: &str = "{{ bos_token }}{% for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\n' + message.content.strip() + '<|im_end|>' + '\n' }}
    {%- if loop.last and false %}{% break %}{% endif %}
{%- endfor %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\n' }}
{%- endif %}
";

#[test]
fn a_conversation_is_rendered_with_trimmed_blocks() {
    let text = rendered(CHATML, &hello()).unwrap();
    assert_eq!(text, "<s><|im_start|>user\nHello <&><|im_end|>\n<|im_start|>assistant\n");
}

#[test]
fn json_is_that_of_python() {
    let tools = vec![value(r#"{"z": [1, 2.5, {}, []], "a": "é<'\n", "n": null, "t": true}"#)];
    let conversation = Conversation { tools, ..hello() };
    let one = rendered("{{ tools[0] | tojson }}", &conversation).unwrap();
    assert_eq!(one, r#"{"z": [1, 2.5, {}, []], "a": "é<'\n", "n": null, "t": true}"#);
    let lines = rendered("{{ tools[0] | tojson(indent=2) }}", &conversation).unwrap();
    let expected = "{\n  \"z\": [\n    1,\n    2.5,\n    {},\n    []\n  ],\n  \"a\": \"é<'\\n\",\n  \"n\": null,\n  \"t\": true\n}";
    assert_eq!(lines, expected);
    let sorted = rendered("{{ tools[0] | tojson(sort_keys=true, ensure_ascii=true) }}", &conversation).unwrap();
    assert_eq!(sorted, r#"{"a": "\u00e9<'\n", "n": null, "t": true, "z": [1, 2.5, {}, []]}"#);
    assert_eq!(rendered("{{ none | tojson }}", &conversation).unwrap(), "null");
}

#[test]
fn what_a_template_raises_is_a_refusal_and_a_fault_is_none() {
    let refused = rendered("{{ raise_exception('roles must alternate') }}", &hello()).unwrap_err();
    assert!(matches!(&refused, TemplateError::Refused(text) if text == "roles must alternate"), "{refused}");
    assert!(matches!(rendered("{{ messages.nothing.at_all }}", &hello()), Err(TemplateError::Failed(_))));
    let sources = BTreeMap::from([("default".to_owned(), "{% if %}".to_owned())]);
    assert!(ChatTemplate::new(sources, BTreeMap::new()).is_err());
}

#[test]
fn tools_have_their_own_template_where_there_is_one() {
    let sources =
        BTreeMap::from([("default".to_owned(), "plain".to_owned()), ("tool_use".to_owned(), "tools".to_owned())]);
    let template = ChatTemplate::new(sources, BTreeMap::new()).unwrap();
    assert_eq!(template.render(&hello(), NOW).unwrap(), "plain");
    let with_tools = Conversation { tools: vec![value("{}")], ..hello() };
    assert_eq!(template.render(&with_tools, NOW).unwrap(), "tools");
    assert!(template.mentions("tool") && !template.mentions("<think>"));
}

#[test]
fn variables_and_the_date_reach_the_template() {
    let variables = BTreeMap::from([("enable_thinking".to_owned(), Value::from(false))]);
    let conversation = Conversation { variables, ..hello() };
    let source = "{{ enable_thinking }} {{ strftime_now('%d %b %Y') }} {{ tools is none }} {{ nothing is defined }}";
    assert_eq!(rendered(source, &conversation).unwrap(), "False 01 Jan 1970 True False");
}

#[test]
fn sums_are_those_of_jinja() {
    let source = "{{ 1 + 2 }} {{ 1.5 + 1 }} {{ 'a' + 'b' }} {{ ([1] + [2] + range(2) | list) | tojson }} {{ ((1,) + (2,)) | tojson }}\
        {% set x = [] %}{% for a in range(2) %}{% set x = x + [a] %}{% endfor %} {{ (messages + [1]) | length }} {{ [1, 2] | sum }}";
    assert_eq!(rendered(source, &hello()).unwrap(), "3 2.5 ab [1, 2, 0, 1] [1, 2] 2 3");
    for wrong in ["{{ 1 + 'a' }}", "{{ 'a' + 1 }}", "{{ [1] + 1 }}", "{{ 'a' + nothing }}", "{{ nothing + 'a' }}"] {
        assert!(matches!(rendered(wrong, &hello()), Err(TemplateError::Failed(_))), "{wrong}");
    }
}

/// Each would take for ever, or all of the memory.
#[test]
fn bombs_are_errors() {
    for bomb in [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{{ 'x' * 9999 }}{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for a in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x | tojson }}",
        "{% macro f(x, n) %}{% if n %}{{ f(x + x, n - 1) }}{% endif %}{% endmacro %}{{ f([1], 90) }}",
        "{% set ns = namespace(x=(1, 2)) %}{% for a in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = [ns.x, ns.x] | sum(start=[]) %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = ns.x | chain(ns.x) %}{% endfor %}",
        "{{ ([0] * 99999) * 99999 + [1] }}",
        "{% macro f(x) %}{{ f(x) }}{{ f(x) }}{% endmacro %}{{ f(1) }}",
        "{{ 'x' * 9999999999 }}",
        "{{ 'x' | center(9999999999) }}",
        "{{ '%*d' % (999999999, 1) }}",
        "{{ ('a\\n' * 9999) | indent('y' * 99999) }}",
        "{{ range(99999) | map('tojson') | join(' ' * 99999) }}",
        "{{ ('y' * 99999).join(range(9999)) }}",
        "{{ ('a' * 9999).replace('a', 'b' * 99999) }}",
        "{{ '{:>999999999}'.format(1) }}",
        "{{ '%999999999d' | format(1) }}",
        "{{ ('a' * 9999999).split('') | length }}",
        "{% set s = '%B' * 9999 %}{% for a in range(9999) %}{% set x = strftime_now(s) %}{% endfor %}",
        "{{ messages | batch(999999999, 1) | list }}",
        "{{ 'a'.ljust(9999999999) }}",
        "{{ 'a'.zfill(9999999999) }}",
        "{{ ('\t' * 99999).expandtabs(99999) }}",
        "{{ '%999999999d' % 1 }}",
        "{{ ('%(a)s' * 99999) % {'a': 'x' * 99999} }}",
        "{{ [[[1]]] | tojson(indent=9999999999) }}",
        "{{ range(9999) | list | tojson(separators=('x' * 99999, '')) }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% if 0 <= b < 0 %}{% endif %}{% endfor %}{% endfor %}",
    ] {
        let error = rendered(bomb, &hello()).unwrap_err();
        assert!(!matches!(error, TemplateError::Refused(_)), "{bomb}: {error}");
    }
}

/// Values within values have stack frames when they are dropped or written.
#[test]
fn deep_values_do_no_harm() {
    let level = "{% set ns.x = [ns.x] %}";
    let loops = "{% set ns = namespace(x=[]) %}{% for a in range(99999) %}{% for b in range(99999) %}";
    for end in
        ["{% endfor %}{% endfor %}", "{% if a == 9 %}{% break %}{% endif %}{% endfor %}{{ ns.x | tojson }}{% endfor %}"]
    {
        assert!(rendered(&format!("{loops}{level}{end}"), &hello()).is_err());
    }
    let nested = "{% set ns = namespace(x=[]) %}{% for a in range(999) %}{% set ns.x = [ns.x] %}{% endfor %}";
    let error = rendered(&format!("{nested}{{{{ ns.x | tojson }}}}"), &hello()).unwrap_err();
    assert!(error.to_string().contains("levels"), "{error}");
}

/// Lists that hold others many times stand for more than all memory, whatever is done with them.
#[test]
fn what_lists_share_is_paid_for() {
    let doubled = "{% set ns = namespace(x=['a'], y=['a']) %}{% for a in range(60) %}\
        {% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
    let repeated = "{% set ns = namespace(x=['x' * 99999] * 9999, y=['x' * 99999] * 9999) %}";
    for lists in [doubled, repeated] {
        for end in [
            "{{ ns.x }}",
            "{{ 'a' ~ ns.x }}",
            "{{ ns.x ~ 'a' }}",
            "{{ ns.x | string }}",
            "{{ ns.x | upper }}",
            "{{ ns.x | tojson }}",
            "{{ ns.x | tojson(indent=2) }}",
            "{{ ns.x | join('-') }}",
            "{{ '-'.join(ns.x) }}",
            "{{ [ns.x] | map('string') | list }}",
            "{{ '%s' | format(ns.x) }}",
            "{{ '{}'.format(ns.x) }}",
            "{{ 'a' | replace('a', ns.x) }}",
            "{{ ns.x == ns.y }}",
            "{{ ns.x != ns.y }}",
            "{{ ns.x < ns.y }}",
            "{{ ns.x == ns.y == ns.x }}",
            "{{ '%s' % ns.x }}",
            "{{ '%s' % (ns.x,) }}",
            "{{ ns.x.index(ns.y) }}",
            "{{ ns.x in [ns.y] }}",
            "{{ ns.x is eq ns.y }}",
            "{{ [ns.x, ns.y] | sort }}",
            "{{ [ns.x, ns.y] | unique | list }}",
            "{{ raise_exception(ns.x) }}",
            "{% set y %}{{ ns.x }}{% endset %}",
        ] {
            let error = rendered(&format!("{lists}{end}"), &hello()).unwrap_err();
            assert!(!matches!(error, TemplateError::Refused(_)), "{end}: {error}");
        }
    }
}

#[test]
fn values_within_themselves_are_errors() {
    for end in ["{{ ns }}", "{{ ns.x }}", "{{ ns | string }}", "{{ ns == other }}", "{{ ns ~ 'a' }}"] {
        let source = format!(
            "{{% set ns = namespace() %}}{{% set ns.x = ns %}}{{% set other = namespace() %}}{{% set other.x = other %}}{end}"
        );
        let error = rendered(&source, &hello()).unwrap_err();
        assert!(error.to_string().contains("levels"), "{end}: {error}");
    }
}

/// What is paid for once more is what it was.
#[test]
fn operators_filters_and_tests_are_those_of_jinja() {
    for (source, expected) in [
        ("{{ 'a' ~ 1 ~ none ~ true ~ nothing }}", "a1NoneTrue"),
        ("{{ [1, 'a', none] }}", "[1, 'a', None]"),
        (
            "{{ 1 == 1.0 }} {{ 'a' != 'b' }} {{ 1 < 2 }} {{ 2 <= 1 }} {{ 'b' > 'a' }} {{ 1 >= 1 }}",
            "True True True False True True",
        ),
        ("{{ 'b' in 'abc' }} {{ 1 in [2, 1] }} {{ 'role' in messages[0] }} {{ 3 not in [1] }}", "True True True True"),
        ("{{ [1, 2] == [1, 2] }} {{ messages[0] == messages[0] }}", "True True"),
        (
            "{{ 'a' is eq 'a' }} {{ 'a' is in ['a'] }} {{ 'ab' is startingwith 'a' }} {{ 1 is not lt 1 }}",
            "True True True True",
        ),
        ("{{ messages | map(attribute='role') | join(', ') }}", "user"),
        ("{{ messages | selectattr('role', 'equalto', 'user') | list | length }}", "1"),
        ("{{ [3, 1, 2] | sort | first }} {{ [1, 1] | unique | list | length }} {{ 'x' | upper }}", "1 1 X"),
        ("{{ '%s-%03d' | format('a', 7) }} {{ '{}-{:>4}'.format('a', 7) }}", "a-007 a-   7"),
        ("{{ 'a,b'.split(',') | last }} {{ '-'.join(['a', 'b']) }} {{ 'aa'.replace('a', 'b', 1) }}", "b a-b ba"),
        ("{{ 'a\nb' | indent(2) }}", "a\n  b"),
    ] {
        assert_eq!(rendered(source, &hello()).unwrap(), expected, "{source}");
    }
}
