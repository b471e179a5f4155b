//! Counts the parts of a protobuf training request before it is decoded: an empty part takes two bytes of a body and
//! fifty times as many in memory. Nothing is allocated.

use bytes::Buf;
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use trainyard_protocol::OpError;
use trainyard_protocol::limits::{MAX_CHUNKS, MAX_DATUMS, MAX_LOSS_INPUTS, MAX_LOSS_SETTINGS, MAX_PARTS, check_datums};

/// Maximum length of the shape of one tensor, in bytes: far more than its extents take.
const MAX_SHAPE_BYTES: usize = 640;

/// Refuses a `ForwardBackwardRequest` with too many parts. Malformed messages are left to the decoder.
pub(super) fn check(body: &[u8]) -> Result<(), OpError> {
    let mut datums = 0;
    let (mut legacy, mut settings) = (0, 0);
    let mut parts = 0;
    let mut refused = Ok(());
    // The decoder stops where this does.
    let _ = fields(body, |tag, datum| {
        match tag {
            3 if datums < MAX_DATUMS && refused.is_ok() => refused = check_datum(datums, datum, &mut parts),
            5 => legacy += 1,
            7 => settings += 1,
            _ => {}
        }
        datums += usize::from(tag == 3);
    });
    // The decoder's caller refuses a request without datums.
    check_datums(datums.max(1))?;
    refused?;
    at_most("loss_fn_config", legacy.max(settings), "settings", MAX_LOSS_SETTINGS)
}

/// Refuses more parts than `most`.
fn at_most(field: &str, found: usize, parts: &str, most: usize) -> Result<(), OpError> {
    if found <= most {
        return Ok(());
    }
    Err(OpError::user(format!("{field}: {found} {parts}, at most {most} are allowed")))
}

/// Adds the parts of a datum to `all`.
fn check_datum(index: usize, datum: &[u8], all: &mut usize) -> Result<(), OpError> {
    let (mut chunks, mut inputs) = (0, 0);
    let (mut input_spans, mut target_spans) = (0, 0);
    let mut shape_bytes = 0;
    let _ = fields(datum, |tag, part| match tag {
        1 => chunks += 1,
        2 => {
            inputs += 1;
            shape_bytes = shape_bytes.max(longest_shape(part));
        }
        3 => input_spans += 1,
        4 => target_spans += 1,
        _ => {}
    });
    let at_most = |field: &str, found, parts, most| at_most(&format!("data[{index}].{field}"), found, parts, most);
    at_most("model_input", chunks, "chunks", MAX_CHUNKS)?;
    at_most("loss_fn_inputs", inputs, "inputs", MAX_LOSS_INPUTS)?;
    at_most("loss_fn_inputs", shape_bytes, "bytes of a tensor's shape", MAX_SHAPE_BYTES)?;
    at_most("model_input_spans", input_spans, "spans", MAX_CHUNKS)?;
    at_most("loss_fn_input_spans", target_spans, "spans", MAX_CHUNKS)?;
    *all += chunks + inputs + input_spans + target_spans;
    if *all > MAX_PARTS {
        return Err(OpError::user(format!(
            "data: more than {MAX_PARTS} chunks, loss inputs and spans up to data[{index}]; send fewer examples at once"
        )));
    }
    Ok(())
}

/// Returns the length of the longest shape in an entry of `loss_fn_inputs`, in bytes.
fn longest_shape(entry: &[u8]) -> usize {
    let mut bytes = 0;
    let _ = fields(entry, |tag, tensor| {
        if tag == 2 {
            let _ = fields(tensor, |tag, extents| bytes += if tag == 4 { extents.len() } else { 0 });
        }
    });
    bytes
}

/// Calls `visit` with the number and the bytes of each field, in order. The bytes are the content if the field has a
/// length, and the encoded value otherwise.
fn fields<'a>(mut message: &'a [u8], mut visit: impl FnMut(u32, &'a [u8])) -> Result<(), DecodeError> {
    while message.has_remaining() {
        let (tag, wire_type) = decode_key(&mut message)?;
        let start = message;
        if wire_type == WireType::LengthDelimited {
            let length = decode_varint(&mut message)?;
            // A field that is cut off is visited too, whether or not the decoder looks into it.
            let length = usize::try_from(length).unwrap_or(usize::MAX).min(message.len());
            let (content, rest) = message.split_at(length);
            visit(tag, content);
            message = rest;
        } else {
            skip_field(wire_type, tag, &mut message, DecodeContext::default())?;
            visit(tag, &start[..start.len() - message.len()]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use prost::Message;

    use super::super::proto::{self, ForwardBackwardRequest};
    use super::*;

    /// A field with a length.
    fn field(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag << 3 | 2];
        prost::encoding::encode_varint(content.len() as u64, &mut bytes);
        bytes.extend_from_slice(content);
        bytes
    }

    #[track_caller]
    fn refused(body: &[u8], text: &str) {
        assert_eq!(check(body).unwrap_err().message, text);
    }

    #[test]
    fn parts_are_counted_exactly() {
        assert!(check(&[0x1a, 0].repeat(MAX_DATUMS)).is_ok());
        refused(&[0x1a, 0].repeat(MAX_DATUMS + 1), "data: 65537 datums, at most 65536 are allowed");
        assert!(check(&field(3, &[0x0a, 0].repeat(MAX_CHUNKS))).is_ok());
        let chunks = [vec![0x1a, 0], field(3, &[0x0a, 0].repeat(MAX_CHUNKS + 1))].concat();
        refused(&chunks, "data[1].model_input: 16385 chunks, at most 16384 are allowed");
        let spans = field(3, &[0x22, 0].repeat(MAX_CHUNKS + 1));
        refused(&spans, "data[0].loss_fn_input_spans: 16385 spans, at most 16384 are allowed");
        let inputs = field(3, &[0x12, 0].repeat(MAX_LOSS_INPUTS + 1));
        refused(&inputs, "data[0].loss_fn_inputs: 65 inputs, at most 64 are allowed");
        refused(&[0x3a, 0].repeat(1_025), "loss_fn_config: 1025 settings, at most 1024 are allowed");
    }

    #[test]
    fn parts_are_bounded_in_all() {
        let full = field(3, &[0x0a, 0].repeat(MAX_CHUNKS));
        assert!(check(&full.repeat(MAX_PARTS / MAX_CHUNKS)).is_ok());
        let text = check(&full.repeat(MAX_PARTS / MAX_CHUNKS + 1)).unwrap_err().message;
        assert!(text.starts_with("data: more than 524288 chunks, loss inputs and spans up to data[32]"), "{text}");
    }

    #[test]
    fn shapes_are_bounded_in_both_encodings() {
        let text = "data[0].loss_fn_inputs: 641 bytes of a tensor's shape, at most 640 are allowed";
        let datum = |tensor: &[u8]| field(3, &field(2, &field(2, tensor)));
        refused(&datum(&field(4, &[1; 641])), text);
        refused(&datum(&[0x20, 1].repeat(641)), text);
        assert!(check(&datum(&[0x20, 1].repeat(8))).is_ok());
    }

    #[test]
    fn a_body_that_is_cut_off_is_counted() {
        let mut body = field(3, &[0x0a, 0].repeat(MAX_CHUNKS + 2));
        body.pop();
        refused(&body, "data[0].model_input: 16385 chunks, at most 16384 are allowed");
    }

    #[test]
    fn what_is_no_message_is_left_to_the_decoder() {
        for body in [&[0xff][..], &[0x1a], &[0x1a, 2, 0xff, 0xff], &[0x1b, 0x1a, 0]] {
            assert!(check(body).is_ok());
            assert!(ForwardBackwardRequest::decode(body).is_err());
        }
        let text = proto::chunk::Content::EncodedText(proto::EncodedTextChunk::default());
        let datum =
            proto::Datum { model_input: vec![proto::Chunk { chunk: Some(text) }; 9], ..proto::Datum::default() };
        let request = ForwardBackwardRequest { data: vec![datum; 7], forward_only: true, ..Default::default() };
        assert!(check(&request.encode_to_vec()).is_ok());
    }
}
