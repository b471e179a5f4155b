//! Which modules an adapter is on.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use trainyard_protocol::LoraSpec;

use crate::backend::{Backend, HostBackend};
use crate::load::load;
use crate::model::{Adapter, ParamSpec, ParamTable, Projection};

/// Blocks of Nemotron-H have a mixer or an MLP: its first block says nothing about the others.
#[test]
fn an_adapter_is_on_what_it_is_on_in_any_block() {
    let backend = HostBackend::new(1);
    let family = "nemotron_h";
    for kinds in [[true, true], [true, false], [false, true]] {
        let config = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family)).unwrap().config;
        let [train_attn, train_mlp] = kinds;
        let spec = LoraSpec { train_unembed: false, train_mlp, train_attn, ..LoraSpec::on_all(2, 1) };
        let lens: Vec<usize> = ParamTable::of_adapter(&config, &spec).iter().map(ParamSpec::len).collect();
        let params = backend.upload_params(lens.into_iter().map(|len| vec![0.0; len]).collect());
        let adapter = Adapter::from_params(&backend, &config, &spec, &params);
        let found = [adapter.adapts(Projection::is_attention), adapter.adapts(|p| !p.is_attention())];
        assert_eq!(found, kinds, "{family}");
    }
}
