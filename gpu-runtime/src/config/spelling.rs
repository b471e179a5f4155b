//! Names of tensors in a family's files.

/// Two spellings of the beginning of a name: that of the parameter table, and that of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rename {
    /// Spelling of the parameter table, which is Llama's.
    pub canonical: &'static str,
    /// Spelling of the family's files.
    pub in_files: &'static str,
}

impl Rename {
    /// A pair of spellings.
    pub const fn new(canonical: &'static str, in_files: &'static str) -> Self {
        Self { canonical, in_files }
    }
}

/// A module in files that contains the rows of several modules of the parameter table, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FusedRows {
    /// Module in files, within a block.
    pub module: &'static str,
    /// Modules of the parameter table, within a block, in the order of their rows.
    pub parts: &'static [&'static str],
}

/// How a family's files spell the tensors of the parameter table. The default is the table's own spelling.
///
/// Names are translated as they are read and as they are written, so that only the code at the boundary to files knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spelling {
    /// Prefixes of names. The first one that matches applies: files may use any, and the first is written.
    pub prefixes: &'static [Rename],
    /// Prefixes of names within each block (`self_attn.q_proj.weight`), by block. A block without an entry is spelled
    /// as the table spells it.
    pub blocks: Vec<&'static [Rename]>,
    /// Modules that are fused in files.
    pub fused: &'static [FusedRows],
    /// Prefixes of names in files that no model of the family uses here.
    pub unused: &'static [&'static str],
    /// Prefixes of names of parts that are not trained or not used by this runtime, such as vision towers. Their names
    /// are not translated. They belong to the model: checkpoints of all parameters contain them.
    pub kept: &'static [&'static str],
    /// Prefixes of such names within blocks, after translation.
    pub kept_in_blocks: &'static [&'static str],
    /// Number of blocks to use, if files contain further blocks for multi-token prediction.
    pub block_limit: Option<usize>,
}

impl Spelling {
    /// Returns the name in the parameter table of a tensor in a file; `None` if the family does not use the tensor.
    ///
    /// A name that no rule covers is treated as a bare decoder's, unless it begins like the table's names.
    pub fn canonical(&self, in_file: &str) -> Option<String> {
        if starts_with_any(in_file, self.unused) {
            return None;
        }
        if starts_with_any(in_file, self.kept) {
            return Some(in_file.to_owned());
        }
        let renamed = self.prefixes.iter().find_map(|rename| replaced(in_file, rename.in_files, rename.canonical));
        let name = match renamed {
            Some(name) => name,
            None if in_file.starts_with("model.") || in_file.starts_with("lm_head.") => in_file.to_owned(),
            None => format!("model.{in_file}"),
        };
        let Some((layer, rest)) = split_block(&name) else { return Some(name) };
        if self.block_limit.is_some_and(|blocks| layer >= blocks) {
            return None;
        }
        let renames = self.blocks.get(layer).copied().unwrap_or_default();
        let renamed = renames.iter().find_map(|rename| replaced(rest, rename.in_files, rename.canonical));
        Some(renamed.map_or_else(|| name.clone(), |rest| block_name(layer, &rest)))
    }

    /// Returns the name in files of a tensor of the parameter table, or of one that fuses several of these.
    pub fn in_files(&self, canonical: &str) -> String {
        if starts_with_any(canonical, self.kept) {
            return canonical.to_owned();
        }
        let in_block = split_block(canonical).and_then(|(layer, rest)| {
            let renames = self.blocks.get(layer).copied().unwrap_or_default();
            let rest = renames.iter().find_map(|rename| replaced(rest, rename.canonical, rename.in_files))?;
            Some(block_name(layer, &rest))
        });
        let name = in_block.unwrap_or_else(|| canonical.to_owned());
        let renamed = self.prefixes.iter().find_map(|rename| replaced(&name, rename.canonical, rename.in_files));
        renamed.unwrap_or(name)
    }

    /// Returns whether a tensor belongs to the model although it is not a parameter. `canonical` is its name in the
    /// parameter table.
    pub fn is_kept(&self, canonical: &str) -> bool {
        let in_block = || split_block(canonical).is_some_and(|(_, rest)| starts_with_any(rest, self.kept_in_blocks));
        starts_with_any(canonical, self.kept) || in_block()
    }

    /// The name of a module in adapters: as in files, but without the prefix that is before all names there.
    pub(crate) fn in_adapters(&self, module: &str) -> String {
        let Some((layer, rest)) = split_block(module) else { return module.to_owned() };
        // Rules are about names of tensors.
        let tensor = format!("{rest}.");
        let renames = self.blocks.get(layer).copied().unwrap_or_default();
        let renamed = renames.iter().find_map(|rename| replaced(&tensor, rename.canonical, rename.in_files));
        block_name(layer, renamed.unwrap_or(tensor).trim_end_matches('.'))
    }

    /// The tensor of files that holds a parameter among others, by a name in the table's spelling, and the number of the
    /// parameter among these.
    pub(crate) fn fused(&self, canonical: &str) -> Option<(String, usize)> {
        let (layer, rest) = split_block(canonical)?;
        self.fused.iter().find_map(|fused| {
            let of = |part: &&str| rest.strip_prefix(part).is_some_and(|kind| kind.starts_with('.'));
            let at = fused.parts.iter().position(of)?;
            let kind = &rest[fused.parts[at].len()..];
            Some((block_name(layer, &format!("{}{kind}", fused.module)), at))
        })
    }
}

fn starts_with_any(name: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| name.starts_with(beginning))
}

/// `name` with another beginning, if it begins with `from`.
fn replaced(name: &str, from: &str, to: &str) -> Option<String> {
    name.strip_prefix(from).map(|rest| format!("{to}{rest}"))
}

/// Block of a parameter, and its name within.
pub(crate) fn split_block(name: &str) -> Option<(usize, &str)> {
    let (layer, rest) = name.strip_prefix("model.layers.")?.split_once('.')?;
    Some((layer.parse().ok()?, rest))
}

/// Name of a parameter from its block and its name within.
pub(crate) fn block_name(layer: usize, rest: &str) -> String {
    format!("model.layers.{layer}.{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks with one mixer each, under one name: those of Nemotron-H.
    const ATTENTION: &[Rename] = &[Rename::new("self_attn.", "mixer."), Rename::new("input_layernorm.", "norm.")];
    const MLP: &[Rename] = &[Rename::new("mlp.", "mixer."), Rename::new("input_layernorm.", "norm.")];
    const PREFIXES: &[Rename] = &[
        Rename::new("model.embed_tokens.", "backbone.embeddings."),
        Rename::new("model.norm.", "backbone.norm_f."),
        Rename::new("model.", "backbone."),
        Rename::new("model.", "model."),
    ];

    fn single_mixers() -> Spelling {
        Spelling {
            prefixes: PREFIXES,
            blocks: vec![ATTENTION, MLP],
            fused: &[FusedRows { module: "self_attn.qkv_proj", parts: &["self_attn.q_proj", "self_attn.k_proj"] }],
            unused: &["mtp."],
            kept: &["vision_tower.", "model.visual."],
            kept_in_blocks: &["self_attn.indexer."],
            block_limit: Some(2),
        }
    }

    #[test]
    fn names_are_translated_both_ways() {
        let spelling = single_mixers();
        let pairs = [
            ("model.embed_tokens.weight", "backbone.embeddings.weight"),
            ("model.norm.weight", "backbone.norm_f.weight"),
            ("lm_head.weight", "lm_head.weight"),
            ("model.layers.0.self_attn.q_proj.weight", "backbone.layers.0.mixer.q_proj.weight"),
            ("model.layers.0.input_layernorm.weight", "backbone.layers.0.norm.weight"),
            ("model.layers.1.mlp.experts.3.up_proj.weight", "backbone.layers.1.mixer.experts.3.up_proj.weight"),
        ];
        for (canonical, in_files) in pairs {
            assert_eq!(spelling.in_files(canonical), in_files);
            assert_eq!(spelling.canonical(in_files).as_deref(), Some(canonical));
        }
        // Another beginning that files of the family have.
        let newer = spelling.canonical("model.layers.1.mixer.up_proj.weight");
        assert_eq!(newer.as_deref(), Some("model.layers.1.mlp.up_proj.weight"));
    }

    #[test]
    fn parts_that_are_kept_have_names_too() {
        let spelling = single_mixers();
        for (in_files, canonical) in [
            ("vision_tower.patch_embed.weight", "vision_tower.patch_embed.weight"),
            ("model.visual.norm.weight", "model.visual.norm.weight"),
            ("backbone.layers.0.mixer.indexer.wk.weight", "model.layers.0.self_attn.indexer.wk.weight"),
        ] {
            assert_eq!(spelling.canonical(in_files).as_deref(), Some(canonical));
            assert_eq!(spelling.in_files(canonical), in_files);
            assert!(spelling.is_kept(canonical), "{canonical}");
        }
        for other in ["model.norm.weight", "model.layers.0.self_attn.q_proj.weight", "visual.norm.weight"] {
            assert!(!spelling.is_kept(other), "{other}");
        }
    }

    #[test]
    fn modules_of_adapters_have_no_prefix() {
        let of = |module: &str| single_mixers().in_adapters(module);
        assert_eq!(of("model.layers.0.self_attn.q_proj"), "model.layers.0.mixer.q_proj");
        assert_eq!(of("model.layers.1.mlp.experts.w1"), "model.layers.1.mixer.experts.w1");
        assert_eq!(of("lm_head"), "lm_head");
    }

    #[test]
    fn what_the_family_does_not_use_has_no_name() {
        let spelling = single_mixers();
        assert_eq!(spelling.canonical("mtp.layers.0.weight"), None);
        assert_eq!(spelling.canonical("backbone.layers.2.mixer.q_proj.weight"), None);
        assert!(Spelling::default().canonical("model.layers.2.mixer.q_proj.weight").is_some());
    }

    #[test]
    fn names_of_bare_decoders_are_completed() {
        let canonical = |name| Spelling::default().canonical(name).unwrap_or_default();
        assert_eq!(canonical("layers.0.mlp.up_proj.weight"), "model.layers.0.mlp.up_proj.weight");
        assert_eq!(canonical("lm_head.weight"), "lm_head.weight");
    }

    #[test]
    fn fused_modules_keep_the_kind_of_their_tensors() {
        let of = |name| single_mixers().fused(name);
        let fused = |kind: &str, at| Some((format!("model.layers.0.self_attn.qkv_proj.{kind}"), at));
        assert_eq!(of("model.layers.0.self_attn.q_proj.weight"), fused("weight", 0));
        assert_eq!(of("model.layers.0.self_attn.k_proj.bias"), fused("bias", 1));
        for name in
            ["model.layers.0.self_attn.q_projection.weight", "model.layers.0.mlp.up_proj.weight", "lm_head.weight"]
        {
            assert_eq!(of(name), None);
        }
    }
}
