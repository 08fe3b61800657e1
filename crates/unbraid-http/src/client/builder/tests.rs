use crate::{BuildError, Client};

#[test]
fn https_needs_a_tls_library() {
    let secure = Client::builder().base_url("https://localhost/v1").build();
    let available = cfg!(any(feature = "rustls-ring", feature = "native-tls"));
    match secure {
        Ok(_) => assert!(available),
        Err(error) => {
            assert!(
                !available && matches!(error, BuildError::Url { .. }),
                "{error}"
            );
            assert!(error.to_string().contains("rustls-ring"), "{error}");
        }
    }
    let insecure = Client::builder().base_url("http://localhost/v1").build();
    assert!(insecure.is_ok(), "{insecure:?}");
}
