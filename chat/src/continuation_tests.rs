#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::super::output::{Part, ToolCall};
use super::super::pieces::pieces;
use super::super::testing::{EOS, sentence_piece, with_template};
use super::*;

const CHATML: &str = "{% for m in messages %}[{{ m.role }}]\n{{ m.content }}\
    {% for c in m.tool_calls %}\n<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}<|end|>\n{% endfor %}\
    {% if add_generation_prompt %}[assistant]\n{% endif %}";

fn conversation(messages: &Json) -> Conversation {
    let messages = serde_json::from_value(messages.clone()).unwrap();
    Conversation { messages, add_generation_prompt: true, ..Conversation::default() }
}

fn user(content: &str) -> Json {
    json!({"role": "user", "content": content})
}

fn assistant(content: &str) -> Json {
    json!({"role": "assistant", "content": content})
}

fn said(content: &str) -> Said {
    Said { content: content.to_owned(), ..Said::default() }
}

fn recorded(messages: usize, said: Said, last_token: u32) -> Recorded {
    let format = OutputFormat { reasoning: true, tool_calls: true, ..OutputFormat::default() };
    Recorded { messages, said, format, last_token: Some(last_token) }
}

/// The text of the tokens behind the last of these replies, or why there is none.
fn behind(text: &Arc<ModelText>, messages: &Json, replies: &[Recorded]) -> Result<String, Branch> {
    let now = OffsetDateTime::UNIX_EPOCH;
    let found = continuation(text, &conversation(messages), None, replies, now).unwrap();
    found.map(|continued| pieces(text, &continued.tokens).concat())
}

#[test]
fn separators_behind_the_end_token_are_kept() {
    let text = with_template(CHATML);
    let messages = json!([user("a"), assistant("b"), user("c")]);
    let ended = recorded(2, said("b"), EOS);
    assert_eq!(behind(&text, &messages, std::slice::from_ref(&ended)).unwrap(), "\n[user]\nc<|end|>\n[assistant]\n");
    // A reply that was cut off or stopped by a string has no end yet.
    let cut = recorded(2, said("b"), u32::from(b'b'));
    assert_eq!(behind(&text, &messages, &[cut]).unwrap(), "<|end|>\n[user]\nc<|end|>\n[assistant]\n");
    let nothing_new = json!([user("a"), assistant("b")]);
    assert_eq!(behind(&text, &nothing_new, &[ended]).unwrap(), "\n[assistant]\n");
}

#[test]
fn white_space_of_a_reply_stays_as_it_was_sampled() {
    let text = with_template(&CHATML.replace("{{ m.content }}", "{{ m.content | trim }}"));
    let messages = json!([user("a"), assistant(" b\n\n"), user("c")]);
    let ended = recorded(2, said(" b\n\n"), EOS);
    assert_eq!(behind(&text, &messages, &[ended]).unwrap(), "\n[user]\nc<|end|>\n[assistant]\n");
}

#[test]
fn an_end_token_may_be_spelled_out_in_the_reply() {
    let text = with_template(CHATML);
    let content = "say <|end|> now";
    let messages = json!([user("a"), assistant(content), user("c")]);
    let ended = recorded(2, said(content), EOS);
    assert_eq!(behind(&text, &messages, &[ended]).unwrap(), "\n[user]\nc<|end|>\n[assistant]\n");
}

#[test]
fn calls_keep_the_spelling_of_the_model() {
    let text = with_template(CHATML);
    let call = json!({"id": "x", "type": "function", "function": {"name": "f", "arguments": {"a": 1, "b": "é"}}});
    let reply = json!({"role": "assistant", "content": "", "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": "x", "content": "7"});
    let messages = json!([user("a"), reply, result]);
    let mut called = Said::default();
    let arguments = "{\"b\":\"\\u00e9\",   \"a\":1}".to_owned();
    called.add(&Part::ToolCall(ToolCall { name: "f".to_owned(), arguments }));
    let ended = recorded(2, called, EOS);
    assert_eq!(behind(&text, &messages, &[ended]).unwrap(), "\n[tool]\n7<|end|>\n[assistant]\n");
}

#[test]
fn arguments_that_are_not_json_continue_where_the_template_keeps_them() {
    let reply = |arguments: &str| {
        let call = json!({"id": "x", "type": "function", "function": {"name": "f", "arguments": arguments}});
        json!([user("a"), {"role": "assistant", "content": "", "tool_calls": [call]}, user("c")])
    };
    let mut called = Said::default();
    called.add(&Part::ToolCall(ToolCall { name: "f".to_owned(), arguments: "oops".to_owned() }));
    let ended = [recorded(2, called, EOS)];
    let text = with_template(CHATML);
    assert_eq!(behind(&text, &reply("oops"), &ended).unwrap(), "\n[user]\nc<|end|>\n[assistant]\n");
    // A template may write a text as it is, which is no longer a call.
    let raw =
        CHATML.replace("{{ c.function | tojson }}", "{\"name\": \"f\", \"arguments\": {{ c.function.arguments }}}");
    assert_eq!(behind(&with_template(&raw), &reply("oops"), &ended), Err(Branch::ReplyIsRewritten));
}

#[test]
fn an_end_token_that_the_template_does_not_have_is_followed_by_its_closing() {
    let text = with_template(
        "{% for m in messages %}{{ m.role }}: {{ m.content }}#\n{% endfor %}{% if add_generation_prompt %}assistant: \
         {% endif %}",
    );
    let messages = json!([user("a"), assistant("b"), user("c")]);
    let ended = recorded(2, said("b"), EOS);
    assert_eq!(behind(&text, &messages, &[ended]).unwrap(), "#\nuser: c#\nassistant: ");
}

/// Renders thoughts, unless a user's message follows.
const FORGETFUL: &str = "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}\
    {% set ns.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}[{{ m.role }}]\
    {% if m.role == 'assistant' and loop.index0 > ns.last and m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n\
    {% endif %}{{ m.content }}<|end|>\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";

#[test]
fn thoughts_that_a_client_dropped_are_put_back_while_the_template_has_them() {
    let text = with_template(FORGETFUL);
    let mut thought = said("b");
    thought.reasoning = "hm\n".to_owned();
    let ended = [recorded(2, thought, EOS)];
    let tool = json!({"role": "tool", "content": "7"});
    let called = json!([user("a"), assistant("b"), tool]);
    assert_eq!(behind(&text, &called, &ended).unwrap(), "\n[tool]7<|end|>\n[assistant]");
    let mut other = called.clone();
    other[1]["reasoning_content"] = json!("ha");
    assert_eq!(behind(&text, &other, &ended), Err(Branch::ThoughtsDiffer));
    let asked = json!([user("a"), assistant("b"), user("c")]);
    assert_eq!(behind(&text, &asked, &ended), Err(Branch::EarlierTextIsRewritten));
}

#[test]
fn templates_that_can_t_be_divided_say_why() {
    let messages = json!([user("a"), assistant("b"), user("c")]);
    let ended = [recorded(2, said("b"), EOS)];
    let branch = |template: &str| behind(&with_template(template), &messages, &ended).unwrap_err();
    let strips = CHATML.replace("{{ m.content }}", "{{ m.content if m.role == 'user' }}");
    assert_eq!(branch(&strips), Branch::ReplyIsRewritten);
    let counts = format!("{{{{ messages | length }}}} {CHATML}");
    assert_eq!(branch(&counts), Branch::EarlierTextIsRewritten);
    let refuses = format!(
        "{{% if messages[-1].role == 'assistant' and not add_generation_prompt %}}{{{{ raise_exception('no') }}}}\
         {{% endif %}}{CHATML}"
    );
    assert_eq!(branch(&refuses), Branch::TemplateRefuses);
    let prefixed =
        CHATML.replace("{% if add_generation_prompt %}[assistant]\n", "{% if add_generation_prompt %}[assistant]\n<x>");
    assert_eq!(branch(&prefixed), Branch::ReplyIsRewritten);
    let text = with_template(CHATML);
    assert_eq!(behind(&text, &messages, &[]), Err(Branch::HistoryDiffers));
    assert_eq!(behind(&text, &messages, &[recorded(9, said("b"), EOS)]), Err(Branch::HistoryDiffers));
    let refused = continuation(
        &with_template("{{ raise_exception('never') }}"),
        &conversation(&messages),
        None,
        &ended,
        OffsetDateTime::UNIX_EPOCH,
    );
    assert!(refused.unwrap_err().to_string().contains("never"));
}

#[test]
fn a_prefilled_reply_follows_a_recorded_one() {
    let text = with_template(CHATML);
    let mut conversation = conversation(&json!([user("a"), assistant("b"), user("c"), assistant("Sure, ")]));
    conversation.add_generation_prompt = false;
    let ended = [recorded(2, said("b"), EOS)];
    let now = OffsetDateTime::UNIX_EPOCH;
    let found = continuation(&text, &conversation, Some("Sure, "), &ended, now).unwrap().unwrap();
    assert_eq!(pieces(&text, &found.tokens).concat(), "\n[user]\nc<|end|>\n[assistant]\nSure,");
    assert!(!found.format.reasoning);
}

#[test]
fn a_text_behind_a_token_is_not_the_beginning_of_a_text() {
    let text = sentence_piece();
    // Alone, the text would begin with the token of a word's front.
    assert_eq!(encode_behind(&text.tokenizer, Some("</s>"), "</s>").unwrap(), [2]);
    assert_eq!(encode_behind(&text.tokenizer, None, "").unwrap(), Vec::<u32>::new());
    assert_eq!(encode_behind(&text.tokenizer, Some("none"), "<s>").unwrap(), [1]);
}

fn separator() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![" ", "\n", "\n\n", "x", "<|end|>", "é", "\t", "[", "assistant"]);
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// Whatever a template puts between messages: recorded tokens and those behind them are the rendered text.
    #[test]
    fn what_is_recorded_and_what_follows_is_the_whole_prompt(
        before in separator(), within in separator(), after in separator(), texts in prop::collection::vec("[a-zé ]{0,6}", 3),
        stops in any::<bool>(),
    ) {
        let literal = |text: &str| format!("{{{{ {} }}}}", json!(text));
        let turn = format!("{}{{{{ m.role }}}}{}", literal(&before), literal(&within));
        let template = format!(
            "{{% for m in messages %}}{turn}{{{{ m.content }}}}{}{{% endfor %}}{{% if add_generation_prompt %}}{}{}{}{{% endif %}}",
            literal(&after), literal(&before), literal("assistant"), literal(&within),
        );
        let text = with_template(&template);
        let messages = json!([user(&texts[0]), assistant(&texts[1]), user(&texts[2])]);
        let whole = conversation(&messages);
        let now = OffsetDateTime::UNIX_EPOCH;
        let first = Conversation { messages: whole.messages[..1].to_vec(), ..whole.clone() };
        let template = text.template().unwrap();
        let mut known = text.tokenizer.encode(&template.render(&first, now).unwrap(), false).unwrap();
        known.extend(texts[1].bytes().map(u32::from));
        // A model ends its reply where the template does.
        let ends = stops && after.starts_with("<|end|>");
        known.extend(ends.then_some(EOS));
        let last = if ends { EOS } else { u32::from(b'a') };
        let reply = recorded(2, said(&texts[1]), last);
        match continuation(&text, &whole, None, &[reply], now).unwrap() {
            Ok(found) => {
                known.extend(&found.tokens);
                prop_assert_eq!(pieces(&text, &known).concat(), template.render(&whole, now).unwrap());
            }
            Err(branch) => prop_assert!(false, "{template:?}: {branch:?}", template = (&before, &within, &after)),
        }
    }
}
