//! Signatures of JSON Web Tokens with `ring`, as a cryptography provider of the `jsonwebtoken` crate. Shared secrets
//! are not supported.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, Result, new_error};
use jsonwebtoken::jwk::ThumbprintHash;
use jsonwebtoken::signature::{self, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::digest;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, Ed25519KeyPair, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384,
    RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| Err(unsupported()),
        rsa_pub_components_from_public_key: |_| Err(unsupported()),
        ec_pub_components_from_private_key: |_, _| Err(unsupported()),
        ed_pub_components_from_private_key: |_, _| Err(unsupported()),
        compute_digest,
    },
};

/// Makes `ring` the provider of the process. Without a provider, the crate panics at the first token.
pub(super) fn install() {
    // An error says that it is there already.
    let _ = RING.install_default();
}

fn unsupported() -> Error {
    new_error(ErrorKind::UnsupportedAlgorithm)
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    match (algorithm, key.family()) {
        (Algorithm::EdDSA, AlgorithmFamily::Ed) => {
            let pair = Ed25519KeyPair::from_seed_unchecked(key.as_bytes());
            Ok(Box::new(Ed25519Signer(pair.map_err(|_| ErrorKind::InvalidEddsaKey)?)))
        }
        _ => Err(unsupported()),
    }
}

struct Ed25519Signer(Ed25519KeyPair);

impl Signer<Vec<u8>> for Ed25519Signer {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, signature::Error> {
        Ok(self.0.sign(message).as_ref().to_vec())
    }
}

impl JwtSigner for Ed25519Signer {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let check = match algorithm {
        Algorithm::EdDSA => Check::Plain(&ED25519),
        Algorithm::ES256 => Check::Plain(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Check::Plain(&ECDSA_P384_SHA384_FIXED),
        Algorithm::RS256 => Check::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Check::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Check::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Check::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Check::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Check::Rsa(&RSA_PSS_2048_8192_SHA512),
        _ => return Err(unsupported()),
    };
    if key.family() != algorithm.family() {
        return Err(new_error(ErrorKind::InvalidAlgorithm));
    }
    Ok(Box::new(PublicKeyVerifier { algorithm: *algorithm, check, key: key.clone() }))
}

/// The way in which `ring` checks a signature.
enum Check {
    Plain(&'static dyn VerificationAlgorithm),
    Rsa(&'static RsaParameters),
}

struct PublicKeyVerifier {
    algorithm: Algorithm,
    check: Check,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for PublicKeyVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), signature::Error> {
        let checked = match (&self.check, self.key.kind()) {
            (Check::Plain(algorithm), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(*algorithm, key).verify(message, signature)
            }
            (Check::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            _ => Err(ring::error::Unspecified),
        };
        checked.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for PublicKeyVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

fn compute_digest(data: &[u8], hash: ThumbprintHash) -> Result<Vec<u8>> {
    let algorithm = match hash {
        ThumbprintHash::SHA256 => &digest::SHA256,
        ThumbprintHash::SHA384 => &digest::SHA384,
        ThumbprintHash::SHA512 => &digest::SHA512,
        _ => return Err(unsupported()),
    };
    Ok(digest::digest(algorithm, data).as_ref().to_vec())
}
