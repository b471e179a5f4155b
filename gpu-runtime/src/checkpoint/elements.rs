//! Elements of tensors that are written: in memory, or elsewhere.

use std::borrow::Cow;
use std::io;

/// Elements of a tensor, in row-major order.
pub(crate) trait Elements {
    /// Number of elements.
    fn count(&self) -> usize;

    /// Passes all of them on, part after part, until that fails.
    fn pass_on(&self, to: &mut dyn FnMut(&[f32]) -> io::Result<()>) -> io::Result<()>;

    /// All of them.
    fn whole(&self) -> io::Result<Cow<'_, [f32]>> {
        let mut all = Vec::with_capacity(self.count());
        self.pass_on(&mut |part| {
            all.extend_from_slice(part);
            Ok(())
        })?;
        Ok(Cow::Owned(all))
    }
}

impl Elements for [f32] {
    fn count(&self) -> usize {
        self.len()
    }

    fn pass_on(&self, to: &mut dyn FnMut(&[f32]) -> io::Result<()>) -> io::Result<()> {
        to(self)
    }

    fn whole(&self) -> io::Result<Cow<'_, [f32]>> {
        Ok(Cow::Borrowed(self))
    }
}

impl Elements for Vec<f32> {
    fn count(&self) -> usize {
        self.len()
    }

    fn pass_on(&self, to: &mut dyn FnMut(&[f32]) -> io::Result<()>) -> io::Result<()> {
        to(self)
    }

    fn whole(&self) -> io::Result<Cow<'_, [f32]>> {
        Ok(Cow::Borrowed(self))
    }
}
