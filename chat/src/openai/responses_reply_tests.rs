#![allow(clippy::unwrap_used, reason = "tests")]

use trainyard_wire::json::parse;

use super::super::super::sequence::{End, Token};
use super::*;

fn reply(stream: bool) -> Reply {
    let body = json!({"model": "m", "input": "Hi", "stream": stream, "metadata": {"a": "b"}, "max_output_tokens": 9,
        "instructions": "i", "tools": [{"type": "function", "name": "f"}]});
    Reply::new(parse(body.to_string().as_bytes()).unwrap(), "r1", 5, &[7])
}

fn text(text: &str) -> Piece {
    Piece::Part(Part::Text(text.to_owned()))
}

fn thought(text: &str) -> Piece {
    Piece::Part(Part::Reasoning(text.to_owned()))
}

fn call(name: &str) -> Piece {
    Piece::Part(Part::ToolCall(ToolCall { name: name.to_owned(), arguments: "{\"a\": 1}".to_owned() }))
}

fn end(too_long: bool) -> Piece {
    Piece::End(End { calls_tools: false, too_long, stop_string: None, reasoning_tokens: 3 })
}

/// The answer made of these pieces, and the events by which a stream makes it.
fn made(pieces: &[Piece]) -> (Value, Vec<Event>) {
    let mut answers = [false, true].map(|stream| {
        let mut reply = reply(stream);
        pieces.iter().for_each(|piece| reply.add(piece.clone()));
        reply.finish(ResponsesUsage { output_tokens: 8, ..ResponsesUsage::default() });
        let events = reply.take_events();
        (serde_json::to_value(reply.into_response()).unwrap(), events)
    });
    let (whole, none) = std::mem::take(&mut answers[0]);
    let (streamed, events) = std::mem::take(&mut answers[1]);
    assert_eq!((whole, none), (streamed.clone(), Vec::new()));
    assert_eq!(events.last().unwrap().fields["response"], streamed);
    (streamed, events)
}

#[test]
fn an_answer_has_the_fields_of_its_request() {
    let (answer, events) = made(&[text("Hel"), text("lo"), end(false)]);
    let item = json!({"type": "message", "id": "msg_r1_0", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}]});
    let details = json!({"reasoning_tokens": 3});
    let usage = json!({"input_tokens": 0, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 8, "output_tokens_details": details, "total_tokens": 0});
    let expected = json!({"id": "resp_r1", "object": "response", "created_at": 5, "status": "completed",
        "incomplete_details": null, "error": null, "model": "m", "output": [item], "usage": usage, "instructions": "i",
        "max_output_tokens": 9, "metadata": {"a": "b"}, "parallel_tool_calls": true, "previous_response_id": null,
        "store": false, "background": false, "temperature": 1.0, "top_p": 1.0, "text": {}, "tool_choice": "auto",
        "tools": [{"type": "function", "name": "f"}], "truncation": "disabled"});
    assert_eq!(answer, expected);
    let first = &events[0].fields["response"];
    assert_eq!(
        (&first["status"], &first["usage"], &first["output"]),
        (&json!("in_progress"), &json!(null), &json!([]))
    );
}

#[test]
fn a_stream_has_the_documented_events() {
    let (answer, events) = made(&[thought("h"), thought("m"), text("I look."), call("f"), call("g"), end(false)]);
    let names: Vec<&str> =
        events.iter().map(|event| event.name.strip_prefix("response.").unwrap_or_default()).collect();
    let called =
        ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"];
    let expected = [
        ["created", "in_progress"].as_slice(),
        &["output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.delta"],
        &["reasoning_text.done", "content_part.done", "output_item.done"],
        &["output_item.added", "content_part.added", "output_text.delta"],
        &["output_text.done", "content_part.done", "output_item.done"],
        &called,
        &called,
        &["completed"],
    ];
    assert_eq!(names, expected.concat());
    let output = answer["output"].as_array().unwrap();
    for (number, event) in events.iter().enumerate() {
        assert_eq!((&event.fields["sequence_number"], &event.fields["type"]), (&json!(number), &json!(event.name)));
        let Some(index) = event.fields["output_index"].as_u64() else { continue };
        let item = &output[index as usize];
        match event.name {
            "response.output_item.done" => assert_eq!(&event.fields["item"], item),
            "response.output_item.added" => {
                assert_eq!(
                    (&event.fields["item"]["id"], &event.fields["item"]["status"]),
                    (&item["id"], &json!("in_progress"))
                );
                assert!(event.fields["item"]["content"].as_array().is_none_or(Vec::is_empty));
                assert!(event.fields["item"].get("arguments").is_none_or(|arguments| arguments == ""));
            }
            "response.content_part.done" => assert_eq!(event.fields["part"], item["content"][0]),
            "response.content_part.added" => assert_eq!(event.fields["part"]["text"], ""),
            "response.function_call_arguments.done" | "response.function_call_arguments.delta" => {
                let arguments = event.fields.get("arguments").or(event.fields.get("delta"));
                assert_eq!(arguments, Some(&item["arguments"]));
            }
            _ => {}
        }
        let id = event.fields.get("item_id").unwrap_or(&event.fields["item"]["id"]);
        assert_eq!(id, &item["id"]);
    }
    let ids: Vec<&str> = output.iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["rs_r1_0", "msg_r1_1", "fc_r1_2", "fc_r1_3"]);
    assert_eq!((&output[2]["call_id"], &output[3]["call_id"]), (&json!("call_r1_0_0"), &json!("call_r1_0_1")));
}

#[test]
fn ids_of_tokens_are_returned_when_they_are_asked_for() {
    let body = json!({"model": "m", "input": "Hi", "return_token_ids": true});
    let mut reply = Reply::new(parse(body.to_string().as_bytes()).unwrap(), "r1", 5, &[7, 8]);
    for ids in [[1, 2], [3, 4]] {
        let token = |id| Token { id, logprob: None, candidates: Vec::new() };
        reply.add(Piece::Tokens(ids.map(token).to_vec()));
    }
    let answer = reply.into_response();
    assert_eq!((answer.prompt_token_ids, answer.token_ids), (Some(vec![7, 8]), Some(vec![1, 2, 3, 4])));
}

#[test]
fn text_behind_a_call_is_an_item_of_its_own() {
    let (answer, _) = made(&[text("a"), call("f"), text("b"), end(false)]);
    let kinds: Vec<&Value> = answer["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["message", "function_call", "message"]);
    assert_eq!(answer["output"][2]["content"][0]["text"], "b");
}

#[test]
fn a_reply_that_was_cut_off_is_incomplete() {
    let (answer, events) = made(&[thought("h"), end(true)]);
    assert_eq!((&answer["status"], &answer["output"][0]["status"]), (&json!("incomplete"), &json!("incomplete")));
    assert_eq!(answer["incomplete_details"], json!({"reason": "max_output_tokens"}));
    assert_eq!((events.last().unwrap().name, answer["output"].as_array().unwrap().len()), ("response.incomplete", 1));
}

#[test]
fn a_reply_without_text_is_an_empty_message() {
    for pieces in [&[end(false)][..], &[thought("h"), end(false)], &[end(true)]] {
        let (answer, _) = made(pieces);
        let last = answer["output"].as_array().unwrap().last().unwrap();
        assert_eq!((&last["type"], &last["content"][0]["text"]), (&json!("message"), &json!("")));
    }
}
