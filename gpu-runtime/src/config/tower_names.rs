//! Names of a vision tower's modules in files, by which families differ.

/// Names of a tower's modules, in the spelling of the parameter table. Each module has the tensors `weight` and `bias`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TowerNames {
    /// Projection of the values of a patch.
    pub patch_embed: &'static str,
    /// The tensor of the learned grid of positions.
    pub positions: &'static str,
    /// Beginning of the names of blocks; their index follows, then a dot.
    pub blocks: &'static str,
    /// Modules of a block.
    pub block: BlockNames,
    /// LayerNorm after the last block, in towers that have one.
    pub final_norm: Option<&'static str>,
    /// Beginning of the names of the merger, which makes the embeddings of tokens.
    pub merger: &'static str,
    /// Beginning of the names of the mergers of features; their index follows, then a dot. Unused in towers without features.
    pub features: &'static str,
    /// Modules of a merger.
    pub merger_modules: MergerNames,
}

/// Names of modules within a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockNames {
    /// Projection to queries, keys and values.
    pub qkv: &'static str,
    /// Projection of attention's output.
    pub proj: &'static str,
    /// The two layers of the MLP.
    pub mlp: [&'static str; 2],
    /// LayerNorms before attention and before the MLP.
    pub norms: [&'static str; 2],
}

/// Names of modules within a merger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergerNames {
    /// LayerNorm before the layers.
    pub norm: &'static str,
    /// The two layers of its MLP.
    pub mlp: [&'static str; 2],
}

impl TowerNames {
    /// Returns the name of a block's module.
    pub fn in_block(&self, block: usize, module: &str) -> String {
        format!("{}{block}.{module}", self.blocks)
    }

    /// Returns the name of a merger's module: of the `k`-th merger of features, or of the tower's own.
    pub fn in_merger(&self, features: Option<usize>, module: &str) -> String {
        match features {
            None => format!("{}{module}", self.merger),
            Some(k) => format!("{}{k}.{module}", self.features),
        }
    }
}
