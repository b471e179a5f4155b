//! Request bodies: how fast they must arrive, and the memory that they take while they are received and decoded.

pub(crate) mod answers;
mod decoding;
mod memory;
mod pieces;
mod receive;

pub(crate) use self::answers::Answers;
pub(crate) use self::decoding::{DecodingBudget, INLINE_DECODING, Reservation};
pub(crate) use self::pieces::BodyPieces;
pub use self::receive::BodyLimits;
pub(crate) use self::receive::{BodyBudget, Memory, Paced};
