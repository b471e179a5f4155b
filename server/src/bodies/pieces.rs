//! Reception of bodies of any length in pieces.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use trainyard_protocol::TenantId;

use super::receive::{BodyBudget, Memory, Paced};
use crate::error::ApiError;

/// Bytes of a piece.
pub(crate) const PIECE: usize = 4 << 20;

/// A body that arrives in pieces. The memory of one piece is reserved while this lives.
pub(crate) struct BodyPieces<'a> {
    paced: Paced<'a>,
    /// The bytes that arrived behind the last piece.
    rest: BytesMut,
    _memory: Memory,
}

/// The next part of a body.
pub(crate) struct NextPiece {
    /// Bytes of the piece: at most [`PIECE`], plus the excess of the last frame; empty at the end.
    pub(crate) bytes: Bytes,
    /// Whether more may follow, or the reason why the body was cut off behind these bytes.
    pub(crate) more: Result<bool, ApiError>,
}

impl<'a> BodyPieces<'a> {
    /// Reserves memory for a piece, before any of the body is read.
    ///
    /// # Errors
    /// [`ApiError::Busy`] when no memory is free for a while.
    pub(crate) async fn new(budget: &'a BodyBudget, body: Body, tenant: &TenantId) -> Result<Self, ApiError> {
        let mut memory = budget.memory(Some(tenant));
        budget.reserve(&mut memory, PIECE).await?;
        Ok(Self { paced: Paced::new(body, budget.limits()), rest: BytesMut::new(), _memory: memory })
    }

    /// Receives the next piece.
    pub(crate) async fn next(&mut self) -> NextPiece {
        loop {
            if self.rest.len() >= PIECE {
                return NextPiece { bytes: self.rest.split().freeze(), more: Ok(true) };
            }
            let more = match self.paced.next().await {
                Ok(Some(frame)) => {
                    self.rest.extend_from_slice(&frame);
                    continue;
                }
                Ok(None) => Ok(false),
                Err(error) => Err(error),
            };
            return NextPiece { bytes: self.rest.split().freeze(), more };
        }
    }

    /// Starts a new window of the minimum rate, since the client did not cause the time that has passed.
    pub(crate) fn restart(&mut self) {
        self.paced.restart();
    }
}
