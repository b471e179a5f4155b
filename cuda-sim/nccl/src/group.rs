//! Groups of messages. All ranks of a communicator have to take part in a group of messages, with none if need be.
//!
//! Collectives are submitted at once, also inside a group: each is over before the next one of its stream begins.

use std::cell::RefCell;
use std::collections::BTreeMap;

use cuda_sim_client::Client;

use crate::comm::{Message, Messages};
use crate::handles::{Result, UNHANDLED_CUDA_ERROR, comm};

thread_local! {
    static GROUP: RefCell<Group> = RefCell::new(Group::default());
}

/// The messages of the thread's open group, by communicator and stream.
#[derive(Debug, Default)]
struct Group {
    depth: usize,
    messages: BTreeMap<(usize, usize), Messages>,
}

/// Opens a group, or one inside another.
pub(crate) fn start() {
    GROUP.with_borrow_mut(|group| group.depth += 1);
}

/// Submits the messages once the outermost group ends.
pub(crate) fn end() -> Result {
    GROUP.with_borrow_mut(|group| group.depth = group.depth.saturating_sub(1));
    submit_outside()
}

pub(crate) fn send(handle: usize, stream: usize, message: Message) -> Result {
    GROUP.with_borrow_mut(|group| group.messages.entry((handle, stream)).or_default().sends.push(message));
    submit_outside()
}

pub(crate) fn receive(handle: usize, stream: usize, message: Message) -> Result {
    GROUP.with_borrow_mut(|group| group.messages.entry((handle, stream)).or_default().receives.push(message));
    submit_outside()
}

fn submit_outside() -> Result {
    let ready = GROUP.with_borrow_mut(|group| match group.depth {
        0 => std::mem::take(&mut group.messages),
        _ => BTreeMap::new(),
    });
    for ((handle, stream), messages) in ready {
        let comm = comm(handle)?;
        let client = Client::open().map_err(|_| UNHANDLED_CUDA_ERROR)?;
        let label = format!("messages of rank {}", comm.rank);
        let (group, work) = (comm.group, move |client: &Client| comm.run_messages(&messages, client));
        client.call_waiting(stream, group, &label, Box::new(work)).map_err(|_| UNHANDLED_CUDA_ERROR)?;
    }
    Ok(())
}
