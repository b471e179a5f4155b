//! Choice of experts by a router's logits.

use super::rows::DeviceRows;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;
use crate::backend::{Dispatch, RouterRule, RouterScores};

/// Groups of a rule, those that are chosen, and the scaling; no groups if scores are the softmax.
fn groups(rule: RouterRule) -> (usize, usize, f32) {
    match rule.scores {
        RouterScores::Softmax => (0, 0, 1.0),
        RouterScores::Sigmoid { groups, chosen_groups, scaling } => (groups, chosen_groups, scaling),
    }
}

/// The last parameters of kernels, once they are checked.
fn rule_arguments(extents: Extents, rule: RouterRule, experts: usize) -> Result<[Argument<'static>; 6]> {
    let (groups, chosen, scaling) = groups(rule);
    let own = rule.per_token;
    extents.check(own > 0 && own <= experts, "the experts of a token", own, || format!("from 1 to {experts}"))?;
    if let RouterScores::Sigmoid { .. } = rule.scores {
        let divides = groups > 0 && experts.is_multiple_of(groups);
        extents.check(divides, "the groups of experts", groups, || format!("a divisor of {experts}"))?;
        extents.check(chosen > 0 && chosen <= groups, "the chosen groups", chosen, || format!("from 1 to {groups}"))?;
    }
    Ok([
        extents.index("the experts", experts)?.into(),
        extents.index("the experts of a token", own)?.into(),
        u32::from(rule.normalised).into(),
        extents.index("the groups of experts", groups)?.into(),
        scaling.into(),
        RouterRule::EPS.into(),
    ])
}

/// Chooses the experts of every row from the router's `logits`, `[rows, experts]`, with a `correction` for each expert where scores
/// are sigmoids. Returns them with their weights, `[rows, per_token]`, in the order of [`Dispatch::experts`]. Sums of a row's scores
/// run in that order, or over all experts in an order that their number decides. Waits for all work on the device: the host plans
/// the experts' GEMMs.
pub(crate) fn route(
    device: &CudaDevice,
    rule: RouterRule,
    correction: &Slice<f32>,
    logits: &DeviceRows,
) -> Result<(Dispatch, DeviceRows)> {
    let extents = Extents("route");
    let (groups, chosen, _) = groups(rule);
    if groups > 0 {
        extents.equal("the correction", correction.len(), logits.width())?;
    }
    let rule_arguments = rule_arguments(extents, rule, logits.width())?;
    let [rows, _] = logits.extents(extents, "the logits")?;
    let mut keys = device.uninitialised::<f32>(if groups > 0 { logits.rows() * logits.width() } else { 0 })?;
    let mut sums = device.uninitialised::<f32>(logits.rows() * groups)?;
    let mut experts = device.uninitialised::<u32>(logits.rows() * rule.per_token)?;
    let mut weights = DeviceRows::uninitialised(device, logits.rows(), rule.per_token)?;
    let arguments = [
        logits.data().into(),
        correction.into(),
        (&mut keys).into(),
        (&mut sums).into(),
        (&mut experts).into(),
        weights.data_mut().into(),
        extents.index("the chosen groups", chosen)?.into(),
    ];
    device.launch("route", [rows, 1, 1], 32, &[&arguments[..], &rule_arguments].concat())?;
    let experts = experts.to_host()?.into_iter().map(|expert| expert as usize).collect();
    Ok((Dispatch::new(experts, rule.per_token, logits.width()), weights))
}

/// Gradient with respect to the logits, `[rows, experts]`, given what [`route`] returned and the gradient with respect to the
/// weights. The choice itself has none.
pub(crate) fn route_backward(
    device: &CudaDevice,
    rule: RouterRule,
    logits: &DeviceRows,
    dispatch: &Dispatch,
    weights: &DeviceRows,
    d_weights: &DeviceRows,
) -> Result<DeviceRows> {
    let extents = Extents("route_backward");
    let rule_arguments = rule_arguments(extents, rule, logits.width())?;
    check_dispatch(extents, dispatch, [logits.rows(), rule.per_token])?;
    extents.equal("the experts of the choice", dispatch.extents()[2], logits.width())?;
    let [rows, _] = weights.expect(extents, "the weights", logits.rows(), rule.per_token)?;
    d_weights.expect(extents, "the gradient of the weights", logits.rows(), rule.per_token)?;
    let chosen: Vec<u32> =
        (0..logits.rows()).flat_map(|row| dispatch.experts(row)).map(|expert| *expert as u32).collect();
    let chosen = device.upload(&chosen)?;
    let mut d_logits = DeviceRows::uninitialised(device, logits.rows(), logits.width())?;
    let arguments = [
        logits.data().into(),
        (&chosen).into(),
        weights.data().into(),
        d_weights.data().into(),
        d_logits.data_mut().into(),
    ];
    device.launch("route_backward", [rows, 1, 1], 32, &[&arguments[..], &rule_arguments].concat())?;
    Ok(d_logits)
}

/// Checks that a choice is for `rows` rows with the given number of experts each.
pub(super) fn check_dispatch(extents: Extents, dispatch: &Dispatch, [rows, per_token]: [usize; 2]) -> Result {
    let [found, own, _] = dispatch.extents();
    extents.equal("the rows of the choice", found, rows)?;
    extents.equal("the experts of a row", own, per_token)
}
