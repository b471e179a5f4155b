//! Exchanges of parameters and gradients that replicas divide, in pieces of bounded size.

use super::done;
use super::exchange::{DeviceGroup, concat, count, group};
use super::params::CudaParams;
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::ranks::DeviceRanks;
use crate::backend::cuda::ops::squares::add_part;
use crate::collective::{CollectiveKind, DEVICE_PIECE, Extent, Fragment, Ranks, pieces, slice_of};

/// Destination of summed elements.
#[derive(Clone, Copy)]
enum Sums {
    /// Sums replace the elements.
    Replace,
    /// Sums are added to the elements.
    Add,
}

impl CudaParams {
    /// Implementation of [`Params::sums_of_parts`](crate::backend::Params::sums_of_parts) on the device.
    pub(super) fn scattered(&self, ranks: &Ranks) -> Option<Self> {
        let DeviceGroup { ranks: joined, device } = group(ranks)?;
        let part =
            |values: &Slice<f32>| device.uninitialised(slice_of(values.len(), joined.world(), joined.rank()).len());
        let mut sums = Self(done(self.0.iter().map(part).collect::<Result<_>>()));
        for piece in self.pieces(joined.world()) {
            sums.reduce_piece(ranks, &piece, Some(self), Sums::Replace);
        }
        Some(sums)
    }

    /// Implementation of [`Params::gather_parts`](crate::backend::Params::gather_parts) on the device.
    pub(super) fn gathered(&mut self, own: &Self, ranks: &Ranks) -> bool {
        let Some(DeviceGroup { ranks: joined, .. }) = group(ranks) else { return false };
        own.gather_pieces(ranks, &self.pieces(joined.world()), Some(&mut self.0))
    }

    /// The pieces that whole arrays are exchanged in.
    fn pieces(&self, world: usize) -> Vec<Vec<Fragment>> {
        let arrays: Vec<Extent> =
            self.0.iter().enumerate().map(|(index, values)| Extent { index, len: values.len() }).collect();
        pieces(&arrays, world, DEVICE_PIECE)
    }

    /// Implementation of [`Params::gather_fragments`](crate::backend::Params::gather_fragments) on the device.
    pub(super) fn whole(&self, ranks: &Ranks, lens: &[usize], fragments: &[Vec<Fragment>]) -> Option<Self> {
        let DeviceGroup { device, .. } = group(ranks)?;
        let mut whole = done(lens.iter().map(|len| device.uninitialised(*len)).collect::<Result<Vec<_>>>());
        self.gather_pieces(ranks, fragments, Some(&mut whole)).then_some(Self(whole))
    }

    /// Implementation of [`Params::offer_fragments`](crate::backend::Params::offer_fragments) on the device.
    pub(super) fn offer(&self, ranks: &Ranks, fragments: &[Vec<Fragment>]) -> bool {
        self.gather_pieces(ranks, fragments, None)
    }

    /// All-gathers pieces, one after the other, into whole arrays where this rank needs them; whether the ranks share devices.
    fn gather_pieces(&self, ranks: &Ranks, pieces: &[Vec<Fragment>], mut whole: Option<&mut [Slice<f32>]>) -> bool {
        let Some(DeviceGroup { ranks: joined, device }) = group(ranks) else { return false };
        for piece in pieces {
            count(ranks, CollectiveKind::AllGather, elements(piece, joined, joined.rank()));
            done(self.gather(device, joined, piece, whole.as_deref_mut()));
        }
        true
    }

    /// Elements that all ranks have of a piece, to whole arrays where this rank needs them.
    fn gather(
        &self,
        device: &CudaDevice,
        ranks: &DeviceRanks,
        piece: &[Fragment],
        whole: Option<&mut [Slice<f32>]>,
    ) -> Result {
        let within = |rank| move |of: &Fragment| of.within(ranks.world(), rank);
        let own = within(ranks.rank());
        let mine = concat(device, piece.iter().map(|of| (&self.0[of.of.index], own(of).0)))?;
        let lengths: Vec<usize> = (0..ranks.world()).map(|rank| elements(piece, ranks, rank)).collect();
        let parts = ranks.all_gather_sized(device, &mine, &lengths)?;
        let Some(whole) = whole else { return Ok(()) };
        for (rank, part) in parts.iter().enumerate() {
            let mut from = 0;
            for of in piece {
                let (within, first) = within(rank)(of);
                let end = from + within.len();
                whole[of.of.index].copy_from(first, part, from..end)?;
                from = end;
            }
        }
        Ok(())
    }

    /// Implementation of [`Params::add_sums_of_fragments`](crate::backend::Params::add_sums_of_fragments) on the
    /// device.
    pub(super) fn add_sums(&mut self, own: Option<&Self>, ranks: &Ranks, fragments: &[Vec<Fragment>]) -> bool {
        if group(ranks).is_none() {
            return false;
        }
        fragments.iter().for_each(|piece| self.reduce_piece(ranks, piece, own, Sums::Add));
        true
    }

    fn reduce_piece(&mut self, ranks: &Ranks, piece: &[Fragment], own: Option<&Self>, sums: Sums) {
        if let Some(DeviceGroup { ranks: joined, device }) = group(ranks) {
            let all = (0..joined.world()).map(|rank| elements(piece, joined, rank)).sum();
            count(ranks, CollectiveKind::ReduceScatter, all);
            done(self.reduce(device, joined, piece, own, sums));
        }
    }

    fn reduce(
        &mut self,
        device: &CudaDevice,
        ranks: &DeviceRanks,
        piece: &[Fragment],
        own: Option<&Self>,
        kind: Sums,
    ) -> Result {
        let part = |rank| {
            let Some(own) = own else { return device.zeros(elements(piece, ranks, rank)) };
            let range = |of: &Fragment| {
                let (within, first) = of.within(ranks.world(), rank);
                first..first + within.len()
            };
            concat(device, piece.iter().map(|of| (&own.0[of.of.index], range(of))))
        };
        let sums = ranks.scatter_sums(device, &(0..ranks.world()).map(part).collect::<Result<Vec<_>>>()?)?;
        let mut from = 0;
        for of in piece {
            let (within, _) = of.within(ranks.world(), ranks.rank());
            let end = from + within.len();
            let to = &mut self.0[of.of.index];
            match kind {
                Sums::Replace => to.copy_from(within.start, &sums, from..end)?,
                Sums::Add => add_part(device, to, within.start, &sums, from..end)?,
            }
            from = end;
        }
        Ok(())
    }
}

/// Elements that a rank has of fragments.
fn elements(piece: &[Fragment], ranks: &DeviceRanks, rank: usize) -> usize {
    piece.iter().map(|of| of.within(ranks.world(), rank).0.len()).sum()
}
