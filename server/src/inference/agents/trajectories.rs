//! Recorded turns as examples for training: one for each branch.
//!
//! Turns that several branches share are trained in the first of them, so that no token counts twice.

use std::collections::{BTreeMap, BTreeSet};

use trainyard_scheduler::{AgentSession, AgentTurn};
use trainyard_wire::agents::{TrajectoriesResponse, Trajectory, TrajectoryTurn};
use trainyard_wire::model_input::{InputChunk, ModelInput};
use trainyard_wire::tensor::TensorData;
use trainyard_wire::training::DatumBody;

use super::turn::Content;
use crate::budgets::AGENT_PAGE_BYTES;
use crate::error::ApiError;

/// About the most bytes of JSON that a token takes: its id twice, a log-probability, an advantage and a weight.
const BYTES_PER_TOKEN: usize = 64;

/// Returns a page of the branches of a session. A page ends before the branch that would make it too large.
///
/// # Errors
/// Fails if a turn can't be read.
pub(crate) fn page(
    session: &AgentSession,
    turns: &[AgentTurn],
    offset: usize,
    limit: usize,
) -> Result<TrajectoriesResponse, ApiError> {
    let (mut trajectories, mut bytes) = (Vec::new(), 0);
    for (index, branch) in branches(turns).enumerate().skip(offset) {
        bytes += BYTES_PER_TOKEN * branch.tokens();
        if trajectories.len() == limit || (bytes > AGENT_PAGE_BYTES && !trajectories.is_empty()) {
            return Ok(TrajectoriesResponse { trajectories, next_offset: Some(index as u64) });
        }
        trajectories.push(trajectory(session, &branch)?);
    }
    Ok(TrajectoriesResponse { trajectories, next_offset: None })
}

/// The turns from a first one to one that no other continues.
pub(crate) struct Branch<'a> {
    /// Turns of the branch, the first one first.
    pub(crate) path: Vec<&'a AgentTurn>,
    /// Numbers of the turns that this branch trains.
    own: BTreeSet<u64>,
}

impl Branch<'_> {
    /// Returns whether this branch trains a turn. A turn of several branches is trained in the first one.
    pub(crate) fn trains(&self, found: &AgentTurn) -> bool {
        self.own.contains(&found.number)
    }

    /// Number of tokens of all turns.
    pub(crate) fn tokens(&self) -> usize {
        self.path.iter().map(|found| found.turn.prompt.len() + found.turn.sampled.len()).sum()
    }

    /// Returns whether the last reply was cut off.
    pub(crate) fn is_truncated(&self) -> bool {
        self.path.last().is_some_and(|found| found.turn.finish_reason == "length")
    }

    /// Reward of the branch, else of the session.
    pub(crate) fn reward(&self, session: &AgentSession) -> Option<f64> {
        self.path.iter().rev().find_map(|found| found.branch_reward).or(session.reward)
    }

    /// The id of the last turn.
    pub(crate) fn id(&self) -> String {
        self.path.last().map(|found| found.id()).unwrap_or_default()
    }
}

/// Returns the branches of a session's turns, in the order of their last ones.
pub(crate) fn branches(turns: &[AgentTurn]) -> impl Iterator<Item = Branch<'_>> {
    let by_number: BTreeMap<u64, &AgentTurn> = turns.iter().map(|found| (found.number, found)).collect();
    let continued: BTreeSet<u64> = turns.iter().filter_map(|found| found.turn.parent).collect();
    let leaves = turns.iter().filter(move |found| !continued.contains(&found.number));
    let mut trained = BTreeSet::new();
    leaves.map(move |leaf| {
        let path = path(&by_number, leaf);
        let own = path.iter().map(|found| found.number).filter(|number| trained.insert(*number)).collect();
        Branch { path, own }
    })
}

/// Returns the turns up to a leaf, the first one first.
fn path<'a>(by_number: &BTreeMap<u64, &'a AgentTurn>, leaf: &'a AgentTurn) -> Vec<&'a AgentTurn> {
    let parent = |found: &&'a AgentTurn| found.turn.parent.and_then(|number| by_number.get(&number).copied());
    let mut path: Vec<&AgentTurn> = std::iter::successors(Some(leaf), parent).collect();
    path.reverse();
    path
}

/// The tensors of a branch, one element per token.
#[derive(Default)]
struct Columns {
    tokens: Vec<i64>,
    weights: Vec<f32>,
    logprobs: Vec<f32>,
    advantages: Vec<f32>,
}

impl Columns {
    fn push(&mut self, token: u32, weight: f32, logprob: f32, advantage: f32) {
        self.tokens.push(token.into());
        self.weights.push(weight);
        self.logprobs.push(logprob);
        self.advantages.push(advantage);
    }

    /// Returns the example: each element belongs to the token after it.
    fn datum(mut self) -> DatumBody {
        let targets = self.tokens.split_off(1.min(self.tokens.len()));
        let input: Vec<i64> = self.tokens.iter().chain(&targets).take(targets.len()).copied().collect();
        let behind = |values: Vec<f32>| TensorData::floats_of(values.into_iter().skip(1).collect());
        let chunk = InputChunk { kind: "encoded_text".to_owned(), tokens: Some(input), ..InputChunk::default() };
        DatumBody {
            model_input: ModelInput { chunks: vec![chunk] },
            loss_fn_inputs: BTreeMap::from([
                ("target_tokens".to_owned(), TensorData::integers_of(targets)),
                ("weights".to_owned(), behind(self.weights)),
                ("logprobs".to_owned(), behind(self.logprobs)),
                ("advantages".to_owned(), behind(self.advantages)),
            ]),
        }
    }
}

fn trajectory(session: &AgentSession, branch: &Branch<'_>) -> Result<Trajectory, ApiError> {
    let reward = branch.reward(session);
    let (mut columns, mut turns) = (Columns::default(), Vec::with_capacity(branch.path.len()));
    for found in &branch.path {
        let Content { temperature, .. } = Content::of(found)?;
        let is_trained = branch.trains(found);
        let (weight, advantage) = match is_trained {
            true => (1.0, found.reward.or(reward).unwrap_or(0.0) as f32),
            false => (0.0, 0.0),
        };
        found.turn.prompt.iter().for_each(|&token| columns.push(token, 0.0, 0.0, 0.0));
        turns.push(TrajectoryTurn {
            turn_id: found.id(),
            start: columns.tokens.len() as u64,
            tokens: found.turn.sampled.len() as u64,
            trained: is_trained,
            finish_reason: found.turn.finish_reason.clone(),
            weights: found.turn.weights.clone(),
            temperature,
            branch_reason: found.turn.branch_reason.clone(),
            reward: found.reward,
        });
        for (&token, &logprob) in found.turn.sampled.iter().zip(&found.turn.logprobs) {
            columns.push(token, weight, logprob, advantage);
        }
    }
    Ok(Trajectory { branch: branch.id(), datum: columns.datum(), reward, truncated: branch.is_truncated(), turns })
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};
    use trainyard_protocol::{AgentSessionId, RequestId};
    use trainyard_scheduler::{AgentLimits, AgentState, NewAgentTurn, Timestamp};

    use super::*;

    pub(in super::super) fn session(reward: Option<f64>) -> AgentSession {
        AgentSession {
            id: AgentSessionId::new("s"),
            base_model: "base".to_owned(),
            model_path: None,
            limits: AgentLimits { max_tokens: 9, max_turns: 9, max_tools: None, seconds: 9 },
            turns: 0,
            tokens: 0,
            prompt_tokens: 0,
            reward,
            created_at: Timestamp(0),
            expires_at: Timestamp(0),
            state: AgentState::Open,
        }
    }

    fn turn(number: u64, parent: Option<u64>, prompt: &[u32], sampled: &[u32]) -> AgentTurn {
        let content = json!({"said": {"content": ""}, "temperature": 1.0,
            "format": {"reasoning": false, "begins_in_reasoning": false, "tool_calls": false}});
        let turn = NewAgentTurn {
            request: RequestId::new(format!("r{number}")),
            choice: 0,
            parent,
            branch_reason: None,
            digest: String::new(),
            messages: 2,
            weights: "base".to_owned(),
            finish_reason: if number == 3 { "length" } else { "stop" }.to_owned(),
            content: content.to_string(),
            prompt: prompt.to_vec(),
            sampled: sampled.to_vec(),
            logprobs: sampled.iter().map(|&token| -(token as f32) / 10.0).collect(),
        };
        AgentTurn { number, turn, reward: None, branch_reward: None, created_at: Timestamp(0) }
    }

    /// Two branches that share their first turn.
    fn turns() -> Vec<AgentTurn> {
        vec![turn(1, None, &[1, 2], &[3, 4]), turn(2, Some(1), &[5], &[6]), turn(3, Some(1), &[7, 8], &[9])]
    }

    fn tensor(trajectory: &Trajectory, name: &str) -> Value {
        serde_json::to_value(&trajectory.datum.loss_fn_inputs[name]).unwrap()["data"].clone()
    }

    #[test]
    fn shared_turns_are_trained_once_and_rewards_go_to_their_tokens() {
        let mut turns = turns();
        turns[1].reward = Some(0.5);
        turns[2].branch_reward = Some(-2.0);
        let whole = page(&session(Some(3.0)), &turns, 0, 10).unwrap();
        let [first, second] = &whole.trajectories[..] else { unreachable!("two branches") };
        assert_eq!((first.branch.as_str(), first.reward, first.truncated), ("r2.0", Some(3.0), false));
        assert_eq!((second.branch.as_str(), second.reward, second.truncated), ("r3.0", Some(-2.0), true));
        let input = serde_json::to_value(&first.datum.model_input).unwrap();
        assert_eq!(input["chunks"][0]["tokens"], json!([1, 2, 3, 4, 5]));
        assert_eq!(tensor(first, "target_tokens"), json!([2, 3, 4, 5, 6]));
        assert_eq!(tensor(first, "weights"), json!([0.0, 1.0, 1.0, 0.0, 1.0]));
        assert_eq!(tensor(first, "advantages"), json!([0.0, 3.0, 3.0, 0.0, 0.5]));
        let logprob = |token: f32| f64::from(-token / 10.0);
        assert_eq!(tensor(first, "logprobs"), json!([0.0, logprob(3.0), logprob(4.0), 0.0, logprob(6.0)]));
        assert_eq!(tensor(second, "weights"), json!([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]));
        assert_eq!(tensor(second, "advantages"), json!([0.0, 0.0, 0.0, 0.0, 0.0, -2.0]));
        let places: Vec<_> = second.turns.iter().map(|turn| (turn.start, turn.tokens, turn.trained)).collect();
        assert_eq!(places, [(2, 2, false), (6, 1, true)]);
    }

    #[test]
    fn pages_continue_and_train_the_same_turns() {
        let turns = turns();
        let (session, whole) = (session(None), page(&session(None), &turns, 0, 10).unwrap());
        let first = page(&session, &turns, 0, 1).unwrap();
        assert_eq!((first.trajectories.len(), first.next_offset), (1, Some(1)));
        let second = page(&session, &turns, 1, 1).unwrap();
        assert_eq!((second.trajectories.len(), second.next_offset), (1, None));
        assert_eq!(tensor(&second.trajectories[0], "weights"), tensor(&whole.trajectories[1], "weights"));
        assert!(page(&session, &turns, 2, 1).unwrap().trajectories.is_empty());
    }

    #[test]
    fn a_page_of_trajectories_has_so_many_bytes() {
        let long = vec![1; AGENT_PAGE_BYTES / BYTES_PER_TOKEN * 2 / 3];
        let turns: Vec<AgentTurn> = (1..=3).map(|number| turn(number, None, &long, &[1])).collect();
        let got = page(&session(None), &turns, 1, 10).unwrap();
        assert_eq!((got.trajectories.len(), got.next_offset), (1, Some(2)));
    }
}
