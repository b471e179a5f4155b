//! The share of samples that are verified, such as `0.1%`.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

const MILLION: f64 = 1e6;

/// A share of samples, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Given")]
pub struct VerifiedShare(u32);

/// A share as the configuration file has it: a text with a percent sign, or a number.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a share such as \"0.1%\" or 0.001")]
enum Given {
    Text(String),
    Number(f64),
}

impl VerifiedShare {
    /// Returns the number of verified samples per million.
    pub fn per_million(self) -> u32 {
        self.0
    }

    /// Creates a share from a fraction of one.
    ///
    /// # Errors
    /// The fraction is not between 0 and 1, or so small that it would verify nothing.
    fn of(fraction: f64, text: &dyn fmt::Display) -> Result<Self, String> {
        let millionths = (fraction * MILLION).round();
        if !(0.0..=1.0).contains(&fraction) || (fraction > 0.0 && millionths < 1.0) {
            return Err(format!("invalid share {text}: expected 0, or from 0.0001% to 100%"));
        }
        Ok(Self(millionths as u32))
    }
}

impl FromStr for VerifiedShare {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, of) = match text.strip_suffix('%') {
            Some(percent) => (percent, 100.0),
            None => (text, 1.0),
        };
        let number: f64 = number.trim().parse().map_err(|_| {
            format!("invalid share {text:?}: expected a percentage such as 0.1%, or a fraction such as 0.001")
        })?;
        Self::of(number / of, &format_args!("{text:?}"))
    }
}

impl TryFrom<Given> for VerifiedShare {
    type Error = String;

    fn try_from(given: Given) -> Result<Self, String> {
        match given {
            Given::Text(text) => text.parse(),
            Given::Number(fraction) => Self::of(fraction, &fraction),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn percentages_and_fractions_are_read() {
        let per_million = |text: &str| text.parse::<VerifiedShare>().map(VerifiedShare::per_million);
        for (text, millionths) in
            [("0.1%", 1_000), ("0.001", 1_000), ("100%", 1_000_000), ("1", 1_000_000), ("0", 0), ("0.0001%", 1)]
        {
            assert_eq!(per_million(text), Ok(millionths), "{text}");
        }
        for text in ["", "%", "x", "NaN", "-1%", "101%", "2", "0.00001%", "inf"] {
            let refused = per_million(text).unwrap_err();
            assert!(refused.starts_with(&format!("invalid share {text:?}: expected")), "{refused}");
        }
    }

    #[test]
    fn a_file_has_a_text_or_a_number() {
        #[derive(Deserialize)]
        struct File {
            share: VerifiedShare,
        }
        for text in ["share = \"0.1%\"", "share = 0.001"] {
            assert_eq!(toml::from_str::<File>(text).unwrap().share.per_million(), 1_000);
        }
        assert!(
            toml::from_str::<File>("share = 2.0").is_err_and(|error| error.to_string().contains("invalid share 2"))
        );
        assert!(toml::from_str::<File>("share = true").is_err_and(|error| error.to_string().contains("0.1%")));
    }
}
